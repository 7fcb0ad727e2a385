"""Where partitions begin, end, and were at a time; and start positions turned into offsets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeAlias

from lowwater.client.cluster import NO_LEADER, OUTDATED, Cluster
from lowwater.client.errors import BrokerError, ClientError, ProtocolError, broker_error
from lowwater.client.flow import Flow
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.positions.plan import EARLIEST, LATEST, Questions, Resolution
from lowwater.positions.position import StartPosition
from lowwater.types import TopicPartition
from lowwater.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

__all__ = [
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "MAX_TIMESTAMP",
    "Found",
    "Resolved",
    "leader_of",
    "list_offsets",
    "list_offsets_many",
    "offsets_now",
    "resolve",
]

MAX_TIMESTAMP = -3
"""Asked where a timestamp could stand: the record with the largest one."""
EARLIEST_LOCAL = -4
"""The first offset that the leader has itself, and not only in tiered storage."""

_VERSION_MIN, _VERSION_MAX = 1, 11  # v0 answers something else
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8}
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}

CommittedOffsets: TypeAlias = Callable[[frozenset[TopicPartition]], Awaitable[Mapping[TopicPartition, int | None]]]


class Found(NamedTuple):
    """`offset` is -1 where there is no record that late."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int = -1


class Resolved(NamedTuple):
    """Where to start; and, when that was asked, where partitions end: for readers of committed records, the LSO."""

    starts: dict[TopicPartition, int]
    ends: dict[TopicPartition, int]


async def resolve(
    cluster: Cluster,
    wishes: Mapping[TopicPartition, StartPosition],
    *,
    now_ms: int,
    ends: bool = False,
    isolation: str | None = None,
    committed: CommittedOffsets | None = None,
    timeout_ms: float | None = None,
) -> Resolved:
    """An offset for every wish, by one "now", with as few requests as can be.

    `committed` gives the group's committed offsets, None where there is none. UnresolvedError where nothing of a wish
    has an answer; ClientError when brokers do not answer in time, or refuse.
    """
    resolution = Resolution(wishes, now_ms, ends=ends)
    while questions := resolution.questions():
        stored = Flow(_committed(questions, committed))
        try:
            found = await list_offsets_many(cluster, questions.offsets, isolation=isolation, timeout_ms=timeout_ms)
            resolution.take(await stored, _by_partition(questions, found))
        finally:
            stored.cancel()
    return Resolved(resolution.starts, resolution.ends if ends else {})


async def _committed(questions: Questions, committed: CommittedOffsets | None) -> Mapping[TopicPartition, int | None]:
    if not questions.committed:
        return {}
    if committed is None:
        raise ClientError("a start at the committed offset needs a group", advice="set group.id")
    return await committed(questions.committed)


def _by_partition(
    questions: Questions, found: Sequence[Mapping[TopicPartition, Found]]
) -> dict[TopicPartition, dict[int, int]]:
    offsets: dict[TopicPartition, dict[int, int]] = {}
    for asked, answers in zip(questions.offsets, found, strict=True):
        for one, timestamp in asked.items():
            offsets.setdefault(one, {})[timestamp] = answers[one].offset
    return offsets


async def list_offsets(
    cluster: Cluster,
    asked: Mapping[TopicPartition, int],
    *,
    isolation: str | None = None,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, Found]:
    """By partition, the first offset at or after a time, or one of LATEST, EARLIEST, MAX_TIMESTAMP."""
    [found] = await list_offsets_many(cluster, [asked], isolation=isolation, timeout_ms=timeout_ms)
    return found


async def list_offsets_many(
    cluster: Cluster,
    asked: Sequence[Mapping[TopicPartition, int]],
    *,
    isolation: str | None = None,
    timeout_ms: float | None = None,
) -> list[dict[TopicPartition, Found]]:
    """The same for several questions to the same partitions, all asked at once: one request each per leader."""
    lookup = _Lookup(cluster, asked, isolation)
    await cluster.retry.run(lookup.attempt, timeout_ms)
    return lookup.found


class _Lookup:
    """What is known already stays known when the rest has to be asked again."""

    def __init__(self, cluster: Cluster, asked: Sequence[Mapping[TopicPartition, int]], isolation: str | None) -> None:
        self._cluster = cluster
        self._asked = asked
        self._isolation = isolation
        self.found: list[dict[TopicPartition, Found]] = [{} for _ in asked]

    async def attempt(self, left_ms: float) -> None:
        """Raises the first error of a partition that is for good, or else the first one."""
        missing = [
            {one: time for one, time in asked.items() if one not in found}
            for asked, found in zip(self._asked, self.found, strict=True)
        ]
        await self._cluster.topics({one.topic for asked in missing for one in asked}, left_ms)
        errors: list[ClientError] = []
        answers = await offsets_now(self._cluster, missing, left_ms, isolation=self._isolation)
        for found, answer in zip(self.found, answers, strict=True):
            found.update({one: each for one, each in answer.items() if isinstance(each, Found)})
            errors += [each for each in answer.values() if isinstance(each, ClientError)]
        if errors:
            raise next((error for error in errors if not error.retriable), errors[0])


