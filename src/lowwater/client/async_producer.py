"""The producer within an asyncio event loop.

async with AsyncProducer("localhost:9092") as producer:
    await producer.send_table("orders", table)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

from lowwater.client.aio import AioDriver
from lowwater.client.arguments import check_topic
from lowwater.client.coordinator import NOBODY as NO_MEMBER
from lowwater.client.coordinator import Identity as MemberIdentity
from lowwater.client.errors import ClientError
from lowwater.client.loading import WRITING, load
from lowwater.client.producing.ending import Prepared
from lowwater.client.producing.face import Face, Time, producer_config
from lowwater.client.producing.forgotten import LOG, forget, remember
from lowwater.client.producing.piles import Field, Headers
from lowwater.client.producing.reports import Report, Summary
from lowwater.client.producing.transaction_requests import Offset
from lowwater.types import TopicPartition


class AsyncReport(Report):
    def __init__(self, driver: AioDriver) -> None:
        super().__init__()
        self._driver = driver

    async def wait(self, timeout_ms: float | None = None) -> Self:
        """Until it is done, or the time is over: `done` says which."""
        await self._driver.wait(self.settled, timeout_ms)
        self.is_asked = True
        return self


class AsyncProducer(Face):
    """To be made, and used, within one running event loop."""

    def __init__(self, bootstrap: str | None = None, config: Mapping[str, object] | None = None) -> None:
        settings = producer_config(bootstrap, config)
        self._driver = AioDriver(settings)
        super().__init__(settings, self._driver, self._driver.call_soon, lambda: AsyncReport(self._driver))
        self._is_closed = False
        remember(self, self._leave_at_exit)

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
        if type(topic) is not str or topic not in self._piles.open:
            check_topic(topic)
            if not self._has_room():
                await self._driver.run(self._make_room())
        report: AsyncReport = self._add(topic, value, key, headers, partition, timestamp)
        return report

    async def send_table(self, topic: str | None, table: Any) -> AsyncReport:
        """Take the rows of a table, record batch or reader; waits only while buffer.memory is full."""
        if topic is not None:
            check_topic(topic)
        report = AsyncReport(self._driver)
        await self._driver.run(self._expect(report))
        tables = await asyncio.to_thread(load, WRITING)
        try:
            for batch in tables.batches_of(table):
                await self._driver.run(self._core.accept(topic, batch, report))
        finally:
            report.complete()
        return report

    async def flush(self, timeout_ms: float | None = None, *, raise_failures: bool = True) -> Summary:
        """Wait until everything taken is settled; what became of it since the last flush.

        DeliveryError, with that summary, when rows failed whose report nobody has waited for.
        """
        return await self._driver.run(self._flush(raise_failures), timeout_ms)

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

    async def close(self, timeout_ms: float | None = None, *, raise_failures: bool = True) -> None:
        """Flush, within the time, and let go; what is not written by then fails. An open transaction is aborted."""
        if self._is_closed:
            return
        self._is_closed = True
        forget(self)
        try:
            await self._driver.run(self._leave(raise_failures), timeout_ms)
        finally:
            await self._driver.run(self._close())
            await self._driver.close()

    def _leave_at_exit(self) -> None:
        """The event loop is gone, so nothing can be done any more but say so."""
        if not self._is_done:
            LOG.error("an AsyncProducer was not closed, and rows were not written; use async with, or await close()")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What went wrong in the block is the news; rows that failed besides are not.
        await self.close(raise_failures=kind is None)
