"""A poll that is given up, and errors in the middle: no row is lost, none comes twice."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.reader.logs import StagedLog, place
from tests.reader.staged import Stage, names

from lowwater.client.coordinator import Committed
from lowwater.client.errors import ClientError, CorruptRecordsError
from lowwater.client.flow import Flow
from lowwater.positions.grammar import parse_start
from lowwater.types import TopicPartition

P0, P1 = TopicPartition("cars", 0), TopicPartition("cars", 1)


def stage_of(**logs: list[int]) -> Stage:
    stage = Stage({place(name): StagedLog(place(name)) for name in logs})
    for name, times in logs.items():
        stage.logs[place(name)].write(times)
    return stage


def test_a_batch_that_nobody_took_is_what_the_next_poll_gives() -> None:
    stage = stage_of(p0=[100, 200])
    reading = stage.open()
    flow = Flow(reading.poll(None))
    stage.fetch({P0: 2})
    assert flow.done
    # Whoever polled is gone before he took it.
    assert names(stage.poll()) == ["p0@100", "p0@200"]
    assert stage.poll() is None


def test_a_poll_that_is_cancelled_while_it_waits_leaves_everything_to_the_next() -> None:
    stage = stage_of(p0=[100], p1=[200])
    reading = stage.open()
    flow = Flow(reading.poll(None))
    flow.cancel()
    stage.fetch({P0: 1})
    assert stage.poll() is None
    stage.fetch({P1: 1})
    assert stage.drain() == ["p0@100", "p1@200"]


def test_a_poll_waits_no_longer_than_its_time() -> None:
    stage = stage_of(p0=[100])
    reading = stage.open()
    flow = Flow(reading.poll(250))
    stage.driver.time.advance(249)
    assert not flow.done
    stage.driver.time.advance(1)
    assert flow.done
    assert reading.take() is None


def test_a_poll_wakes_when_rows_can_go() -> None:
    stage = stage_of(p0=[100], p1=[200])
    reading = stage.open()
    flow = Flow(reading.poll(None))
    stage.fetch({P1: 1})
    assert not flow.done
    stage.fetch({P0: 1})
    assert flow.done
    assert names(reading.take()) == ["p0@100", "p1@200"]


def test_a_damaged_batch_is_told_behind_the_rows_before_it_and_can_be_passed() -> None:
    stage = stage_of(p0=[100, 150, 300], p1=[50, 250])
    behind, data = stage.logs[P0].batches[1]
    stage.logs[P0].batches[1] = behind, data[:-1] + b"?"
    reading = stage.open()
    stage.fetch({P0: 3, P1: 2})
    assert names(stage.poll()) == ["p1@50", "p0@100"]
    for _ in range(2):
        with pytest.raises(CorruptRecordsError) as caught:
            stage.poll()
        assert (caught.value.partition, caught.value.offset) == (0, 1)
    stage.run(reading.seek(P0, parse_start("2")))
    stage.fetch({P0: 1})
    assert stage.drain() == ["p1@250", "p0@300"]


def test_one_can_go_on_without_a_partition_that_is_damaged() -> None:
    stage = stage_of(p0=[100, 150], p1=[50, 250])
    behind, data = stage.logs[P0].batches[1]
    stage.logs[P0].batches[1] = behind, data[:-1] + b"?"
    reading = stage.open()
    stage.fetch({P0: 2, P1: 2})
    assert names(stage.poll()) == ["p1@50", "p0@100"]
    stage.run(reading.drop("cars", 0))
    assert stage.drain() == ["p1@250"]
    assert reading.partitions.positions() == {P1: 2}


class Commits:
    """In the place of a group: what the caller is done with."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, int | Committed] = {}

    def done(self, offsets: Mapping[TopicPartition, int | Committed]) -> None:
        self.offsets.update(offsets)

    def check(self) -> None: ...

    async def give_up(self, partitions: list[TopicPartition]) -> None: ...

    async def close(self, timeout_ms: float) -> None: ...


