"""When a reader counts as live although its partitions come, go, and are moved: until then rows come in order."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import PlayedCluster

from lowwater.client.errors import ClientError
from lowwater.client.flow import Flow
from lowwater.client.reading import Options, Reading
from lowwater.client.wanted import start_position, wanted
from lowwater.types import TopicPartition

T0, T1 = (TopicPartition("t", number) for number in range(2))


class Played:
    """A reader on brokers that are played, all on virtual time. Every row is a batch; times are given in ms."""

    def __init__(self, *logs: list[int]) -> None:
        self.brokers = PlayedCluster()
        for one, times_ms in zip(self.brokers.create("t", *[1] * len(logs)), logs, strict=True):
            self.write(one, times_ms)

    def write(self, one: TopicPartition, times_ms: list[int]) -> None:
        for time_ms in times_ms:
            self.brokers.append(one, 1, b"v", time_ms)

    def damage(self, one: TopicPartition, offset: int) -> None:
        batch = self.brokers.logs[one].batches[offset]
        batch.data = batch.data[:-1] + bytes([batch.data[-1] ^ 1])

    def hold_back(self, one: TopicPartition, is_slow: bool = True) -> None:
        """Nothing of what it has now comes before that is over."""
        log = self.brokers.logs[one]
        log.is_slow, log.local_start = is_slow, log.end

    def begin(self, *, stop: str | None = None, **options: Any) -> Played:
        self.reading = Reading(self.brokers.cluster, wanted("t", stop=stop), Options(**options))
        self.run(self.reading.begin())
        return self

    def run(self, coroutine: Any) -> Any:
        flow = Flow(coroutine)
        self.brokers.time.advance(0)
        return flow.result()

    def seek(self, one: TopicPartition, offset: int) -> None:
        self.run(self.reading.seek(one, start_position(offset)))

    def rows(self) -> list[int]:
        """The times of all that comes within some seconds."""
        return [time_ms for _ in range(20) for time_ms in self.poll()]

    def poll(self) -> list[int]:
        self.brokers.time.advance(200)
        self.run(self.reading.poll(0))
        batch = self.reading.take()
        return [] if batch is None else batch.column("timestamp").cast("int64").to_pylist()

    @property
    def is_live(self) -> bool:
        assert self.reading.partitions.releasing is not None
        return self.reading.partitions.releasing.is_live

    @property
    def late_rows(self) -> int:
        assert self.reading.partitions.releasing is not None
        return self.reading.partitions.releasing.late_rows


def test_whoever_seeks_past_a_damaged_row_gets_the_rows_behind_it_in_order_with_the_others() -> None:
    played = Played([10, 20, 30, 40], [15, 25, 35, 45])
    played.damage(T0, 1)
    played.begin()
    assert played.poll() == [10]
    with pytest.raises(ClientError, match="offset 1"):
        played.rows()
    played.hold_back(T0)
    played.seek(T0, 2)
    assert played.rows() == []
    assert not played.is_live
    played.hold_back(T0, is_slow=False)
    assert played.rows() == [15, 25, 30, 35, 40, 45]
    assert (played.late_rows, played.is_live) == (0, True)


def test_a_seek_in_the_only_partition_that_has_rows_makes_nobody_live() -> None:
    played = Played([], [10, 20, 30]).begin()
    played.seek(T1, 1)
    assert not played.is_live
    assert played.rows() == [20, 30]
    assert played.is_live


def test_a_backlog_is_in_order_after_everything_was_taken_away_and_given_back() -> None:
    played = Played([10, 20, 30], [15, 25, 35])
    played.hold_back(T0)
    played.begin()
    assert played.rows() == [], "one is behind, the other at its end"
    played.run(played.reading.revoked([T0, T1]))
    assert not played.is_live
    played.run(played.reading.assigned([T0, T1]))
    assert played.rows() == []
    played.hold_back(T0, is_slow=False)
    assert played.rows() == [10, 15, 20, 25, 30, 35]
    assert (played.late_rows, played.is_live) == (0, True)


def test_a_backlog_is_in_order_although_all_that_was_there_before_was_read_but_not_returned() -> None:
    played = Played([10], [15]).begin(batch_size=1)
    assert played.poll() == [10]
    played.run(played.reading.revoked([T0, T1]))
    played.write(T0, [20, 30])
    played.write(T1, [25, 35])
    played.hold_back(T0)
    played.run(played.reading.assigned([T0, T1]))
    assert played.rows() == []
    played.hold_back(T0, is_slow=False)
    assert played.rows() == [10, 15, 20, 25, 30, 35]
    assert (played.late_rows, played.is_live) == (0, True)


@pytest.mark.parametrize("how", ["drop", "revoke"])
def test_a_partition_that_goes_for_good_is_not_waited_for(how: str) -> None:
    played = Played([10, 20, 30], [15, 25, 35])
    played.hold_back(T0)
    played.begin()
    assert played.rows() == []
    played.run(played.reading.drop("t", 0) if how == "drop" else played.reading.revoked([T0]))
    assert played.rows() == [15, 25, 35]
    assert played.is_live


def test_a_reader_that_is_live_stays_so_and_waits_for_nobody_any_more() -> None:
    played = Played([10], [15]).begin()
    assert played.rows() == [10, 15]
    played.run(played.reading.revoked([T0, T1]))
    played.hold_back(T0)
    played.run(played.reading.assigned([T0, T1]))
    assert played.is_live
    assert played.rows() == [15], "it comes again, as nothing was committed; the other one is not waited for"
    played.seek(T1, 0)
    assert played.is_live
    assert played.rows() == [15]


@pytest.mark.parametrize("how", ["revoked", "lost"])
def test_a_reader_whose_partitions_went_is_not_at_its_stop_before_it_has_its_new_share(how: str) -> None:
    played = Played([10, 20], [15, 25]).begin(stop="latest", batch_size=1)
    assert played.poll() == [10]
    played.run(getattr(played.reading, how)([T0, T1]))
    assert played.rows() == []
    assert not played.reading.is_finished
    played.run(played.reading.assigned([T1]))
    assert played.rows() == [15, 25]
    assert played.reading.is_finished
