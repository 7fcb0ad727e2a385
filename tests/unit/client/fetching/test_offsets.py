"""Questions about offsets: how many requests, to whom, and what is done when not all of them are answered well."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import LIST_OFFSETS, NODES, PlayedCluster
from tests.unit.client.virtual import refused

from lowwater.client.errors import (
    AuthorizationError,
    BrokerError,
    ClientError,
    ConnectError,
    ProtocolError,
    UnsupportedError,
)
from lowwater.client.flow import Flow, GivenUpError
from lowwater.client.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    MAX_TIMESTAMP,
    Found,
    list_offsets,
    list_offsets_many,
    offsets_now,
    resolve,
)
from lowwater.errors import ErrorCode
from lowwater.positions.grammar import parse_start
from lowwater.positions.plan import UnresolvedError
from lowwater.types import TopicPartition
from lowwater.wire.messages import ListOffsetsResponse

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def cluster(*leaders: int, **settings: Any) -> PlayedCluster:
    played = PlayedCluster(**settings)
    for one in played.create("t", *leaders):
        played.append(one, 10)
        played.logs[one].start = 2
    return played


def do(played: PlayedCluster, coroutine: Any, advance_ms: int = 0) -> Any:
    flow = Flow(coroutine)
    played.time.advance(advance_ms)
    return flow.result()


def questions(played: PlayedCluster) -> list[dict[int, int]]:
    """By request, what was asked of which partition."""
    return [
        {each.partition_index: each.timestamp for topic in asked.request.topics for each in topic.partitions}
        for asked in played.driver.requests("ListOffsets")
    ]


def test_one_request_per_leader_and_question() -> None:
    played = cluster(1, 2, 1)
    wishes = {T0: parse_start("earliest"), T1: parse_start("-3"), T2: parse_start("-3")}
    found = do(played, resolve(played.cluster, wishes, now_ms=0))
    assert found.starts == {T0: 2, T1: 7, T2: 7}
    assert found.ends == {}
    assert sorted(map(sorted, questions(played))) == [[0, 2], [1], [1], [2]]


def test_absolute_offsets_need_no_request_at_all() -> None:
    played = cluster(1)
    assert do(played, resolve(played.cluster, {T0: parse_start("4")}, now_ms=0)).starts == {T0: 4}
    assert played.driver.lines == []


def test_ends_are_asked_for_together_with_the_starts() -> None:
    played = cluster(1, 1)
    played.logs[T1].last_stable = 6
    wishes = {T0: parse_start("earliest"), T1: parse_start("latest")}
    found = do(played, resolve(played.cluster, wishes, now_ms=0, ends=True))
    assert (found.starts, found.ends) == ({T0: 2, T1: 6}, {T0: 10, T1: 6})
    assert questions(played) == [{0: EARLIEST, 1: LATEST}, {0: LATEST}]


def test_committed_offsets_are_asked_for_once_and_beside_the_rest() -> None:
    played = cluster(1, 1, 1)
    asked: list[frozenset[TopicPartition]] = []

    async def committed(wanted: frozenset[TopicPartition]) -> dict[TopicPartition, int | None]:
        asked.append(wanted)
        return {T0: 5, T1: None}

    wishes = {T0: parse_start("stored"), T1: parse_start("stored|earliest"), T2: parse_start("latest")}
    found = do(played, resolve(played.cluster, wishes, now_ms=0, committed=committed))
    assert found.starts == {T0: 5, T1: 2, T2: 10}
    assert asked == [{T0, T1}]


def test_nothing_committed_and_nothing_else_wished_is_an_error() -> None:
    played = cluster(1)

    async def committed(wanted: frozenset[TopicPartition]) -> dict[TopicPartition, int | None]:
        return dict.fromkeys(wanted)

    with pytest.raises(UnresolvedError, match=r"stored\|earliest"):
        do(played, resolve(played.cluster, {T0: parse_start("stored")}, now_ms=0, committed=committed))


def test_committed_offsets_that_cannot_be_had_are_an_error_and_nothing_goes_on() -> None:
    played = cluster(1, 1)

    async def committed(wanted: frozenset[TopicPartition]) -> dict[TopicPartition, int | None]:
        raise ClientError("no such luck")

    wishes = {T0: parse_start("stored"), T1: parse_start("latest")}
    with pytest.raises(ClientError, match="no such luck"):
        do(played, resolve(played.cluster, wishes, now_ms=0, committed=committed))


def test_whoever_gives_up_takes_the_question_for_committed_offsets_along() -> None:
    played = cluster(1)
    ended: list[str] = []

    async def committed(wanted: frozenset[TopicPartition]) -> dict[TopicPartition, int | None]:
        try:
            await played.cluster.topics(["never"])
        finally:
            ended.append("given up")
        raise AssertionError

    flow = Flow(resolve(played.cluster, {T0: parse_start("stored")}, now_ms=0, committed=committed))
    played.time.advance(100)
    flow.cancel()
    assert ended == ["given up"]
    with pytest.raises(GivenUpError):
        flow.result()


# ---- errors


def test_an_error_of_one_partition_is_never_taken_for_no_record_that_late() -> None:
    played = cluster(1, 1)
    played.fails[T1] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(AuthorizationError) as caught:
        do(played, list_offsets(played.cluster, {T0: LATEST, T1: LATEST}))
    assert (caught.value.topic, caught.value.partition) == ("t", 1)


def test_what_passes_is_asked_again_and_only_that() -> None:
    played = cluster(1, 1)
    played.fails[T1] = ErrorCode.OFFSET_NOT_AVAILABLE
    flow = Flow(list_offsets(played.cluster, {T0: LATEST, T1: LATEST}))
    played.time.advance(50)
    played.fails.clear()
    played.time.advance(1_000)
    assert {one: found.offset for one, found in flow.result().items()} == {T0: 10, T1: 10}
    assert questions(played) == [{0: LATEST, 1: LATEST}, {1: LATEST}]


def test_a_leader_that_moved_is_found() -> None:
    played = cluster(1, 1)
    do(played, played.cluster.topics(["t"]))
    played.fails[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    flow = Flow(list_offsets(played.cluster, {T0: LATEST, T1: LATEST}))
    played.time.advance(50)
    played.move(T0, 2)
    played.fails.clear()
    played.time.advance(1_000)
    assert {one: found.offset for one, found in flow.result().items()} == {T0: 10, T1: 10}
    assert [asked.line.address for asked in played.driver.requests("ListOffsets")] == [NODES[1], NODES[2]]


def test_a_broker_that_is_gone_is_an_error_in_the_end() -> None:
    played = cluster(1, 2)
    played.driver.unreachable[NODES[2]] = refused(NODES[2])
    flow = Flow(list_offsets(played.cluster, {T0: LATEST, T1: LATEST}, timeout_ms=5_000))
    played.time.advance(10_000)
    with pytest.raises(ConnectError) as caught:
        flow.result()
    assert caught.value.tries > 2
    assert len(questions(played)) == 1, "the other one has said it once and for all"


def test_a_partition_that_is_left_out_of_an_answer_is_an_error() -> None:
    played = cluster(1)
    answer = played.driver.answer
    played.driver.answer = lambda asked: (
        ListOffsetsResponse(topics=[]) if asked.api.name == "ListOffsets" else answer(asked)
    )
    with pytest.raises(ProtocolError, match="left it out"):
        do(played, list_offsets(played.cluster, {T0: LATEST}))


def test_old_brokers_are_not_asked_what_they_would_misread() -> None:
    played = cluster(1)
    played.versions[LIST_OFFSETS] = (1, 6)
    assert do(played, list_offsets(played.cluster, {T0: LATEST}))[T0].offset == 10
    for question in (MAX_TIMESTAMP, EARLIEST_LOCAL):
        with pytest.raises(UnsupportedError, match="knows versions 1 to 6"):
            do(played, list_offsets(played.cluster, {T0: question}))


def test_several_questions_are_all_asked_before_the_first_is_answered() -> None:
    played = cluster(1)
    do(played, played.cluster.topics(["t"]))
    flow = Flow(list_offsets_many(played.cluster, [{T0: EARLIEST}, {T0: LATEST}]))
    for _ in range(20):
        if played.driver.requests("ListOffsets"):
            break
        played.time.turn()
    assert len(played.driver.requests("ListOffsets")) == 2
    played.time.advance(0)
    assert [found[T0].offset for found in flow.result()] == [2, 10]


# ---- one try


def test_one_try_says_for_each_partition_what_was_found_or_why_nothing_was() -> None:
    played = cluster(1, 2, -1)
    [u0] = played.create("u", 1)
    unknown = TopicPartition("missing", 0)
    beyond = TopicPartition("t", 9)
    played.driver.unreachable[NODES[2]] = refused(NODES[2])
    played.fails[u0] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    asked = {T0: LATEST, T1: LATEST, T2: LATEST, u0: LATEST, unknown: LATEST, beyond: LATEST}
    [found] = do(played, offsets_now(played.cluster, [asked], 5_000), 1_000)
    assert found[T0] == Found(10)
    assert isinstance(found[T1], ConnectError)
    codes = {one: each.code for one, each in found.items() if isinstance(each, BrokerError)}
    assert codes == {
        T2: ErrorCode.LEADER_NOT_AVAILABLE,
        u0: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        beyond: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
