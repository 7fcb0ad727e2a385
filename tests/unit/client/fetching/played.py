"""Brokers of a cluster, played on virtual time: logs, leaders, fetch sessions, and fetches that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.unit.client.virtual import APIS, LATER, Asked, VirtualDriver, network_of, versions_answer

from lowwater.client.cluster import Cluster
from lowwater.client.config import Address
from lowwater.errors import ErrorCode
from lowwater.testing.virtual_time import VirtualTimer
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest, FetchResponse, ListOffsetsResponse, MetadataResponse
from lowwater.wire.messages.fetch import EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from lowwater.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from lowwater.wire.records import HEADER_SIZE, Record, build_batch, unpack_header

NODES = {1: Address("a", 1), 2: Address("b", 2), 3: Address("c", 3)}
FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 1, 2, 3, 18
EARLIEST, LATEST, EARLIEST_LOCAL = -2, -1, -4
BY_ID_SINCE, SESSIONS_SINCE = 13, 7


@dataclass
class Batch:
    first: int
    behind: int
    data: bytes
    epoch: int = -1


@dataclass
class PlayedLog:
    """One partition. `end` may be behind the last batch, as compaction leaves it. What is before `local_start` lies in
    tiered storage, from where nothing comes while `is_slow`."""

    leader: int = 1
    epoch: int = 5
    start: int = 0
    local_start: int = 0
    end: int = 0
    last_stable: int | None = None
    is_slow: bool = False
    batches: list[Batch] = field(default_factory=list)

    def append(self, count: int, value: bytes = b"v", first_ms: int = 1_000) -> None:
        records = [Record(self.end + at, first_ms + at, None, value) for at in range(count)]
        data = bytes(build_batch(records, base_offset=self.end, leader_epoch=self.epoch))
        self.batches.append(Batch(self.end, self.end + count, data, self.epoch))
        self.end += count

    def truncate(self, end: int) -> None:
        """Another leads, who never had what was behind; nobody else knows of it either."""
        self.batches = [batch for batch in self.batches if batch.behind <= end]
        self.end, self.epoch = end, self.epoch + 1

    def end_of(self, epoch: int) -> EpochEndOffset | None:
        """Where what its leaders took up to this epoch ends, and of which epoch that is. None: no such leader was."""
        if epoch > self.epoch:
            return None
        before = [batch.epoch for batch in self.batches if batch.epoch <= epoch]
        behind = (batch.first for batch in self.batches if batch.epoch > epoch)
        return EpochEndOffset(epoch=max(before, default=epoch), end_offset=next(behind, self.end))

    @property
    def stable(self) -> int:
        return self.end if self.last_stable is None else self.last_stable

    def read(self, offset: int, limit: int, upto: int, *, at_least_one: bool) -> bytes:
        data = b""
        if self.is_slow and offset < self.local_start:
            return data
        for batch in self.batches:
            if offset < batch.behind <= upto and len(data) < limit:
                data += batch.data
                if at_least_one and len(data) > limit:
                    return data if data == batch.data else data[:limit]
        return data[:limit]


@dataclass
class Wanted:
    offset: int
    bytes_max: int
    epoch: int = -1
    told: tuple[int, int] | None = None


@dataclass
class Session:
    epoch: int = 1
    partitions: dict[tuple[str | bytes, int], Wanted] = field(default_factory=dict)


class PlayedCluster:
    """Three brokers. Everything can be changed at any time."""

    def __init__(self, fetch_versions: tuple[int, int] = (4, 18), **settings: Any) -> None:
        self.driver = VirtualDriver(self.answer)
        self.cluster = Cluster(network_of(self.driver, **settings))
        self.time = self.driver.time
        self.ids: dict[str, bytes] = {}
        self.logs: dict[TopicPartition, PlayedLog] = {}
        self.fetch_versions = fetch_versions
        self.versions: dict[int, tuple[int, int]] = {}
        self.keeps_sessions = True
        self.refuses_sessions = False
        self.names_leaders = True
        self.tells_bounds_again = True  # behind an error, although they are the same
        self.throttle_ms = 0
        self.answers_after_ms = 0  # on their way
        self.fails: dict[TopicPartition, ErrorCode] = {}
        self.fails_at: dict[tuple[int, TopicPartition], ErrorCode] = {}
        self.preferred: dict[TopicPartition, int] = {}
        self.sessions: dict[int, dict[int, Session]] = {node: {} for node in NODES}
        self._session_ids = iter(range(100, 1_000_000))
        self._parked: list[tuple[Callable[[], bool], VirtualTimer]] = []

    def create(self, topic: str, *leaders: int) -> list[TopicPartition]:
        self.ids[topic] = f"{topic}/{len(self.ids)}/{len(self.logs)}".encode().ljust(16, b"!")
        made = [TopicPartition(topic, number) for number in range(len(leaders))]
        self.logs.update({one: PlayedLog(leader) for one, leader in zip(made, leaders, strict=True)})
        return made

    def delete(self, topic: str) -> None:
        del self.ids[topic]
        self.logs = {one: log for one, log in self.logs.items() if one.topic != topic}

    def append(self, one: TopicPartition, count: int, value: bytes = b"v", first_ms: int = 1_000) -> None:
        self.logs[one].append(count, value, first_ms)
        self.grew()

    def grew(self) -> None:
        parked, self._parked = self._parked, []
        for attempt, timer in parked:
            if attempt():
                timer.cancel()
            else:
                self._parked.append((attempt, timer))

    def move(self, one: TopicPartition, leader: int) -> None:
        log = self.logs[one]
        log.leader, log.epoch = leader, log.epoch + 1

    def fetches(self, *, waiting: bool | None = None) -> list[FetchRequest]:
        """In the order in which they came; of those that may wait at the broker, or that may not, or of both."""
        asked = [each.request for each in self.driver.requests("Fetch")]
        return [each for each in asked if waiting is None or (each.max_wait_ms > 0) is waiting]

    # ---- answering

    def answer(self, asked: Asked) -> Any:
        node = next(node for node, address in NODES.items() if address == asked.line.address)
        if asked.api.key == API_VERSIONS:
            known = {key: (api.version_min, api.version_max) for key, api in APIS.items()}
            return versions_answer(known | {FETCH: self.fetch_versions} | self.versions)
        if asked.api.key == METADATA:
            return self._metadata(asked)
        if asked.api.key == LIST_OFFSETS:
            return self._list_offsets(asked)
        assert asked.api.key == FETCH, f"nobody plays {asked.api.name}"
        return self._fetch(asked, node)

    def _metadata(self, asked: Asked) -> MetadataResponse:
        wanted = asked.request.topics
        names = sorted(self.ids) if wanted is None else [topic.name for topic in wanted]
        brokers = [MetadataResponseBroker(node_id=node, host=a.host, port=a.port) for node, a in NODES.items()]
        return MetadataResponse(
            brokers=brokers, cluster_id="c", controller_id=1, topics=[self._topic(name) for name in names]
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.ids:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=[])
        partitions = [
            MetadataResponsePartition(
                partition_index=one.partition,
                leader_id=log.leader,
                leader_epoch=log.epoch,
                replica_nodes=list(NODES),
                isr_nodes=list(NODES),
            )
            for one, log in self.logs.items()
            if one.topic == name
        ]
        return MetadataResponseTopic(name=name, topic_id=self.ids[name], partitions=partitions)

    def _list_offsets(self, asked: Asked) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._listed(TopicPartition(topic.name, each.partition_index), each.timestamp)
                        for each in topic.partitions
                    ],
                )
                for topic in asked.request.topics
            ]
        )

    def _listed(self, one: TopicPartition, timestamp: int) -> ListOffsetsPartitionResponse:
        log = self.logs[one]
        if one in self.fails:
            return ListOffsetsPartitionResponse(partition_index=one.partition, error_code=self.fails[one])
        offset = {EARLIEST: log.start, LATEST: log.stable, EARLIEST_LOCAL: log.local_start}.get(timestamp, -1)
        return ListOffsetsPartitionResponse(partition_index=one.partition, offset=offset)

    # ---- Fetch

    def _fetch(self, asked: Asked, node: int) -> Any:
        request = asked.request
        uses_ids = asked.version >= BY_ID_SINCE
        session, is_full = self._session_of(request, node, uses_ids, asked.version)
        if isinstance(session, ErrorCode):
            return FetchResponse(error_code=session, session_id=0, responses=[])
        if self.throttle_ms:
            return FetchResponse(throttle_time_ms=self.throttle_ms, session_id=self._id_of(session, node), responses=[])

        def attempt(*, is_last: bool = False) -> bool:
            response, is_enough, served = self._read(request, session, node, uses_ids, is_full=is_full)
            if not (is_enough or is_last) or not asked.line.is_open:
                return not asked.line.is_open
            self._remember(session, served)
            if self.answers_after_ms:
                self.driver.call_later(self.answers_after_ms, lambda: asked.answer(response))
            else:
                asked.answer(response)
            return True

        if not attempt(is_last=request.max_wait_ms == 0):
            timer = self.driver.call_later(request.max_wait_ms, lambda: self._time_is_up(attempt))
            self._parked.append((attempt, timer))
        return LATER

    def _time_is_up(self, attempt: Any) -> None:
        self._parked = [each for each in self._parked if each[0] is not attempt]
        attempt(is_last=True)

    def _session_of(
        self, request: FetchRequest, node: int, uses_ids: bool, version: int
    ) -> tuple[Session | ErrorCode, bool]:
        sessions = self.sessions[node]
        if self.refuses_sessions:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, False
        named = {
            ((topic.topic_id if uses_ids else topic.topic), each.partition): Wanted(
                each.fetch_offset, each.partition_max_bytes, each.last_fetched_epoch
            )
            for topic in request.topics
            for each in topic.partitions
        }
        if version < SESSIONS_SINCE or request.session_epoch <= 0:
            sessions.pop(request.session_id, None)
            session = Session(partitions=named)
            if version >= SESSIONS_SINCE and request.session_epoch == 0 and self.keeps_sessions:
                sessions[next(self._session_ids)] = session
            return session, True
        if request.session_id not in sessions:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, False
        session = sessions[request.session_id]
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, False
        session.epoch += 1
        self._change(session, request, named, uses_ids)
        return session, False

    @staticmethod
    def _change(session: Session, request: FetchRequest, named: dict[Any, Wanted], uses_ids: bool) -> None:
        for key, wanted in named.items():
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = wanted
            else:
                known.offset, known.bytes_max, known.epoch = wanted.offset, wanted.bytes_max, wanted.epoch
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                key = (topic.topic_id if uses_ids else topic.topic, number)
                assert key in session.partitions, "only what is known can be forgotten"
                del session.partitions[key]

    def _id_of(self, session: Session, node: int) -> int:
        return next((number for number, each in self.sessions[node].items() if each is session), 0)

    def _read(
        self, request: FetchRequest, session: Session, node: int, uses_ids: bool, *, is_full: bool
    ) -> tuple[FetchResponse, bool, dict[Any, PartitionData]]:
        """The answer, whether it has to go at once, and what it has of whom."""
        served: dict[Any, PartitionData] = {}
        topics: dict[str | bytes, FetchableTopicResponse] = {}
        size, has_urgent = 0, False
        for key, wanted in list(session.partitions.items()):
            data = self._partition(key, wanted, request, size, node, uses_ids)
            size += len(data.records or b"")
            is_urgent = data.error_code != 0 or data.preferred_read_replica >= 0 or data.diverging_epoch is not None
            has_urgent = has_urgent or is_urgent
            bounds = (data.high_watermark, data.log_start_offset)
            if not (is_full or data.records or is_urgent or bounds != wanted.told):
                continue
            served[key] = data
            named = {"topic_id": key[0]} if uses_ids else {"topic": key[0]}
            topic = topics.setdefault(key[0], FetchableTopicResponse(**named, partitions=[]))
            topic.partitions.append(data)
        response = FetchResponse(session_id=self._id_of(session, node), responses=list(topics.values()))
        return response, has_urgent or size >= request.min_bytes or not session.partitions, served

    def _remember(self, session: Session, served: dict[Any, PartitionData]) -> None:
        for key, data in served.items():
            if not data.error_code:
                session.partitions[key].told = (data.high_watermark, data.log_start_offset)
            elif self.tells_bounds_again:
                session.partitions[key].told = None
            if data.records:
                session.partitions[key] = session.partitions.pop(key)  # others are served first the next time

    def _partition(
        self, key: tuple[str | bytes, int], wanted: Wanted, request: FetchRequest, size: int, node: int, uses_ids: bool
    ) -> PartitionData:
        name = next((name for name, topic_id in self.ids.items() if key[0] in (name, topic_id)), None)
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if uses_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _refusal(key[1], code)
        one = TopicPartition(name, key[1])
        log = self.logs[one]
        if one in self.fails or (node, one) in self.fails_at:
            return _refusal(key[1], self.fails.get(one) or self.fails_at[node, one])
        if node != log.leader and self.preferred.get(one) != node:
            leader = LeaderIdAndEpoch(leader_id=log.leader, leader_epoch=log.epoch) if self.names_leaders else None
            return _refusal(key[1], ErrorCode.NOT_LEADER_OR_FOLLOWER, leader if uses_ids else None)
        if wanted.epoch >= 0:
            known = log.end_of(wanted.epoch)
            if known is None:
                return _refusal(key[1], ErrorCode.OFFSET_OUT_OF_RANGE)
            if known.epoch < wanted.epoch or known.end_offset < wanted.offset:
                diverged = _data(key[1], log, b"")
                diverged.diverging_epoch = known
                return diverged
        if not log.start <= wanted.offset <= log.end:
            return _refusal(key[1], ErrorCode.OFFSET_OUT_OF_RANGE)
        if request.rack_id and one in self.preferred and self.preferred[one] != node:
            return _data(key[1], log, b"", self.preferred[one])
        limit = min(wanted.bytes_max, request.max_bytes - size)
        upto = log.stable if request.isolation_level else log.end
        records = log.read(wanted.offset, max(limit, 0), upto, at_least_one=size == 0)
        return _data(key[1], log, records)


def _refusal(number: int, code: ErrorCode, leader: LeaderIdAndEpoch | None = None) -> PartitionData:
    return PartitionData(partition_index=number, error_code=code, high_watermark=-1, current_leader=leader, records=b"")


def _data(number: int, log: PlayedLog, records: bytes, preferred: int = -1) -> PartitionData:
    return PartitionData(
        partition_index=number,
        high_watermark=log.end,
        last_stable_offset=log.stable,
        log_start_offset=log.start,
        preferred_read_replica=preferred,
        records=records,
    )


def offsets_in(records: Any, fetch_offset: int) -> Iterator[int]:
    """Of the whole batches, from the one asked for on."""
    at = 0
    while len(records) - at >= HEADER_SIZE:
        header = unpack_header(records, at)
        base, length, last_delta = header[0], header[1], header[6]
        if length > len(records) - at - 12:
            return
        yield from range(max(base, fetch_offset), base + last_delta + 1)
        at += 12 + length
