"""What a stream plans while brokers tell half of it, or nothing; on virtual time."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

import pytest
from tests.unit.client.test_admin import World
from tests.unit.client.virtual import LATER, Asked

from lowwater.client.errors import AuthorizationError, ClientError, ConnectError
from lowwater.client.flow import Flow
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.spark import slicing
from lowwater.spark.aligning.alignment import Planned
from lowwater.spark.aligning.logs import Edge
from lowwater.spark.data_loss import DataLossError
from lowwater.spark.heads import PATIENCE_MS, WIDE_MS, Heads
from lowwater.spark.offsets import Offset, Plan, Range
from lowwater.spark.options import SourceOptions
from lowwater.spark.slicing import Sliced
from lowwater.spark.stream_planner import StreamPlanner
from lowwater.types import TopicPartition
from lowwater.wire.messages import ListOffsetsResponse
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse

LATEST = -1
STEP_MS = 10
FOR_EVER_MS = 600_000
BOTH = {"t-a": [1, 2], "t-b": [1]}


class Brokers(World):
    """Every partition has offsets [0, end). What is in `held` is answered when it is let go."""

    def __init__(self) -> None:
        super().__init__(ListOffsets=self._bounds)
        self.leaders = dict(BOTH)
        self.end = 10
        self.held: set[str] = set()
        self._waiting: list[Asked] = []
        answer = self.driver.answer

        def answer_or_hold(asked: Asked) -> Any:
            if asked.api.name not in self.held:
                return answer(asked)
            self._waiting.append(asked)
            return LATER

        self.driver.answer = answer_or_hold

    def let_go(self) -> None:
        self.held.clear()
        waiting, self._waiting = self._waiting, []
        for asked in waiting:
            asked.answer(self.answers[asked.api.name](asked))

    def _bounds(self, asked: Asked) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, offset=self.end if each.timestamp == LATEST else 0
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in asked.request.topics
            ]
        )


class Client:
    """A DriverClient without a thread: whoever waits moves the time."""

    def __init__(self, brokers: Brokers) -> None:
        self.cluster = brokers.cluster
        self._time = brokers.driver.time
        self.now_ms = brokers.driver.now_ms

    def run(self, coroutine: Coroutine[Any, Any, Any], timeout_ms: float | None = None) -> Any:
        flow = Flow(coroutine)
        self.wait(flow, timeout_ms)
        return flow.result()

    def wait(self, pending: Pending[Any], timeout_ms: float | None = None) -> bool:
        left_ms = FOR_EVER_MS if timeout_ms is None else timeout_ms
        self._time.settle()
        while not pending.done and left_ms > 0:
            self._time.advance(STEP_MS)
            left_ms -= STEP_MS
        return pending.done


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def planner_of(brokers: Brokers, **given: str) -> StreamPlanner:
    options = {"kafka.bootstrap.servers": "a:1", "subscribePattern": "t-.*", "startingOffsets": "earliest", **given}
    planner = StreamPlanner(SourceOptions.parse(options, streaming=True))
    planner.__dict__["client"] = Client(brokers)
    return planner


def ends(offset: Mapping[str, Any]) -> dict[TopicPartition, int]:
    return dict(Offset.parse(dict(offset)).at)


def all_at(end: int) -> dict[TopicPartition, int]:
    return {TopicPartition(name, number): end for name, each in BOTH.items() for number in range(len(each))}


# ---- gaps


@pytest.fixture
def hidden(brokers: Brokers) -> tuple[StreamPlanner, dict[str, Any]]:
    """A stream that has read all; the next answer hides a topic, and after it there is none."""
    planner = planner_of(brokers)
    end = planner.latest_offset(planner.initial_offset(), None)
    brokers.driver.time.advance(2 * WIDE_MS)
    brokers.end = 12
    metadata = brokers.answers["Metadata"]

    def half(asked: Asked) -> Any:
        brokers.leaders = {"t-a": BOTH["t-a"]}
        answer = metadata(asked)
        brokers.leaders, brokers.answers["Metadata"] = dict(BOTH), metadata
        brokers.held.add("Metadata")
        return answer

    brokers.answers["Metadata"] = half
    return planner, end


def test_one_answer_is_no_proof_that_a_partition_is_gone(
    brokers: Brokers, hidden: tuple[StreamPlanner, dict[str, Any]]
) -> None:
    planner, end = hidden
    for _ in range(2):
        assert planner.latest_offset(end, None) == end, "no batch until it is known"
    brokers.let_go()
    assert ends(planner.latest_offset(end, None)) == all_at(12)


def test_a_partition_that_is_gone_is_told_when_brokers_answer_again(
    brokers: Brokers, hidden: tuple[StreamPlanner, dict[str, Any]]
) -> None:
    planner, end = hidden
    assert planner.latest_offset(end, None) == end
    brokers.leaders = {"t-a": BOTH["t-a"]}
    brokers.let_go()
    with pytest.raises(DataLossError, match="not there any more; unless this query does not read it any more"):
        planner.latest_offset(end, None)


def test_an_available_now_query_that_cannot_ask_fails_and_does_not_end_early(
    brokers: Brokers, hidden: tuple[StreamPlanner, dict[str, Any]]
) -> None:
    planner, end = hidden
    planner.stop_at_what_is_there()
    with pytest.raises(ClientError) as failure:
        planner.latest_offset(end, None)
    assert failure.value.retriable


def test_a_wide_look_does_not_wait_for_a_narrow_one(brokers: Brokers) -> None:
    client = Client(brokers)
    topics = SourceOptions.parse({"kafka.bootstrap.servers": "a:1", "subscribePattern": "t-.*"}, streaming=True).topics
    heads = Heads(client, topics, "read_uncommitted")  # type: ignore[arg-type]
    first = heads.look()
    brokers.held |= {"ListOffsets", "Metadata"}
    assert heads.look(WIDE_MS / 2) is first
    brokers.leaders["t-c"] = [2]
    brokers.driver.call_later(PATIENCE_MS / 2, brokers.let_go)
    assert TopicPartition("t-c", 0) in heads.look(PATIENCE_MS, is_wide=True).partitions


# ---- slices of time


class Slicing:
    """Stands for the survey: fails as often as it has errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def __call__(self, client: object, ranges: Mapping[TopicPartition, Range], plan: Plan, *_: object) -> Sliced:
        if self.errors:
            raise self.errors.pop(0)
        return Sliced(plan, ranges, (None,))


