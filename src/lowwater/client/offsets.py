"""Where partitions begin, end, and were at a time; and start positions turned into offsets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.errors import BrokerError, ClientError, ProtocolError, broker_error
from lowwater.client.flow import Flow
from lowwater.pending import Pending
from lowwater.positions.plan import EARLIEST, LATEST, Asked, Questions, Resolution
from lowwater.positions.position import StartPosition
from lowwater.types import TopicPartition
from lowwater.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

__all__ = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", "Found", "Resolved", "list_offsets", "list_offsets_many", "resolve"]

MAX_TIMESTAMP = -3
"""Asked where a timestamp could stand: the record with the largest one."""

_VERSIONS = (1, 11)  # v0 answers something else
_VERSIONS_WITH_MAX = (7, 11)
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
        self._isolation = ISOLATION[isolation or cluster.network.config.str("isolation.level")]
        self.found: list[dict[TopicPartition, Found]] = [{} for _ in asked]

    async def attempt(self, left_ms: float) -> None:
        """Raises the first error of a partition that is for good, or else the first one."""
        errors: list[ClientError] = []
        missing = [
            {one: time for one, time in asked.items() if one not in found}
            for asked, found in zip(self._asked, self.found, strict=True)
        ]
        every = {one: None for asked in missing for one in asked}
        leaders = await self._cluster.leaders(every, left_ms) if every else {}
        answers = [
            (place, mine, self._ask(node, asked, mine, left_ms))
            for place, asked in enumerate(missing)
            for node, partitions in leaders.items()
            if (mine := [one for one in partitions if one in asked])
        ]
        try:
            for place, partitions, answer in answers:
                errors += await self._take(self.found[place], partitions, answer)
        finally:
            for _, _, answer in answers:
                answer.abandon()
        if errors:
            raise next((error for error in errors if not error.retriable), errors[0])

    def _ask(self, node: int, asked: Asked, partitions: Iterable[TopicPartition], left_ms: float) -> Pending[Any]:
        topics: dict[str, ListOffsetsTopic] = {}
        for one in partitions:
            topic = topics.get(one.topic)
            if topic is None:
                topic = topics[one.topic] = ListOffsetsTopic(name=one.topic, partitions=[])
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=one.partition,
                    current_leader_epoch=self._cluster.epoch(one),
                    timestamp=asked[one],
                )
            )
        limit_ms = min(left_ms, self._cluster.network.config.int("request.timeout.ms"))
        request = ListOffsetsRequest(
            isolation_level=self._isolation, topics=list(topics.values()), timeout_ms=int(limit_ms)
        )
        versions = _VERSIONS_WITH_MAX if MAX_TIMESTAMP in asked.values() else _VERSIONS
        return self._cluster.network.ask(node, request, versions=versions, timeout_ms=limit_ms)

    async def _take(
        self, found: dict[TopicPartition, Found], partitions: Iterable[TopicPartition], answer: Pending[Any]
    ) -> list[ClientError]:
        try:
            response: ListOffsetsResponse = await answer
        except ClientError as error:
            # Perhaps it leads nothing any more.
            self._cluster.outdate({one.topic for one in partitions})
            return [error]
        errors: list[ClientError] = []
        unanswered = dict.fromkeys(partitions)
        for topic in response.topics:
            for each in topic.partitions:
                one = TopicPartition(topic.name, each.partition_index)
                unanswered.pop(one, None)
                if each.error_code:
                    errors.append(self._refused(one, each.error_code))
                else:
                    found[one] = Found(each.offset, each.timestamp, each.leader_epoch)
        # Silence is not "no record that late".
        errors += [
            ProtocolError("a broker left it out", topic=one.topic, partition=one.partition) for one in unanswered
        ]
        return errors

    def _refused(self, one: TopicPartition, code: int) -> BrokerError:
        error = broker_error(code, "its offsets cannot be had", topic=one.topic, partition=one.partition)
        if code in OUTDATED:
            self._cluster.outdate([one.topic])
            error.retriable = True
        return error
