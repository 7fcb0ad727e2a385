"""More is held than is allowed: what is due last is put back and comes again, and nobody notices but by the time."""

from __future__ import annotations

import pytest
from tests.reader.logs import StagedLog
from tests.reader.staged import Stage, names

from lowwater.types import TopicPartition

P0, P1, P2 = (TopicPartition("cars", number) for number in range(3))
FUTURE_MS = 1 << 50


def stage_of(*logs: list[int]) -> Stage:
    staged = {}
    for one, times in zip((P0, P1, P2), logs, strict=False):
        staged[one] = StagedLog(one)
        for time in times:
            staged[one].write([time])
    return Stage(staged)


def read_all(stage: Stage, batches: int = 4) -> tuple[list[str], int]:
    """Every row, and the most bytes that were held."""
    rows: list[str] = []
    most = 0
    for _ in range(1000):
        asked = [one for one, offset in stage.asked().items() if stage.logs[one].left(offset)]
        if asked:
            stage.fetch(dict.fromkeys(asked, batches))
        rows += names(stage.poll())
        assert stage.reading is not None
        assert stage.reading.partitions.releasing is not None
        most = max(most, stage.reading.partitions.releasing.held_bytes)
        if stage.reading.is_finished:
            return rows, most
    raise AssertionError("it stands still")


def test_partitions_that_do_not_fit_together_come_in_order_all_the_same() -> None:
    times = [[10 * at + number for at in range(60)] for number in range(3)]
    stage = stage_of(*times)
    stage.open(stop="latest", held_bytes_max=1500)
    rows, _ = read_all(stage)
    assert rows == [f"p{at % 3}@{10 * (at // 3) + at % 3}" for at in range(180)]
    stage.close()


def test_a_partition_of_rows_of_the_future_alone_is_put_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowwater.client.releasing.MOST_BYTES", 0)
    future = [FUTURE_MS + at for at in range(200)]
    stage = stage_of(future, [100, 200, 300])
    reading = stage.open(stop="latest", held_bytes_max=4000)
    rows, most = read_all(stage)
    assert rows == ["p1@100", "p1@200", "p1@300", *(f"p0@{time}" for time in future)]
    assert most < 10_000, "all of it would be 30,000"
    assert reading.partitions.releasing is not None
    assert reading.partitions.releasing.late_rows == 0
    stage.close()


def test_rows_behind_more_of_the_future_than_can_be_held_come_late_and_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lowwater.client.releasing.MOST_BYTES", 0)
    stage = stage_of([*(FUTURE_MS + at for at in range(200)), 150], [100, 200, 300])
    reading = stage.open(stop="latest", held_bytes_max=4000)
    rows, _ = read_all(stage)
    assert rows[:3] == ["p1@100", "p1@200", "p1@300"]
    assert sorted(rows[3:]) == sorted(["p0@150", *(f"p0@{FUTURE_MS + at}" for at in range(200))])
    assert reading.partitions.releasing is not None
    assert reading.partitions.releasing.late_rows == 1
    stage.close()