IN_ORDER = {"order": "timestamp", "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "1h"}


class Aligned:
    """Stands for the alignment: every partition is cut at its end."""

    def plan(self, start: Offset, edges: Mapping[TopicPartition, Edge], *_: object, **__: object) -> Planned:
        return Planned({one: edge.head for one, edge in edges.items()}, Plan(cut_ms=1), also_empty=False)


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_survey_that_brokers_do_not_answer_is_made_again(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_cut: bool
) -> None:
    planner = planner_of(brokers, **IN_ORDER, **({"cut": "1m"} if is_cut else {}))
    brokers.unserved.add("DescribeConfigs")
    if is_cut:
        planner.__dict__["_alignment"] = Aligned()
    start = planner.initial_offset()
    monkeypatch.setattr(slicing, "plan_slices", Slicing(ConnectError("away"), ConnectError("away")))
    assert planner.latest_offset(start, 5000) == start
    assert "it is tried again: away" in caplog.text
    assert ends(planner.latest_offset(start, 5000)) == all_at(10), "no batch was begun that the next has to wait for"


def test_a_survey_that_is_refused_for_good_ends_the_stream(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = planner_of(brokers, **IN_ORDER)
    start = planner.initial_offset()
    monkeypatch.setattr(slicing, "plan_slices", Slicing(AuthorizationError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    with pytest.raises(AuthorizationError):
        planner.latest_offset(start, 5000)


def test_an_available_now_query_whose_survey_fails_does_not_end_early(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = planner_of(brokers, **IN_ORDER)
    planner.stop_at_what_is_there()
    start = planner.initial_offset()
    monkeypatch.setattr(slicing, "plan_slices", Slicing(ConnectError("away")))
    with pytest.raises(ConnectError):
        planner.latest_offset(start, 5000)
