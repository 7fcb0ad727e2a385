"""Where a reader begins with its partitions: those of its first share, those that come back, those that come later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest
from tests.unit.client.fetching.played import PlayedCluster

from lowwater.client.coordinator import Committed, Coordinator
from lowwater.client.errors import BrokerError
from lowwater.client.flow import Flow
from lowwater.client.planning import Planner
from lowwater.client.wanted import Start, Topic, wanted
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition

T0, T1 = (TopicPartition("t", number) for number in range(2))
HOUR_MS = 3_600_000


class Group:
    """What it has committed, in place of a coordinator."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, Committed] = {}
        self.times_asked = 0

    async def committed_in_full(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
        self.times_asked += 1
        return {one: self.offsets[one] for one in partitions if one in self.offsets}


class Planned:
    """A member of a group that wants two partitions of ten records each, on virtual time."""

    def __init__(self, start: Start | Mapping[Topic, Start] | None, *, resumes: bool = True) -> None:
        self.brokers = PlayedCluster(default_api_timeout_ms=1_000)
        for one in self.brokers.create("t", 1, 1):
            self.brokers.append(one, 10)
        self.group = Group()
        self.wanted = wanted("t", start=start)
        self.planner = Planner(self.brokers.cluster, cast(Coordinator, self.group), resumes=resumes)
        self.run(self.planner.begin(self.wanted, [T0, T1], is_member=resumes))

    def run(self, coroutine: Any, advance_ms: int = 0) -> Any:
        flow = Flow(coroutine)
        self.brokers.time.advance(advance_ms)
        return flow.result()

    def commit(self, one: TopicPartition, offset: int) -> None:
        self.group.offsets[one] = Committed(offset)

    def starts(self, *partitions: TopicPartition) -> list[int]:
        plans = self.run(self.planner.plans(self.wanted, list(partitions)))
        return [plans[one].start for one in partitions]

    def times_asked_for(self) -> set[int]:
        asked = [each.request for each in self.brokers.driver.requests("ListOffsets")]
        times = {each.timestamp for request in asked for topic in request.topics for each in topic.partitions}
        return {time_ms for time_ms in times if time_ms >= 0}


@pytest.mark.parametrize(("start", "began"), [("latest", 10), ("-3", 7)])
def test_what_comes_back_goes_on_where_the_group_is_and_not_at_an_end_that_has_moved(start: str, began: int) -> None:
    planned = Planned(start)
    planned.commit(T0, 4)
    assert planned.starts(T0, T1) == [began, began], "the later of two starts"
    planned.commit(T0, 12)
    planned.brokers.append(T0, 10)
    planned.brokers.append(T1, 10)
    assert planned.starts(T0, T1) == [12, began], "or, where nothing is committed, where it began before"


@pytest.mark.parametrize(("start_of_t1", "began"), [("-1h|stored|earliest", 3), ("-1h|stored", 3), ("-1h|-2", 8)])
def test_one_question_to_the_group_serves_those_that_need_its_answer_later_too(start_of_t1: str, began: int) -> None:
    """Of the second partition no record is that young, which is known only when the first one has been asked for."""
    planned = Planned({T0: "stored", T1: start_of_t1}, resumes=False)
    planned.commit(T0, 4)
    planned.commit(T1, 3)
    assert planned.starts(T0, T1) == [4, began]
    assert planned.group.times_asked == 1


def test_what_comes_later_goes_on_where_the_group_is() -> None:
    planned = Planned("latest")
    assert planned.starts() == []
    planned.commit(T0, 4)
    planned.brokers.append(T1, 10)
    assert planned.starts(T0, T1) == [4, 10], "or, where nothing is committed, at the end of when the reader began"


def test_an_offset_that_is_asked_for_counts_for_the_first_share() -> None:
    planned = Planned(6)
    planned.commit(T0, 4)
    planned.commit(T1, 8)
    assert planned.starts(T0, T1) == [6, 8]
    planned.commit(T0, 5)
    assert planned.starts(T0) == [5]


def test_times_are_counted_from_when_the_reader_began() -> None:
    planned = Planned("-1h")
    began_ms = planned.brokers.driver.now_ms()
    planned.brokers.time.advance(HOUR_MS)
    planned.starts(T0)
    planned.brokers.time.advance(HOUR_MS)
    planned.starts(T1)
    assert planned.times_asked_for() == {began_ms - HOUR_MS}


def test_a_time_that_no_record_had_reached_is_not_looked_up_again_for_what_comes_back() -> None:
    planned = Planned("-1h")
    assert planned.starts(T0) == [10]
    planned.brokers.append(T0, 10)
    assert planned.starts(T0) == [10]


def test_everything_means_what_is_there_by_then() -> None:
    planned = Planned("earliest")
    assert planned.starts(T0) == [0]
    planned.brokers.logs[T0].start = 5
    assert planned.starts(T0) == [5]


def test_a_partition_that_was_not_there_when_the_reader_began_is_read_from_its_start() -> None:
    planned = Planned("latest")
    planned.starts(T0, T1)
    planned.brokers.create("new", 1)
    new = TopicPartition("new", 0)
    planned.brokers.append(new, 3)
    assert planned.starts(new) == [0]


def test_a_first_share_that_could_not_be_planned_is_the_first_still() -> None:
    planned = Planned("latest")
    planned.commit(T0, 4)
    planned.brokers.fails[T0] = ErrorCode.LEADER_NOT_AVAILABLE
    with pytest.raises(BrokerError):
        planned.run(planned.planner.plans(planned.wanted, [T0]), 5_000)
    planned.brokers.fails.clear()
    assert planned.starts(T0) == [10]


@pytest.mark.parametrize("start", [None, "earliest", "stored|earliest", "-1h", 5])
def test_only_starts_that_move_with_the_end_cost_a_question_at_the_beginning(start: Start | None) -> None:
    assert not Planned(start).brokers.driver.requests("ListOffsets")


def test_a_start_where_the_group_is_or_at_the_end_is_both() -> None:
    planned = Planned("stored|latest")
    planned.commit(T0, 4)
    planned.brokers.append(T1, 10)
    assert planned.starts(T0, T1) == [4, 10]
