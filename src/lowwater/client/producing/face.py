"""What a producer is made of, whichever way it is called: piles, the core, and the network under it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from lowwater.client.arguments import settings_of
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.driver import Driver
from lowwater.client.errors import ClientError
from lowwater.client.loading import WRITING, load_behind, require_extra
from lowwater.client.network import Network
from lowwater.client.producing.core import Producing
from lowwater.client.producing.ending import Prepared
from lowwater.client.producing.piles import (
    Field,
    Headers,
    Piles,
    field_bytes,
    header_pairs,
    milliseconds,
    partition_number,
)
from lowwater.client.producing.reports import Report, Summary
from lowwater.client.producing.rules import rules_of
from lowwater.client.producing.transactions import FROM

Time: TypeAlias = int | datetime | None
"""Milliseconds since the epoch, or a time with its zone; None is now."""

PILE_BYTES_MIN = 64 * 1024
# Of buffer.memory: a pile leaves when it is so large, before its time is over.
PILE_SHARE = 8
# How long closing tries to abort a transaction; its timeout ends it otherwise.
LEAVE_MS = 5_000


class Face:
    """The coroutines are run by the driver."""

    def __init__(
        self,
        config: ClientConfig,
        driver: Driver,
        post: Callable[[Callable[[], None]], None],
        new_report: Callable[[], Report],
    ) -> None:
        require_extra()
        self._rules = rules_of(config)
        self._network = Network(config, driver)
        self._core = Producing(Cluster(self._network), self._rules)
        self._now_ms = driver.now_ms
        self._call_later = driver.call_later
        self._piles = Piles(
            post,
            self._linger,
            self._core.take_pile,
            bytes_max=max(self._rules.buffer_bytes // PILE_SHARE, PILE_BYTES_MIN),
            new_report=new_report,
        )
        load_behind(WRITING)

    def _linger(self, over: Callable[[], None]) -> None:
        self._call_later(self._rules.linger_ms, over)

    def _has_room(self) -> bool:
        """Asked when a pile is begun, not for each record. ClosedError, TransactionError: nothing can be sent now."""
        self._core.require_open()
        return self._core.used_bytes + self._piles.size < self._rules.buffer_bytes

    def _add(
        self, topic: str, value: Field, key: Field, headers: Headers | None, partition: int | None, timestamp: Time
    ) -> Any:
        time_ms = self._now_ms() if timestamp is None else milliseconds(timestamp)
        if type(value) is not bytes:
            value = field_bytes(value)
        if type(key) is not bytes:
            key = field_bytes(key)
        if partition is not None:
            partition_number(partition)
        pairs = header_pairs(headers) if headers else None
        return self._piles.add(topic, value, key, pairs, partition, time_ms)

    async def _make_room(self) -> None:
        self._piles.close_all()
        await self._core.room()

    async def _expect(self, report: Report) -> None:
        """What was sent before goes before."""
        self._piles.close_all()
        self._core.expect(report)

    async def _complete(self, report: Report) -> None:
        report.complete()

    async def _flush(self, raise_failures: bool) -> Summary:
        self._piles.close_all()
        return await self._core.flush(raise_failures=raise_failures)

    async def _commit(self, timeout_ms: float | None) -> None:
        self._piles.close_all()
        await self._core.commit_transaction(timeout_ms)

    async def _abort(self, timeout_ms: float | None) -> None:
        self._piles.close_all()
        await self._core.abort_transaction(timeout_ms)

    async def _prepare(self) -> Prepared:
        self._piles.close_all()
        return await self._core.prepare_transaction()

    async def _leave(self, raise_failures: bool) -> None:
        """Before closing: a transaction that is open will not be committed by anybody."""
        transactions = self._core.transactions
        if transactions is not None and transactions.state in FROM["abort_transaction"]:
            with contextlib.suppress(ClientError):
                await self._abort(LEAVE_MS)
        # Rows of a transaction that was not committed are void anyway.
        await self._flush(raise_failures and transactions is None)

    @property
    def _is_done(self) -> bool:
        return not self._piles.size and self._core.is_done

    async def _close(self) -> None:
        self._core.close()
        self._network.close()


def producer_config(bootstrap: str | None, config: Mapping[str, object] | None) -> ClientConfig:
    """As every producer, it lets brokers create topics unless that is said to be unwanted."""
    given: dict[str, object] = {"allow.auto.create.topics": True, **settings_of(config)}
    if bootstrap is not None:
        given["bootstrap.servers"] = bootstrap
    return ClientConfig(given)
