"""Reading topics as Arrow batches, in the order of time across partitions.

for batch in lowwater.read("orders", start="-1h", stop="latest"):
    print(batch.to_pandas())
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, Unpack

from lowwater.client.aio import AioDriver
from lowwater.client.asked import Asked, ReadOptions, ask
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.loading import READING, load, load_behind, require_extra
from lowwater.client.network import Network
from lowwater.client.reading import Reading
from lowwater.client.releasing import Lost
from lowwater.client.threaded import ThreadedDriver
from lowwater.client.wanted import Start, Topics, start_position
from lowwater.merge.merging import Progress
from lowwater.types import TopicPartition

POLL_MS = 1000
ARROW = "lowwater.client.arrow"


@dataclass(frozen=True, slots=True)
class ReaderStats:
    """What a reader did so far, and what it holds now."""

    rows: int = 0
    batches: int = 0
    held_rows: int = 0
    held_bytes: int = 0
    paused_partitions: int = 0
    late_rows: int = 0
    """Rows that came out after younger ones, because they were written after those."""
    future_rows: int = 0
    """Rows that were there at the beginning and claim to be younger than that."""
    lost_offsets: int = 0
    commit_failures: int = 0


class Face:
    """What both kinds of readers say of themselves. Read from any thread: these are copies."""

    _reading: Reading

    @property
    def starts(self) -> Mapping[TopicPartition, int]:
        """Where each partition was begun; resolved before its first record."""
        return {one: plan.start for one, plan in dict(self._reading.plans).items()}

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """Where each partition ended at that moment."""
        return {one: plan.end for one, plan in dict(self._reading.plans).items()}

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read; for a member of a group, its share of them."""
        return frozenset(self._reading.plans)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that you will get: what you would store to go on from here."""
        return self._reading.positions()

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """How many offsets each partition is ahead of its position, as far as brokers told."""
        return self._reading.lag()

    @property
    def is_live(self) -> bool:
        """Whether everything that was there at the beginning was returned; once true, always true."""
        releasing = self._reading.releasing
        return releasing is not None and releasing.is_live

    @property
    def is_finished(self) -> bool:
        """Whether everything up to the stop was returned. Never without a stop."""
        return self._reading.is_finished

    @property
    def lost(self) -> list[Lost]:
        """What was gone before it could be read: exact ranges of offsets, [first, behind)."""
        releasing = self._reading.releasing
        return [] if releasing is None else list(releasing.lost)

    @property
    def mark_ms(self) -> int | None:
        """The low-water mark: what is stamped later waits for the others. None when there is none, or when live."""
        releasing = self._reading.releasing
        return None if releasing is None else releasing.mark_ms

    def progress(self) -> dict[TopicPartition, tuple[Progress, int]]:
        """Of each partition what is known of it, and the next offset that you will get."""
        releasing = self._reading.releasing
        if releasing is None:
            return {}
        positions = self.positions
        return {one: (progress, positions[one]) for one, progress in releasing.progress.items() if one in positions}

    @property
    def late_rows(self) -> int:
        """How many rows came out after younger ones."""
        return self.stats.late_rows

    @property
    def stats(self) -> ReaderStats:
        releasing = self._reading.releasing
        if releasing is None:
            return ReaderStats()
        progress = releasing.progress.values()
        return ReaderStats(
            rows=releasing.rows,
            batches=releasing.batches,
            held_rows=releasing.held_rows,
            held_bytes=releasing.held_bytes,
            paused_partitions=sum(one.is_paused for one in progress),
            late_rows=releasing.late_rows,
            future_rows=sum(one.future_rows for one in progress),
            lost_offsets=sum(one.behind - one.first for one in releasing.lost),
            commit_failures=self._reading.commit_failures,
        )


class Reader(Face):
    """Reads topics as Arrow batches; `read` explains the options.

    One thread at a time. With a group a thread of its own keeps the membership while you work on a batch.
    """

    def __init__(self, topics: Topics | None = None, **options: Unpack[ReadOptions]) -> None:
        self._open(ask(topics, **options))

    @classmethod
    def asked_for(cls, asked: Asked) -> Self:
        """For those who ask in another way."""
        reader = cls.__new__(cls)
        reader._open(asked)
        return reader

    def _open(self, asked: Asked) -> None:
        require_extra()
        load_behind(READING)
        joins = asked.options.group is not None and asked.options.joins
        self._driver = ThreadedDriver(asked.config) if joins else BlockingDriver(asked.config)
        self._reading = _reading(asked, self._driver)
        self._is_closed = False
        try:
            self._driver.run(self._reading.begin())
        except BaseException:
            self.close()
            raise

    def poll(self, timeout_ms: float | None = POLL_MS) -> Any:
        """The next batch, as a pyarrow.RecordBatch; one without rows when none came in time, or none will come.

        None as the time waits for as long as it takes.
        """
        batch = self._poll(timeout_ms)
        return load(ARROW).EMPTY if batch is None else batch

    def _poll(self, timeout_ms: float | None) -> Any:
        self._driver.run(self._reading.poll(timeout_ms))
        return self._reading.take()

    def __iter__(self) -> Iterator[Any]:
        """Batches with rows in them; without a stop, for ever."""
        while (batch := self._poll(None)) is not None:
            yield batch

    # ---- everything at once

    def to_table(self) -> Any:
        """All that is left, as one pyarrow.Table: up to the stop, or else up to what was there at the beginning."""
        self._driver.run(self._reading.stop_now())
        return load(ARROW).table(iter(self))

    read_all = to_table

    def to_reader(self) -> Any:
        """The same, batch by batch, as a pyarrow.RecordBatchReader: for DuckDB, polars, datasets, Flight."""
        self._driver.run(self._reading.stop_now())
        return load(ARROW).batch_reader(iter(self))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Whatever speaks Arrow can read from this as it is: `polars.DataFrame(reader)`, `pyarrow.table(reader)`."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self, **options: Any) -> Any:
        """The same as a pandas.DataFrame; options are those of pyarrow.Table.to_pandas."""
        return self.to_table().to_pandas(**options)

    def to_polars(self) -> Any:
        """The same as a polars.DataFrame."""
        return load("polars").from_arrow(self.to_table())

    # ---- where we are

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit to the group, now, what was returned so far; or these offsets, each the next one to read."""
        self._driver.run(self._reading.commit(offsets))

    def seek(self, topic: str, partition: int, position: Start) -> None:
        """Go on with this partition from another place, before or behind: any start position."""
        self._driver.run(self._reading.seek(TopicPartition(topic, partition), start_position(position)))

    def drop(self, topic: str, partition: int | None = None) -> None:
        """Go on without this topic, or this partition of it: after an error that will not go away."""
        self._driver.run(self._reading.drop(topic, partition))

    # ---- the end

    def close(self) -> None:
        """Commit what was returned if commits are made by themselves, leave the group, close the connections."""
        self._close(is_done=True)

    def _close(self, *, is_done: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._driver.run(self._reading.close(is_done=is_done))
        finally:
            self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        """After an exception, the batch at which it happened is not committed."""
        self._close(is_done=kind is None)


class AsyncReader(Face):
    """The same for asyncio: `async with AsyncReader("orders") as reader: async for batch in reader: …`.

    It connects when it is entered, or with its first call.
    """

    def __init__(self, topics: Topics | None = None, **options: Unpack[ReadOptions]) -> None:
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
        self._driver: AioDriver | None = None
        self._is_closed = False

    async def begin(self) -> Self:
        """Connect, and resolve where to start. Done by `async with` and by the first call."""
        if self._driver is not None:
            return self
        self._driver = AioDriver(self._asked.config)
        self._reading = _reading(self._asked, self._driver)
        try:
            await self._driver.run(self._reading.begin())
        except BaseException:
            await self.close()
            raise
        return self

    async def _begun(self) -> AioDriver:
        await self.begin()
        assert self._driver is not None
        return self._driver

    async def poll(self, timeout_ms: float | None = POLL_MS) -> Any:
        """The next batch; one without rows when none came in time, or none will come."""
        batch = await self._poll(timeout_ms)
        return load(ARROW).EMPTY if batch is None else batch

    async def _poll(self, timeout_ms: float | None) -> Any:
        await (await self._begun()).run(self._reading.poll(timeout_ms))
        return self._reading.take()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (batch := await self._poll(None)) is not None:
            yield batch

    async def to_table(self) -> Any:
        """All that is left, as one pyarrow.Table: up to the stop, or else up to what was there at the beginning."""
        await (await self._begun()).run(self._reading.stop_now())
        return load(ARROW).table([batch async for batch in self])

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
        await (await self._begun()).run(self._reading.seek(TopicPartition(topic, partition), start_position(position)))

    async def drop(self, topic: str, partition: int | None = None) -> None:
        """Go on without this topic, or this partition of it."""
        await (await self._begun()).run(self._reading.drop(topic, partition))

    async def close(self) -> None:
        """Commit what was returned if commits are made by themselves, leave the group, close the connections."""
        await self._close(is_done=True)

    async def _close(self, *, is_done: bool) -> None:
        if self._driver is None or self._is_closed:
            return
        self._is_closed = True
        try:
            await self._driver.run(self._reading.close(is_done=is_done))
        finally:
            await self._driver.close()

    async def __aenter__(self) -> Self:
        return await self.begin()

    async def __aexit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        await self._close(is_done=kind is None)


def read(topics: Topics | None = None, **options: Unpack[ReadOptions]) -> Reader:
    """Read topics as Arrow batches, ordered by time across all partitions.

        for batch in lowwater.read("orders", start="-1h"):          # and on, as records are written
            ...
        table = lowwater.read(["orders", "refunds"], stop="latest").to_table()

    topics: a name; "orders[0]" for one partition; "^orders-.*" for all that match; a list of those; or each with its
        start, {"orders": "-1h", "rates": "earliest"}. Or pattern="orders-.*".
    bootstrap: "host:port" of some brokers, localhost:9092 unless said here or in config.
    start: "earliest", "latest", "-1h", "-500" (that many before the end), "@2026-11-01T00:00Z", "today", 17 (an
        offset), "stored" (of the group), with fallbacks, "stored|-1h"; a datetime, a timedelta; or a mapping of those
        by topic or "topic[partition]". Without it: everything, or with a group where it left off.
    stop: where to end, exclusive, in the same forms: "latest" is what is there now. Without it reading never ends.
    group: share the partitions with others of this name, and commit what was returned. One never starts before what is
        committed: start is the later of the two. join=False reads all partitions and only uses the group's offsets.
    order: "timestamp"; "partition" never changes the order within a partition; None takes what comes, fastest.
    batch_size: rows per batch, at most. held_bytes_max: memory for what waits to be in order.
    cutoff: from this moment on (a datetime, "-5m") records are not waited for to be in order.
    on_lost: what if records are gone before they are read: "error", or go on at "earliest" or "latest" and say so in
        `lost`. on_commit_failure: "retry" for a while and then raise, "raise" at once, or "continue" and count.
    zone: the time zone of dates that name none. config: any other setting, by Kafka's or librdkafka's name.
    """
    return Reader(topics, **options)


def _reading(asked: Asked, driver: Any) -> Reading:
    options = replace(asked.options, cutoff_ms=asked.cutoff_ms(driver.now_ms()))
    return Reading(Cluster(Network(asked.config, driver)), asked.wanted, options)


def _signature() -> inspect.Signature:
    """As it is written out once, in `ask`."""
    return inspect.signature(ask).replace(return_annotation=inspect.Signature.empty)


for _one in (read, Reader, AsyncReader):
    _one.__signature__ = _signature()  # type: ignore[union-attr]
