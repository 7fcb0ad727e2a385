"""Reading topics as Arrow batches, in the order of time across partitions.

for batch in lowwater.read("orders", start="-1h", stop="latest"):
    print(batch.to_pandas())
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from lowwater.client.arguments import check_timeout
from lowwater.client.asked import Asked, ReadOptions, ask, check_names
from lowwater.client.blocking import BlockingDriver
from lowwater.client.loading import READING, load, load_behind, require_extra
from lowwater.client.reader_state import ARROW, POLL_MS, ReaderState, reading_of, written_out
from lowwater.client.reading import Reading
from lowwater.client.threaded import ThreadedDriver
from lowwater.client.wanted import Start, Topics, start_position
from lowwater.types import TopicPartition

T = TypeVar("T")

LOG = logging.getLogger("lowwater.reader")
LEAVE_MS = 2_000
"""How long a reader that nobody closed takes to leave its group."""


@written_out
class Reader(ReaderState):
    """Reads topics as Arrow batches; `read` explains the options.

    One thread at a time. With a group a thread of its own keeps the membership while you work on a batch.
    """

    def __init__(self, topics: Topics | None = None, **options: Unpack[ReadOptions]) -> None:
        check_names(options)
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
        self._core = reading_of(asked, self._driver)
        self._columns = asked.options.columns
        self._zone = asked.zone
        self._is_closed = False
        try:
            self._driver.run(self._reading.begin())
        except BaseException:
            self.close()
            raise
        if joins:
            _remember(self)

    def _see(self, look: Callable[[Reading], T]) -> T:
        """With a group, in the thread that keeps the membership: partitions may come and go there."""
        if self._is_closed or not isinstance(self._driver, ThreadedDriver):
            return look(self._reading)
        return self._driver.run(_looking(look, self._reading))

    def poll(self, timeout_ms: float | None = POLL_MS) -> Any:
        """The next batch, as a pyarrow.RecordBatch; one without rows when none came in time, or none will come.

        None as the time waits for as long as it takes.
        """
        check_timeout(timeout_ms)
        batch = self._poll(timeout_ms)
        return load(ARROW).empty(self._columns) if batch is None else batch

    def _poll(self, timeout_ms: float | None, *, is_done: bool = True) -> Any:
        self._driver.run(self._reading.poll(timeout_ms, is_done=is_done))
        return self._reading.take()

    def __iter__(self) -> Iterator[Any]:
        """Batches with rows in them; without a stop, for ever."""
        while (batch := self._poll(None)) is not None:
            yield batch

    # ---- everything at once

    def to_table(self) -> Any:
        """All that is left, as one pyarrow.Table: up to the stop, or else up to what was there at the beginning."""
        self._driver.run(self._reading.stop_now())
        try:
            return load(ARROW).table(self._rest(), self._columns)
        except BaseException:
            self._driver.run(self._reading.give_back())
            raise

    read_all = to_table

    def _rest(self) -> Iterator[Any]:
        """All batches that are left. As with a single one, the caller is done with them when he asks for more."""
        batch = self._poll(None)
        while batch is not None:
            yield batch
            batch = self._poll(None, is_done=False)

    def to_reader(self) -> Any:
        """The same, batch by batch, as a pyarrow.RecordBatchReader: for DuckDB, polars, datasets, Flight."""
        self._driver.run(self._reading.stop_now())
        return load(ARROW).batch_reader(self._rest(), self._columns)

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
        self._driver.run(self._reading.seek(TopicPartition(topic, partition), start_position(position, self._zone)))

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

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            self._leave_unclosed()

    def _leave_unclosed(self) -> None:
        """Whoever forgets to close leaves no sockets, no thread and, in its group, no member behind. What it returned
        last may not be worked on yet, or never will be: that is not committed."""
        self._is_closed = True
        with contextlib.suppress(Exception):
            if isinstance(self._driver, ThreadedDriver):
                self._driver.run(_leaving(self._reading), LEAVE_MS)
        with contextlib.suppress(Exception):
            self._driver.close()


_unclosed: weakref.WeakSet[Reader] = weakref.WeakSet()
_at_exit: list[object] = []


def _remember(reader: Reader) -> None:
    """At the end of the program it leaves its group, if it is there by then."""
    if not _at_exit:
        # Now, and not when this is imported: what is registered last runs first, while clients still have threads.
        _at_exit.append(atexit.register(_leave_all))
    _unclosed.add(reader)


def _leave_all() -> None:
    for reader in [one for one in _unclosed if not one._is_closed]:
        reader._leave_unclosed()


async def _leaving(reading: Reading) -> None:
    if reading.owes_a_commit:
        LOG.warning(
            "a reader of the group %s was not closed: what it returned last is not committed and comes again; "
            "use `with`, or close it when you are done",
            reading.group,
        )
    await reading.close(is_done=False)


async def _looking(look: Callable[[Reading], T], reading: Reading) -> T:
    return look(reading)


@written_out
def read(topics: Topics | None = None, **options: Unpack[ReadOptions]) -> Reader:
    """Read topics as Arrow batches, ordered by time across all partitions.

        for batch in lowwater.read("orders", start="-1h"):          # and on, as records are written
            ...
        table = lowwater.read(["orders", "refunds"], stop="latest").to_table()

    topics: a name; "orders[0]" for one partition; "^orders-.*" for all that match; a list of the first two; or each
        with its start, {"orders": "-1h", "rates": "earliest"}. Or pattern="orders-.*".
    bootstrap: "host:port" of some brokers, localhost:9092 unless said here or in config.
    start: "earliest", "latest", "-1h", "-500" (that many before the end), "@2026-11-01T00:00Z", "today", 17 (an
        offset), "stored" (of the group), with fallbacks, "stored|-1h"; a datetime, a timedelta; or a mapping of those
        by topic or "topic[partition]". Without it: everything, or with a group where it left off.
    stop: where to end, exclusive, in the same forms: "latest" is what is there now. Without it reading never ends.
    group: share the partitions with others of this name, and commit what was returned. One never starts before what is
        committed: start is the later of the two. join=False reads all partitions and only uses the group's offsets.
    order: "timestamp"; "partition" never changes the order within a partition; None takes what comes, fastest.
    columns: only these, of key, value, topic, partition, offset, timestamp, timestamp_type and headers.
    batch_size: rows per batch, at most. held_bytes_max: memory for what waits to be in order.
    cutoff: from this moment on (a datetime, "-5m") records are not waited for to be in order.
    on_lost: what if records are gone before they are read: "error", or go on at "earliest" or "latest" and say so in
        `lost`. on_commit_failure: "retry" for a while and then raise, "raise" at once, or "continue" and count.
    topic_ids: by topic, the id it must have: another one of the same name is a TopicRecreatedError.
    zone: the time zone of dates that name none. config: any other setting, by Kafka's or librdkafka's name.
    """
    return Reader(topics, **options)
