"""Producers: Arrow tables and plain records to the partitions of topics, blocking or under asyncio.

with Producer("localhost:9092") as producer:
    producer.send_table("orders", table)
    producer.flush().raise_failures()
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Self, TypeAlias

from lowwater.client.aio import AioDriver
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.coordinator import NOBODY as NO_MEMBER
from lowwater.client.coordinator import Identity as MemberIdentity
from lowwater.client.driver import Driver
from lowwater.client.errors import ClientError
from lowwater.client.loading import WRITING, load, load_behind, require_extra
from lowwater.client.network import Network
from lowwater.client.producing.core import Producing
from lowwater.client.producing.ending import Prepared, end_prepared
from lowwater.client.producing.piles import Field, Headers, Piles, field_bytes, header_pairs, milliseconds
from lowwater.client.producing.reports import Failure, Placed, Report, Summary
from lowwater.client.producing.rules import rules_of
from lowwater.client.producing.transaction_requests import Offset
from lowwater.client.producing.transactions import FROM
from lowwater.client.threaded import ThreadedDriver
from lowwater.types import TopicPartition

__all__ = [
    "AsyncProducer",
    "AsyncReport",
    "BlockingReport",
    "Failure",
    "Placed",
    "Prepared",
    "Producer",
    "Report",
    "Summary",
    "end_transaction",
]

Time: TypeAlias = int | datetime | None
"""Milliseconds since the epoch, or a time with its zone; None is now."""

PILE_BYTES_MIN = 64 * 1024
# Of buffer.memory: a pile leaves when it is so large, before its time is over.
PILE_SHARE = 8
# How long closing tries to abort a transaction; its timeout ends it otherwise.
LEAVE_MS = 5_000


class BlockingReport(Report):
    def __init__(self, driver: ThreadedDriver) -> None:
        super().__init__()
        self._driver = driver

    def wait(self, timeout_ms: float | None = None) -> Self:
        """Until it is done, or the time is over: `done` says which."""
        self._driver.wait(self.settled, timeout_ms)
        return self


class AsyncReport(Report):
    def __init__(self, driver: AioDriver) -> None:
        super().__init__()
        self._driver = driver

    async def wait(self, timeout_ms: float | None = None) -> Self:
        """Until it is done, or the time is over: `done` says which."""
        await self._driver.wait(self.settled, timeout_ms)
        return self


class _Face:
    """What both producers stand on. Coroutines of it are run by the driver."""

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

    @property
    def _is_full(self) -> bool:
        return self._core.used_bytes + self._piles.size >= self._rules.buffer_bytes

    def _add(
        self, topic: str, value: Field, key: Field, headers: Headers | None, partition: int | None, timestamp: Time
    ) -> Any:
        self._core.require_open()
        time_ms = milliseconds(timestamp, self._now_ms())
        pairs = header_pairs(headers) if headers else None
        return self._piles.add(topic, field_bytes(value), field_bytes(key), pairs, partition, time_ms)

    async def _make_room(self) -> None:
        self._piles.close_all()
        await self._core.room()

    async def _expect(self, report: Report) -> None:
        """What was sent before goes before."""
        self._piles.close_all()
        self._core.expect(report)

    async def _complete(self, report: Report) -> None:
        report.complete()

    async def _flush(self) -> Summary:
        self._piles.close_all()
        return await self._core.flush()

    async def _commit(self, timeout_ms: float | None) -> None:
        self._piles.close_all()
        await self._core.commit_transaction(timeout_ms)

    async def _abort(self, timeout_ms: float | None) -> None:
        self._piles.close_all()
        await self._core.abort_transaction(timeout_ms)

    async def _prepare(self) -> Prepared:
        self._piles.close_all()
        return await self._core.prepare_transaction()

    async def _leave(self) -> None:
        """Before closing: a transaction that is open will not be committed by anybody."""
        transactions = self._core.transactions
        if transactions is not None and transactions.state in FROM["abort_transaction"]:
            with contextlib.suppress(ClientError):
                await self._abort(LEAVE_MS)
        await self._flush()

    async def _close(self) -> None:
        self._core.close()
        self._network.close()


class Producer(_Face):
    """Sends in a thread of its own. Any thread may call; rows of one thread keep their order."""

    def __init__(self, bootstrap: str | None = None, config: Mapping[str, object] | None = None) -> None:
        settings = _config(bootstrap, config)
        self._driver = ThreadedDriver(settings)
        super().__init__(settings, self._driver, self._driver.post, lambda: BlockingReport(self._driver))
        self._is_closed = False
        self._is_begun = False

    def send(
        self,
        topic: str,
        value: Field = None,
        *,
        key: Field = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Time = None,
    ) -> BlockingReport:
        """Take one record; waits only while buffer.memory is full. Those that leave together share a report."""
        if self._is_full or not self._is_begun:
            self._driver.run(self._make_room())
            self._is_begun = True
        report: BlockingReport = self._add(topic, value, key, headers, partition, timestamp)
        return report

    def send_table(self, topic: str | None, table: Any) -> BlockingReport:
        """Take the rows of a table, record batch or reader; waits only while buffer.memory is full.

        Columns are key, value, headers, partition and timestamp, as far as they are there; without `topic` also topic.
        """
        report = BlockingReport(self._driver)
        self._driver.run(self._expect(report))
        try:
            for batch in load(WRITING).batches_of(table):
                self._driver.run(self._core.accept(topic, batch, report))
        finally:
            self._driver.run(self._complete(report))
        return report

    def flush(self, timeout_ms: float | None = None) -> Summary:
        """Wait until everything taken is settled; what became of it since the last flush."""
        return self._driver.run(self._flush(), timeout_ms)

    def init_transactions(self, timeout_ms: float | None = None) -> None:
        """Take the place of earlier producers of this transactional id; what they left open is aborted."""
        self._driver.run(self._core.init_transactions(timeout_ms))

    def begin_transaction(self, timeout_ms: float | None = None) -> None:
        """The first one initialises as well."""
        self._driver.run(self._core.begin_transaction(timeout_ms))

    def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """AbortableError when something in it failed. When nobody answers in time, ask again."""
        self._driver.run(self._commit(timeout_ms))

    def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """What waits is not sent; what was written will not be seen by those who read committed records."""
        self._driver.run(self._abort(timeout_ms))

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, Offset],
        group: str,
        by: MemberIdentity = NO_MEMBER,
        timeout_ms: float | None = None,
    ) -> None:
        """The group's offsets, each the next to read, are committed with the transaction or not at all."""
        self._driver.run(self._core.send_offsets(offsets, group, by, timeout_ms))

    def prepare_transaction(self) -> Prepared:
        """Wait for all rows and leave the transaction open: `end_transaction` ends it, from anywhere, any time."""
        return self._driver.run(self._prepare())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Committed at the end, aborted when an exception leaves it."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            with contextlib.suppress(ClientError):
                self.abort_transaction()
            raise

    def close(self, timeout_ms: float | None = None) -> None:
        """Flush, within the time, and let go; what is not written by then fails. An open transaction is aborted."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._driver.run(self._leave(), timeout_ms)
        finally:
            self._driver.run(self._close())
            self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncProducer(_Face):
    """The same within a running event loop, in which it has to be made."""

    def __init__(self, bootstrap: str | None = None, config: Mapping[str, object] | None = None) -> None:
        settings = _config(bootstrap, config)
        self._driver = AioDriver(settings)
        super().__init__(settings, self._driver, self._driver.call_soon, lambda: AsyncReport(self._driver))
        self._is_closed = False

    async def send(
        self,
        topic: str,
        value: Field = None,
        *,
        key: Field = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Time = None,
    ) -> AsyncReport:
        """Take one record; waits only while buffer.memory is full. Those that leave together share a report."""
        if self._is_full:
            await self._driver.run(self._make_room())
        report: AsyncReport = self._add(topic, value, key, headers, partition, timestamp)
        return report

    async def send_table(self, topic: str | None, table: Any) -> AsyncReport:
        """Take the rows of a table, record batch or reader; waits only while buffer.memory is full."""
        report = AsyncReport(self._driver)
        await self._driver.run(self._expect(report))
        tables = await asyncio.to_thread(load, WRITING)
        try:
            for batch in tables.batches_of(table):
                await self._driver.run(self._core.accept(topic, batch, report))
        finally:
            report.complete()
        return report

    async def flush(self, timeout_ms: float | None = None) -> Summary:
        """Wait until everything taken is settled; what became of it since the last flush."""
        return await self._driver.run(self._flush(), timeout_ms)

    async def init_transactions(self, timeout_ms: float | None = None) -> None:
        """Take the place of earlier producers of this transactional id; what they left open is aborted."""
        await self._driver.run(self._core.init_transactions(timeout_ms))

    async def begin_transaction(self, timeout_ms: float | None = None) -> None:
        """The first one initialises as well."""
        await self._driver.run(self._core.begin_transaction(timeout_ms))

    async def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """AbortableError when something in it failed. When nobody answers in time, ask again."""
        await self._driver.run(self._commit(timeout_ms))

    async def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """What waits is not sent; what was written will not be seen by those who read committed records."""
        await self._driver.run(self._abort(timeout_ms))

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, Offset],
        group: str,
        by: MemberIdentity = NO_MEMBER,
        timeout_ms: float | None = None,
    ) -> None:
        """The group's offsets, each the next to read, are committed with the transaction or not at all."""
        await self._driver.run(self._core.send_offsets(offsets, group, by, timeout_ms))

    async def prepare_transaction(self) -> Prepared:
        """Wait for all rows and leave the transaction open: `end_transaction` ends it, from anywhere, any time."""
        return await self._driver.run(self._prepare())

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Committed at the end, aborted when an exception leaves it."""
        await self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            with contextlib.suppress(ClientError):
                await self.abort_transaction()
            raise

    async def close(self, timeout_ms: float | None = None) -> None:
        """Flush, within the time, and let go; what is not written by then fails. An open transaction is aborted."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._driver.run(self._leave(), timeout_ms)
        finally:
            await self._driver.run(self._close())
            await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def end_transaction(
    prepared: Prepared,
    bootstrap: str | None = None,
    config: Mapping[str, object] | None = None,
    *,
    commit: bool = True,
    timeout_ms: float | None = None,
) -> None:
    """Commit or abort what `prepare_transaction` left open. To ask again for the same end is no error.

    FencedError: a later producer of its id, or its timeout, came first. TransactionError: it ended the other way.
    """
    settings = _config(bootstrap, config)
    driver = BlockingDriver(settings)
    network = Network(settings, driver)
    try:
        driver.run(end_prepared(Cluster(network), prepared, commit=commit, timeout_ms=timeout_ms))
    finally:
        network.close()
        driver.close()


def _config(bootstrap: str | None, config: Mapping[str, object] | None) -> ClientConfig:
    given = dict(config or {})
    if bootstrap is not None:
        given["bootstrap.servers"] = bootstrap
    return ClientConfig(given)