def test_a_batch_that_nobody_took_gives_up_the_rows_of_partitions_that_go() -> None:
    stage = stage_of(p0=[100, 300, 500], p1=[200, 400])
    reading = stage.open(batch_size=2)
    commits = reading._committer = Commits()  # type: ignore[assignment]
    stage.fetch({P0: 3, P1: 2})
    assert names(stage.poll()) == ["p0@100", "p1@200"]
    stage.run(reading.poll(0))
    stage.run(reading.revoked([P1]))
    stage.fetch({P0: 2})
    assert stage.drain() == ["p0@300", "p0@500"]
    stage.run(reading.poll(0))
    assert commits.offsets == {P0: Committed(3, leader_epoch=0), P1: Committed(1, leader_epoch=0)}
    stage.close()


@pytest.mark.parametrize("has_group", [False, True])
def test_a_batch_that_nobody_took_has_no_rows_of_before_a_seek(has_group: bool) -> None:
    stage = stage_of(p0=[100, 300, 500], p1=[200, 400])
    reading = stage.open(columns=["timestamp", "topic", "partition"])
    commits = Commits()
    if has_group:
        reading._committer = commits  # type: ignore[assignment]
    stage.fetch({P0: 2, P1: 2})
    stage.run(reading.poll(0))
    stage.run(reading.seek(P0, parse_start("2")))
    assert names(stage.poll()) == ["p1@200"]
    stage.fetch({P0: 1})  # which was asked for before the seek
    stage.fetch({P0: 1})
    assert stage.drain() == ["p1@400", "p0@500"]
    stage.run(reading.poll(0))
    assert commits.offsets == ({P0: Committed(3, 0), P1: Committed(2, 0)} if has_group else {})
    stage.close()


def test_a_batch_that_nobody_took_has_no_rows_of_what_was_dropped() -> None:
    stage = stage_of(p0=[100, 300], p1=[200])
    reading = stage.open()
    stage.fetch({P0: 2, P1: 1})
    stage.run(reading.poll(0))
    stage.run(reading.drop("cars", 0))
    assert stage.drain() == ["p1@200"]
    stage.run(reading.poll(0))
    stage.run(reading.drop("cars"))
    assert stage.drain() == []
    stage.close()


def test_a_poll_that_waits_is_given_no_rows_of_partitions_that_are_going() -> None:
    stage = stage_of(p0=[100], p1=[50, 200])
    reading = stage.open()
    reading._committer = Commits()  # type: ignore[assignment]
    stage.fetch({P1: 1})
    waiting = Flow(reading.poll(None))
    stage.driver.time.settle()
    assert not waiting.done
    stage.run(reading.revoked([P1]))
    stage.fetch({P0: 1})
    assert waiting.done
    assert names(reading.take()) == ["p0@100"]


def test_a_second_poll_at_the_same_time_is_refused() -> None:
    stage = stage_of(p0=[100])
    reading = stage.open()
    waiting = Flow(reading.poll(None))
    with pytest.raises(ClientError, match="polled already"):
        stage.run(reading.poll(0))
    stage.fetch({P0: 1})
    assert waiting.done
    assert names(reading.take()) == ["p0@100"]


def test_partitions_with_nothing_to_read_do_not_make_the_others_live() -> None:
    stage = stage_of(p0=[100], p1=[50, 200], p2=[])
    stage.open(start={P0: 1, P1: 0, TopicPartition("cars", 2): 0}, stop={P0: 1, P1: 2})
    assert stage.reading is not None
    stage.fetch({P1: 1})
    assert stage.drain() == ["p1@50"]
    assert stage.reading.partitions.releasing is not None
    assert not stage.reading.partitions.releasing.is_live
    stage.fetch({P1: 1})
    assert stage.drain() == ["p1@200"]
    assert stage.reading.partitions.releasing.is_live
