"""The reader for asyncio.

async with AsyncReader("orders", start="-1h") as reader:
    async for batch in reader:
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from lowwater.client.aio import AioDriver
from lowwater.client.arguments import check_timeout
from lowwater.client.asked import Asked, ReadOptions, ask, check_names
from lowwater.client.errors import ClosedError
from lowwater.client.loading import READING, load, load_behind, require_extra
from lowwater.client.reader_state import ARROW, POLL_MS, ReaderState, reading_of, written_out
from lowwater.client.wanted import Start, Topics, start_position
from lowwater.types import TopicPartition


@written_out
class AsyncReader(ReaderState):
    """The same for asyncio: `async with AsyncReader("orders") as reader: async for batch in reader: …`.

    It connects when it is entered, or with its first call.
    """

    def __init__(self, topics: Topics | None = None, **options: Unpack[ReadOptions]) -> None:
        check_names(options)
        self._set_up(ask(topics, **options))

    @classmethod
    def asked_for(cls, asked: Asked) -> Self:
        """For those who ask in another way."""
        reader = cls.__new__(cls)
        reader._set_up(asked)
        return reader

    def _set_up(self, asked: Asked) -> None:
        require_extra()
        load_behind(READING)
        self._asked = asked
        self._columns = asked.options.columns
        self._zone = asked.zone
        self._driver: AioDriver | None = None
        self._beginning: asyncio.Task[None] | None = None
        self._is_closed = False

    async def begin(self) -> Self:
        """Connect, and resolve where to start. Done by `async with` and by the first call."""
        if self._beginning is None:
            if self._is_closed:
                raise _closed()
            self._beginning = asyncio.ensure_future(self._connect())
        try:
            # A call that is given up, as by a timeout, does not take the beginning from those that follow.
            await asyncio.shield(self._beginning)
        except asyncio.CancelledError:
            if self._beginning.cancelled():
                raise _closed() from None
            raise
        return self

    async def _connect(self) -> None:
        self._driver = AioDriver(self._asked.config)
        self._core = reading_of(self._asked, self._driver)
        try:
            await self._driver.run(self._reading.begin())
        except BaseException:
            await self._end(is_done=True)
            raise

    async def _begun(self) -> AioDriver:
        await self.begin()
        assert self._driver is not None
        return self._driver

    async def poll(self, timeout_ms: float | None = POLL_MS) -> Any:
        """The next batch; one without rows when none came in time, or none will come."""
        check_timeout(timeout_ms)
        batch = await self._poll(timeout_ms)
        return load(ARROW).empty(self._columns) if batch is None else batch

    async def _poll(self, timeout_ms: float | None, *, is_done: bool = True) -> Any:
        await (await self._begun()).run(self._reading.poll(timeout_ms, is_done=is_done))
        return self._reading.take()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (batch := await self._poll(None)) is not None:
            yield batch

    async def to_table(self) -> Any:
        """All that is left, as one pyarrow.Table: up to the stop, or else up to what was there at the beginning."""
        driver = await self._begun()
        await driver.run(self._reading.stop_now())
        try:
            return load(ARROW).table(await self._rest(), self._columns)
        except BaseException:
            await driver.run(self._reading.give_back())
            raise

    async def _rest(self) -> list[Any]:
        """All batches that are left. As with a single one, the caller is done with them when he asks for more."""
        batches = []
        batch = await self._poll(None)
        while batch is not None:
            batches.append(batch)
            batch = await self._poll(None, is_done=False)
        return batches

    read_all = to_table

    async def to_pandas(self, **options: Any) -> Any:
        """The same as a pandas.DataFrame."""
        return (await self.to_table()).to_pandas(**options)

    async def to_polars(self) -> Any:
        """The same as a polars.DataFrame."""
        return load("polars").from_arrow(await self.to_table())

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit to the group, now, what was returned so far; or these offsets, each the next one to read."""
        await (await self._begun()).run(self._reading.commit(offsets))

    async def seek(self, topic: str, partition: int, position: Start) -> None:
        """Go on with this partition from another place, before or behind: any start position."""
        await (await self._begun()).run(
            self._reading.seek(TopicPartition(topic, partition), start_position(position, self._zone))
        )

    async def drop(self, topic: str, partition: int | None = None) -> None:
        """Go on without this topic, or this partition of it."""
        await (await self._begun()).run(self._reading.drop(topic, partition))

    async def close(self) -> None:
        """Commit what was returned if commits are made by themselves, leave the group, close the connections."""
        await self._close(is_done=True)

    async def _close(self, *, is_done: bool) -> None:
        if self._beginning is not None and not self._beginning.done():
            self._beginning.cancel()
            await asyncio.wait([self._beginning])
        await self._end(is_done=is_done)

    async def _end(self, *, is_done: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._driver is None:
            return
        try:
            await self._driver.run(self._reading.close(is_done=is_done))
        finally:
            await self._driver.close()

    async def __aenter__(self) -> Self:
        try:
            return await self.begin()
        except BaseException:
            await self._close(is_done=True)  # whoever gives up here never leaves, and makes no other call
            raise

    async def __aexit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        await self._close(is_done=kind is None)


def _closed() -> ClosedError:
    return ClosedError("the reader was closed")
