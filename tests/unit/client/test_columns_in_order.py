"""Columns and `Merging` together do what the plainest ordered reader does, and hold no more than they say."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.fetched import P0, P1, P2, batch, rows_of
from tests.unit.merge.rows import PlainReader, Row
from tests.unit.merge.test_merging import play

from lowwater.client.columns import Held
from lowwater.client.slices import FetchedSlice
from lowwater.merge.merging import Merging
from lowwater.types import TopicPartition
from lowwater.wire.records import Record, build_batch

LOGS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["cars", "bikes"]), st.integers(0, 2)),
    st.lists(st.none() | st.integers(0, 30), max_size=25),
    min_size=1,
    max_size=5,
)
CREATED_MS = 25


class ColumnReader(PlainReader):
    """The same through bytes and columns."""

    def __init__(self, logs: dict[TopicPartition, list[int | None]], **options: Any) -> None:
        super().__init__(logs, **options)
        self.columns = Held(created_ms=self.created_ms)
        for one, log in logs.items():
            self.columns.add(one, 0, len(log))

    def fetch(self, one: TopicPartition, count: int) -> None:
        progress = self.merging[one]
        if progress.is_paused:
            return
        start, end = progress.position, min(progress.position + count, len(self.logs[one]))
        stamps = list(enumerate(self.logs[one][start:end], start))
        records = [Record(at, stamp, b"key", b"value") for at, stamp in stamps if stamp is not None]
        data = build_batch(records, base_offset=start, last_offset=end - 1, codec=start % 5) if start < end else b""
        [arrival] = self.columns.take([FetchedSlice(one, start, memoryview(data))])
        assert arrival.position == end
        self.merging.arrived(
            one,
            arrival.position,
            newest_ms=arrival.newest_ms,
            rows=arrival.rows,
            size=arrival.size,
            future_rows=arrival.future_rows,
        )
        self.held += [None] * arrival.rows  # type: ignore[list-item]
        self.merging.balance()

    def poll(self) -> list[Row]:
        released = self.columns.release(self.merging.mark, self.batch_size)
        for one, rows, size in released.left:
            self.merging.left(one, rows, size)
            del self.held[:rows]
        self.merging.balance()
        if not self.held:
            assert self.merging.held_bytes == 0, "bytes are held without rows"
        return [Row(row[3], row[0], row[1], row[2]) for row in rows_of(released.batch)]


@given(LOGS, st.integers(1, 6), st.integers(0, 1 << 30))
def test_any_interleaving_releases_what_the_plainest_reader_does_and_in_the_same_batches(
    logs: dict[TopicPartition, list[int | None]], batch_size: int, seed: int
) -> None:
    options: dict[str, Any] = {"batch_size": batch_size, "held_bytes_max": 1 << 40, "created_ms": CREATED_MS}
    plain = play(PlainReader(logs, **options), random.Random(seed))
    assert play(ColumnReader(logs, **options), random.Random(seed)) == plain


ROW = b"x" * (1 << 20)
BOUND = 24 << 20


def test_large_rows_and_a_slow_partition_stay_inside_the_byte_bound() -> None:
    """Two partitions run ahead of a third that comes seldom; what is held is counted by memory, not by rows."""
    merging, held = Merging(batch_size=1000, held_bytes_max=BOUND), Held()
    ends = {P0: 4, P1: 60, P2: 60}
    for one, end in ends.items():
        merging.add(one, 0, end)
        held.add(one, 0, end)
    memory = most = 0

    def let_go_of(size: int) -> Any:
        def let_go() -> None:
            nonlocal memory
            memory -= size

        return let_go

    released_rows = rounds = 0
    while released_rows < sum(ends.values()):
        rounds += 1
        assert rounds < 1000, "no progress"
        turn = [one for one, progress in merging if not progress.is_paused and progress.position < ends[one]]
        if rounds % 20:
            turn = [one for one in turn if one != P0] or [P0]
        slices = [FetchedSlice(one, at, batch(at, at * (15 if one == P0 else 1), value=ROW)) for one in turn
                  for at in (merging[one].position,)]  # fmt: skip
        size = sum(len(one.records) for one in slices)
        memory += size
        for one, position, newest_ms, rows, charged, future_rows, error in held.take(slices, let_go_of(size)):
            assert error is None
            merging.arrived(one, position, newest_ms=newest_ms, rows=rows, size=charged, future_rows=future_rows)
        most = max(most, memory)
        assert memory <= merging.held_bytes
        while (released := held.release(merging.mark, 1000)).batch is not None:
            released_rows += released.batch.num_rows
            for left in released.left:
                merging.left(*left)
        merging.balance()
    assert memory == merging.held_bytes == 0
    assert 10 << 20 < most <= BOUND + 3 * (len(ROW) + 4096)
