"""Producers: Arrow tables and plain records to the partitions of topics, blocking or under asyncio.

with Producer("localhost:9092") as producer:
    producer.send_table("orders", table)
    producer.flush().raise_failures()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Self, TypeAlias

from lowwater.client.aio import AioDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.driver import Driver
from lowwater.client.loading import WRITING, load, load_behind, require_extra
from lowwater.client.network import Network
from lowwater.client.producing.core import Producing
from lowwater.client.producing.piles import Field, Headers, Piles, field_bytes, header_pairs, milliseconds
from lowwater.client.producing.reports import Failure, Placed, Report, Summary
from lowwater.client.producing.rules import rules_of
from lowwater.client.threaded import ThreadedDriver

__all__ = ["AsyncProducer", "AsyncReport", "BlockingReport", "Failure", "Placed", "Producer", "Report", "Summary"]

Time: TypeAlias = int | datetime | None
"""Milliseconds since the epoch, or a time with its zone; None is now."""

PILE_BYTES_MIN = 64 * 1024
# Of buffer.memory: a pile leaves when it is so large, before its time is over.
PILE_SHARE = 8


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

    def close(self, timeout_ms: float | None = None) -> None:
        """Flush, within the time, and let go; what is not written by then fails."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.flush(timeout_ms)
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

    async def close(self, timeout_ms: float | None = None) -> None:
        """Flush, within the time, and let go; what is not written by then fails."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self.flush(timeout_ms)
        finally:
            await self._driver.run(self._close())
            await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _config(bootstrap: str | None, config: Mapping[str, object] | None) -> ClientConfig:
    given = dict(config or {})
    if bootstrap is not None:
        given["bootstrap.servers"] = bootstrap
    return ClientConfig(given)
