"""Asking a cluster how far its groups are: few requests, all brokers at once, and partial where some do not answer.

Committed offsets are asked before the ends of partitions, so that no lag is negative because time went by in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lowwater.client.admin.group_members import DescribedGroup, describe_groups
from lowwater.client.admin.group_offsets import group_offsets
from lowwater.client.admin.groups import ListedGroup, list_groups
from lowwater.client.admin.offsets import Bounds, bounds
from lowwater.client.admin.outcomes import Outcomes
from lowwater.client.cluster import NO_LEADER, Cluster, Topic
from lowwater.client.driver import sleep
from lowwater.client.errors import (
    BrokerError,
    ClientError,
    ConnectError,
    DisconnectedError,
    RequestTimeoutError,
    UnknownTopicError,
)
from lowwater.client.group_offsets import Committed
from lowwater.client.stamps import Place, Stamp, stamps
from lowwater.errors import ErrorCode
from lowwater.lag.commit_log import CommitLog
from lowwater.lag.history import History
from lowwater.lag.judging import judge
from lowwater.lag.observation import Fault, GroupSeen, LoggedCommit, Observation, Standing
from lowwater.lag.report import Report
from lowwater.types import TopicPartition

EMPTY = "Empty"
WATCH_EVERY_MS = 1_000
_READERS = ("", "consumer")
_STAMPS_KEPT_MAX = 100_000


async def report(
    cluster: Cluster,
    groups: Iterable[str] | None = None,
    *,
    allowed: int = 0,
    watch_for_ms: float = 0,
    every_ms: float = WATCH_EVERY_MS,
) -> Report:
    """How these groups do, or all: by one look, or by as many as fit into a while."""
    observer, history = Observer(cluster), History()
    names = None if groups is None else list(groups)
    driver = cluster.network.driver
    until_ms = driver.monotonic_ms() + watch_for_ms
    while True:
        observation = await observer.observe(names)
        history.take(observation)
        left_ms = until_ms - driver.monotonic_ms()
        if left_ms <= 0:
            return judge(observation, history, allowed=allowed)
        await sleep(driver, min(every_ms, left_ms))


class Observer:
    """For one who looks again and again: what does not change is not asked twice."""

    def __init__(self, cluster: Cluster, *, reads_commits: bool = True, reads_times: bool = True) -> None:
        self._cluster = cluster
        self._log = CommitLog(cluster) if reads_commits else None
        self._reads_times = reads_times
        self._stamps: dict[tuple[bytes, Place], Stamp] = {}

    async def observe(self, groups: Iterable[str] | None = None) -> Observation:
        """ClientError when no broker can be asked at all; who does not answer else is named in `faults`."""
        faults: list[Fault] = []
        listed = await self._listed(faults) if groups is None else None
        is_all = listed is not None and not faults
        names = list(dict.fromkeys(groups if groups is not None else listed or ()))
        seen = await self._groups(names, listed, faults)
        partitions = sorted({one for group in seen.values() for one in group.partitions})
        standing = await self._standing(partitions, faults)
        now_ms = self._cluster.network.driver.now_ms()
        next_records = await self._next_records(seen, standing, faults) if self._reads_times else {}
        commits = await self._commits(seen, is_all)
        return Observation(now_ms, seen, standing, next_records, commits, tuple(dict.fromkeys(faults)), is_all)

    # ---- groups

    async def _listed(self, faults: list[Fault]) -> dict[str, ListedGroup]:
        found = await list_groups(self._cluster)
        faults += [Fault(f"broker {node}", str(error)) for node, error in found.failed.items()]
        return {name: one for name, one in found.groups.items() if one.protocol in _READERS and one.kind != "share"}

    async def _groups(
        self, names: list[str], listed: Mapping[str, ListedGroup] | None, faults: list[Fault]
    ) -> dict[str, GroupSeen]:
        offsets = await group_offsets(self._cluster, names)
        # Who has no members needs no description.
        unclear = [name for name in names if listed is None or listed[name].state != EMPTY]
        described = await describe_groups(self._cluster, unclear)
        known = dict(described)
        if listed is not None:
            for name in set(names).difference(unclear):
                known[name] = DescribedGroup(name, EMPTY, listed[name].kind, NO_LEADER)
        seen = {name: _seen(name, offsets, known.get(name), described.failed.get(name)) for name in names}
        faults += [Fault(f"group {each.group}", each.fault) for each in seen.values() if each.fault is not None]
        return seen

    # ---- partitions

    async def _standing(self, partitions: list[TopicPartition], faults: list[Fault]) -> dict[TopicPartition, Standing]:
        wanted = {one.topic for one in partitions}
        problems = await self._cluster.refresh(wanted) if wanted else {}
        topics = {name: topic for name in wanted if (topic := self._cluster.known(name)) is not None}
        there = [one for one in partitions if one.topic in topics and one.partition in topics[one.topic].partitions]
        found = await bounds(self._cluster, there)
        for one, error in found.failed.items():
            faults.append(Fault(_where(one, topics, error), str(error)))
        return {one: _standing_of(one, topics, found, problems) for one in partitions}

    async def _next_records(
        self, seen: Mapping[str, GroupSeen], standing: Mapping[TopicPartition, Standing], faults: list[Fault]
    ) -> dict[Place, Stamp | None]:
        places = {
            place: standing[place.partition].topic_id
            for group in seen.values()
            for one, committed in group.committed.items()
            if (place := _reads_next(one, committed, standing[one])) is not None
        }
        known = {place: self._stamps[topic, place] for place, topic in places.items() if (topic, place) in self._stamps}
        found = await stamps(self._cluster, [place for place in places if place not in known])
        faults += [Fault(str(place.partition), str(error)) for place, error in found.failed.items()]
        if len(self._stamps) > _STAMPS_KEPT_MAX:
            self._stamps.clear()
        # Whether an open transaction will count is not known yet.
        fresh = {place: stamp for place, stamp in found.items() if stamp is not None and not stamp.is_open}
        self._stamps |= {(places[place], place): stamp for place, stamp in fresh.items()}
        return {**known, **found}

    async def _commits(self, seen: Mapping[str, GroupSeen], is_all: bool) -> tuple[LoggedCommit, ...]:
        if self._log is None:
            return ()
        if is_all:
            self._log.forget_others(seen)
        return await self._log.commits({name: len(group.committed) for name, group in seen.items() if group.committed})


def _seen(
    name: str,
    offsets: Outcomes[str, dict[TopicPartition, Committed]],
    group: DescribedGroup | None,
    error: ClientError | None,
) -> GroupSeen:
    fault = offsets.failed.get(name)
    committed = {} if fault is not None else offsets[name]
    if group is not None:
        return GroupSeen(name, group.state, group.kind, group.members, committed, None if fault is None else str(fault))
    is_missing = isinstance(error, BrokerError) and error.code == ErrorCode.GROUP_ID_NOT_FOUND
    if is_missing and committed:
        return GroupSeen(name, EMPTY, None, (), committed)
    return GroupSeen(name, None, None, (), committed, str(fault or error))


def _standing_of(
    one: TopicPartition,
    topics: Mapping[str, Topic],
    found: Outcomes[TopicPartition, Bounds],
    problems: Mapping[str, BrokerError],
) -> Standing:
    topic = topics.get(one.topic)
    if topic is None:
        problem = problems.get(one.topic)
        return Standing(fault=str(problem), is_gone=problem is None or isinstance(problem, UnknownTopicError))
    if one.partition not in topic.partitions:
        return Standing(topic_id=topic.id, fault=f"the topic has {len(topic.partitions)} partitions", is_gone=True)
    epoch = topic.partitions[one.partition].epoch
    if one in found.failed:
        return Standing(topic_id=topic.id, epoch=epoch, fault=str(found.failed[one]))
    return Standing(found[one].start, found[one].end, topic.id, epoch)


def _reads_next(one: TopicPartition, committed: Committed, standing: Standing) -> Place | None:
    """None where there is nothing to read, or nobody knows."""
    if standing.start is None or standing.end is None:
        return None
    offset = max(committed.offset, standing.start)
    return Place(one, offset) if offset < standing.end else None


def _where(one: TopicPartition, topics: Mapping[str, Topic], error: ClientError) -> str:
    """The broker, where it is the broker that does not answer."""
    leader = topics[one.topic].partitions[one.partition].leader
    if leader != NO_LEADER and isinstance(error, ConnectError | DisconnectedError | RequestTimeoutError):
        return f"broker {leader}"
    return str(one)
