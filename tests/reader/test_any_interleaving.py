"""Whatever a broker does, in whatever order: a reader gives the records of the log, each once, in the promised order,
within the promised memory. The model is the log itself, sorted.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Literal, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reader.logs import NO_TIME, StagedLog
from tests.reader.staged import Stage

from lowwater.client.chunks import HELD_ROW_BYTES
from lowwater.types import TopicPartition
from lowwater.wire.records import BatchHeader, read_records

PARTITIONS = [
    TopicPartition("cars", 0),
    TopicPartition("cars", 1),
    TopicPartition("bikes", 0),
    TopicPartition("cars", 2),
]
FUTURE_MS = 1 << 50
POLLS_MAX = 2_000
BATCHES_MAX = 4  # of one partition in one answer


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int


def rows_of(batch: Any) -> list[Row]:
    columns = [batch.column(name).to_pylist() for name in ("topic", "partition", "offset")]
    times = [NO_TIME if time is None else time for time in batch.column("timestamp").cast("int64").to_pylist()]
    return [Row(*row) for row in zip(*columns, times, strict=True)]


def thing(chance: random.Random, clock: int, kind: str) -> Any:
    """The next thing in a log: mostly a record, at `clock` unless the kind allows others."""
    draw = chance.random()
    if draw < 0.08:
        return {"abort": [clock] * chance.randint(1, 2)}
    if draw < 0.16:
        return {"commit": [clock] * chance.randint(1, 2)}
    if draw < 0.22:
        return {"empty": chance.randint(1, 4)}
    if kind == "wild" and draw < 0.3:
        return None
    if kind == "wild" and draw < 0.34:
        return FUTURE_MS + clock
    if kind == "wild" and draw < 0.5:
        return max(clock - chance.randint(1, 30), 0)
    return clock


def log_of(one: TopicPartition, chance: random.Random, kind: str) -> StagedLog:
    log = StagedLog(one)
    clock = chance.choice((0, 0, 50))
    for _ in range(chance.choice((0, 1, 5, 15))):
        log.write([thing(chance, clock, kind)])
        clock += chance.choice((0, 1, 10))
    return log


def model_rows(log: StagedLog) -> list[Row]:
    """The rows of a log for those who read what is committed, read in the plainest way."""
    rows = []
    for _, data in log.batches:
        header = BatchHeader.parse(data)
        if header.is_control or any(first <= header.base_offset < marker for first, marker in log.aborted):
            continue
        rows += [Row(*log.one, record.offset, record.timestamp) for record in read_records(data)]
    return rows


def answer_bytes_max(logs: dict[TopicPartition, StagedLog]) -> int:
    """What one answer can add to what is held, of one partition."""
    sizes = [
        len(data) + HELD_ROW_BYTES * BatchHeader.parse(data).record_count
        for log in logs.values()
        for _, data in log.batches
    ]
    return BATCHES_MAX * max(sizes, default=0)


def play(stage: Stage, chance: random.Random, held_bytes_max: int) -> list[Row]:
    """Answers and polls in any order, until everything was read."""
    rows: list[Row] = []
    # Half of the bound, then everybody who is ahead pauses; of each partition an answer may be here and one on its way.
    bound = held_bytes_max // 2 + 2 * len(stage.logs) * answer_bytes_max(stage.logs)
    for _ in range(POLLS_MAX):
        asked = stage.asked()
        behind = [one for one, offset in asked.items() if stage.logs[one].left(offset)]
        if behind and chance.random() < 0.7:
            chosen = chance.sample(behind, chance.randint(1, len(behind)))
            stage.fetch({one: chance.randint(1, BATCHES_MAX) for one in chosen})
        elif not behind:
            stage.expire()
        batch = stage.poll()
        if batch is not None:
            rows += rows_of(batch)
        assert stage.reading is not None
        assert stage.reading.partitions.releasing is not None
        assert stage.reading.partitions.releasing.held_bytes <= bound
        if stage.reading.is_finished:
            return rows
    raise AssertionError("it stands still")


@settings(max_examples=150)
@given(
    st.integers(0, 1 << 40),
    st.sampled_from(["timestamp", "partition", None]),
    st.sampled_from(["ordered", "wild"]),
    st.sampled_from([1, 2, 7, 1000]),
    st.sampled_from([1, 2_000, 1 << 27]),
)
def test_every_record_comes_once_and_in_order(
    seed: int,
    order: Literal["timestamp", "partition"] | None,
    kind: str,
    batch_size: int,
    held_bytes_max: int,
) -> None:
    chance = random.Random(seed)
    logs = {one: log_of(one, chance, kind) for one in PARTITIONS[: chance.randint(1, 4)]}
    stage = Stage(logs)
    stage.open(stop="latest", order=order, batch_size=batch_size, held_bytes_max=held_bytes_max)
    rows = play(stage, chance, held_bytes_max)
    expected = [row for log in logs.values() for row in model_rows(log)]
    assert Counter(rows) == Counter(expected)
    assert stage.reading is not None
    assert stage.reading.partitions.releasing is not None
    late = stage.reading.partitions.releasing.late_rows
    if order != "timestamp":
        for one in logs:
            offsets = [row.offset for row in rows if row[:2] == one]
            assert offsets == sorted(offsets), "a partition's own records change places"
    if kind == "ordered" and order is not None:
        assert rows == sorted(expected, key=lambda row: (row.timestamp, row.topic, row.partition, row.offset))
        assert late == 0
    if order == "timestamp":
        check_late(rows, logs, late)
    assert stage.reading.partitions.positions() == {one: log.end for one, log in logs.items()}
    stage.close()


@settings(max_examples=100)
@given(st.integers(0, 1 << 40), st.sampled_from(["timestamp", "partition", None]), st.sampled_from([1, 5, 1000]))
def test_any_range_gives_its_rows_and_no_others(
    seed: int, order: Literal["timestamp", "partition"] | None, batch_size: int
) -> None:
    chance = random.Random(seed)
    logs = {one: log_of(one, chance, "wild") for one in PARTITIONS[: chance.randint(1, 4)]}
    starts = {one: chance.randint(0, log.end) for one, log in logs.items()}
    stops = {
        one: chance.choice((chance.randint(0, log.end), f"e@{chance.randint(0, 60)}")) for one, log in logs.items()
    }
    stage = Stage(logs)
    stage.open(start=starts, stop=stops, order=order, batch_size=batch_size)
    rows = play(stage, chance, held_bytes_max=1 << 27)
    assert stage.reading is not None
    positions = stage.reading.partitions.positions()
    expected = []
    for one, log in logs.items():
        wished = [row for row in model_rows(log) if row.offset >= starts[one]]
        expected += [row for row in wished if is_before(row, stops[one])]
        left_out = [row.offset for row in wished if not is_before(row, stops[one])]
        assert positions[one] <= min(left_out, default=log.end), "what was left out would be committed over"
    assert Counter(rows) == Counter(expected)
    stage.close()


def stop_of(log: StagedLog, chance: random.Random) -> int | str:
    """An offset, or a time."""
    return chance.choice((chance.randint(0, log.end), f"e@{chance.randint(0, 60)}"))


def is_before(row: Row, stop: int | str) -> bool:
    return row.timestamp < int(stop[2:]) if isinstance(stop, str) else row.offset < stop


def check_late(rows: list[Row], logs: dict[TopicPartition, StagedLog], late: int) -> None:
    """Only rows that lie behind younger ones in their own partition may come late, and they are counted."""
    keys = {row: key for log in logs.values() for row, key in keyed(model_rows(log))}
    newest, found = -(1 << 63), 0
    for row in rows:
        key, clock_before = keys[row]
        if key < newest:
            found += 1
            assert key < clock_before, f"{row} is late, though its partition was in order"
        newest = max(newest, key)
    assert found == late


def keyed(rows: list[Row]) -> list[tuple[Row, tuple[int, int]]]:
    """The time by which each row of one partition is ordered, and the clock of the partition before it."""
    clock, found = -(1 << 63), []
    for row in rows:
        before = clock
        if row.timestamp >= FUTURE_MS:
            found.append((row, (row.timestamp, before)))
            continue
        key = max(clock, NO_TIME) if row.timestamp == NO_TIME else row.timestamp
        clock = max(clock, key)
        found.append((row, (key, before)))
    return found