async def offsets_now(
    cluster: Cluster,
    asked: Sequence[Mapping[TopicPartition, int]],
    left_ms: float,
    *,
    isolation: str | None = None,
) -> list[dict[TopicPartition, Found | ClientError]]:
    """One try of `list_offsets_many`: for every partition what was found, or why nothing was.

    ClientError only when no broker can be asked for what leaders there are.
    """
    found: list[dict[TopicPartition, Found | ClientError]] = [{} for _ in asked]
    every = {one: None for each in asked for one in each}
    unknown = {one.topic for one in every if cluster.known(one.topic) is None}
    problems = await cluster.refresh(unknown, left_ms) if unknown else {}
    leaders: dict[int, list[TopicPartition]] = {}
    for one in every:
        leader = leader_of(cluster, one, problems)
        if isinstance(leader, int):
            leaders.setdefault(leader, []).append(one)
        else:
            for place, each in enumerate(asked):
                if one in each:
                    found[place][one] = leader
    answers = [
        (place, mine, _ask(cluster, node, each, mine, left_ms, isolation))
        for place, each in enumerate(asked)
        for node, partitions in leaders.items()
        if (mine := [one for one in partitions if one in each])
    ]
    try:
        for place, mine, answer in answers:
            found[place] |= await _answers(cluster, mine, answer)
    finally:
        for _, _, answer in answers:
            answer.abandon()
    return found


def leader_of(cluster: Cluster, one: TopicPartition, problems: Mapping[str, BrokerError]) -> int | ClientError:
    """Or why there is none; `problems` is what a refresh has told of topics that are not known."""
    leader, topic = cluster.leader(one), cluster.known(one.topic)
    if leader != NO_LEADER:
        return leader
    if topic is None:
        return copy(problems.get(one.topic)) or _missing(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if one.partition in topic.partitions:
        cluster.outdate([one.topic])
        return _missing(one, ErrorCode.LEADER_NOT_AVAILABLE)
    error = _missing(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic has {len(topic.partitions)} partitions")
    error.retriable = False  # partitions come with their topic
    return error


def _missing(one: TopicPartition, code: ErrorCode, advice: str = "") -> BrokerError:
    return broker_error(code, topic=one.topic, partition=one.partition, advice=advice)


def _ask(
    cluster: Cluster,
    node: int,
    asked: Mapping[TopicPartition, int],
    partitions: Iterable[TopicPartition],
    left_ms: float,
    isolation: str | None,
) -> Pending[Any]:
    topics: dict[str, ListOffsetsTopic] = {}
    for one in partitions:
        topic = topics.get(one.topic)
        if topic is None:
            topic = topics[one.topic] = ListOffsetsTopic(name=one.topic, partitions=[])
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=one.partition, current_leader_epoch=cluster.epoch(one), timestamp=asked[one]
            )
        )
    config = cluster.network.config
    limit_ms = min(left_ms, config.int("request.timeout.ms"))
    level = ISOLATION[isolation or config.str("isolation.level")]
    request = ListOffsetsRequest(isolation_level=level, topics=list(topics.values()), timeout_ms=int(limit_ms))
    oldest = max(_SINCE.get(each, _VERSION_MIN) for each in asked.values())
    return cluster.network.ask(node, request, versions=(oldest, _VERSION_MAX), timeout_ms=limit_ms)


async def _answers(
    cluster: Cluster, partitions: Iterable[TopicPartition], answer: Pending[Any]
) -> dict[TopicPartition, Found | ClientError]:
    try:
        response: ListOffsetsResponse = await answer
    except ClientError as error:
        # Perhaps it leads nothing any more.
        cluster.outdate({one.topic for one in partitions})
        return dict.fromkeys(partitions, error)
    # Silence is not "no record that late".
    found: dict[TopicPartition, Found | ClientError] = {
        one: ProtocolError("a broker left it out", topic=one.topic, partition=one.partition) for one in partitions
    }
    for topic in response.topics:
        for each in topic.partitions:
            one = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                found[one] = _refused(cluster, one, each.error_code)
            else:
                found[one] = Found(each.offset, each.timestamp, each.leader_epoch)
    return found


def _refused(cluster: Cluster, one: TopicPartition, code: int) -> BrokerError:
    error = broker_error(code, "its offsets cannot be had", topic=one.topic, partition=one.partition)
    if code in OUTDATED:
        cluster.outdate([one.topic])
        error.retriable = True
    return error
