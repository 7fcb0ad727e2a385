"""One Fetch of some partitions, as stored bytes: for those who look into a log, and do not follow it.

Without Arrow and without sessions. Each partition has an outcome of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.errors import BrokerError, ClientError, ProtocolError, broker_error
from lowwater.client.offsets import ISOLATION, leader_of
from lowwater.client.session import Leased
from lowwater.client.slices import FetchedSlice
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic, PartitionData
from lowwater.wire.schema import ZERO_UUID

ANSWER_BYTES_MAX = 16 * 1024 * 1024
_VERSIONS, _VERSIONS_BY_NAME = (4, 18), (4, 12)


async def fetch_once(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    left_ms: float,
    *,
    piece_bytes: int,
    isolation: str,
) -> dict[TopicPartition, FetchedSlice | ClientError]:
    """What is there now from these offsets on, some `piece_bytes` of each; one request per leader, all at once.

    A slice without records is at the end, or had no room in the answer: its bounds tell. ClientError is raised only
    when no broker can be asked for what leaders there are.
    """
    unknown = {one.topic for one in offsets if cluster.known(one.topic) is None}
    problems = await cluster.refresh(unknown, left_ms) if unknown else {}
    found: dict[TopicPartition, FetchedSlice | ClientError] = {}
    leaders: dict[int, list[TopicPartition]] = {}
    for one in offsets:
        leader = leader_of(cluster, one, problems)
        if isinstance(leader, int):
            leaders.setdefault(leader, []).append(one)
        else:
            found[one] = leader
    asking = {node: _Asking(cluster, {one: offsets[one] for one in mine}) for node, mine in leaders.items()}
    answers = {node: each.ask(node, left_ms, piece_bytes, isolation) for node, each in asking.items()}
    try:
        for node, answer in answers.items():
            found |= await asking[node].answered(answer)
    finally:
        for answer in answers.values():
            answer.abandon()
    return found


def ask_once(
    cluster: Cluster,
    node: int,
    offsets: Mapping[TopicPartition, int],
    left_ms: float,
    piece_bytes: int,
    isolation: str,
    names: dict[bytes, str],
) -> Pending[Any]:
    """One Fetch of one broker, which answers at once. `names` is given those of the topics that are asked for by id."""
    topics: dict[str, FetchTopic] = {}
    for one, offset in offsets.items():
        topic = topics.get(one.topic)
        if topic is None:
            known = cluster.known(one.topic)
            topic_id = ZERO_UUID if known is None else known.id
            topic = topics[one.topic] = FetchTopic(topic=one.topic, topic_id=topic_id, partitions=[])
            names[topic_id] = one.topic
        topic.partitions.append(
            FetchPartition(
                partition=one.partition,
                current_leader_epoch=cluster.epoch(one),
                fetch_offset=offset,
                partition_max_bytes=piece_bytes,
            )
        )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=ANSWER_BYTES_MAX,
        isolation_level=ISOLATION[isolation],
        topics=list(topics.values()),
    )
    has_ids = all(topic.topic_id != ZERO_UUID for topic in topics.values())
    limit_ms = min(left_ms, cluster.network.config.int("request.timeout.ms"))
    versions = _VERSIONS if has_ids else _VERSIONS_BY_NAME
    return cluster.network.ask(node, request, versions=versions, timeout_ms=limit_ms)


class _Asking:
    """What is asked of one broker."""

    def __init__(self, cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> None:
        self._cluster = cluster
        self._offsets = offsets
        self._names: dict[bytes, str] = {}

    def ask(self, node: int, left_ms: float, piece_bytes: int, isolation: str) -> Pending[Any]:
        return ask_once(self._cluster, node, self._offsets, left_ms, piece_bytes, isolation, self._names)

    async def answered(self, answer: Pending[Any]) -> dict[TopicPartition, FetchedSlice | ClientError]:
        try:
            leased: Leased = await answer
        except ClientError as error:
            self._cluster.outdate({one.topic for one in self._offsets})
            return dict.fromkeys(self._offsets, error)
        try:
            return self._read(leased.response)
        finally:
            leased.release()

    def _read(self, response: Any) -> dict[TopicPartition, FetchedSlice | ClientError]:
        if response.error_code:
            return dict.fromkeys(self._offsets, broker_error(response.error_code, "nothing can be fetched"))
        is_throttled = response.throttle_time_ms > 0
        found: dict[TopicPartition, FetchedSlice | ClientError] = {
            one: _left_out(one, is_throttled=is_throttled) for one in self._offsets
        }
        for topic in response.responses:
            name = topic.topic or self._names.get(topic.topic_id, "")
            for data in topic.partitions:
                one = TopicPartition(name, data.partition_index)
                if one in self._offsets:
                    found[one] = self._refused(one, data.error_code) if data.error_code else self._slice(one, data)
        return found

    def _slice(self, one: TopicPartition, data: PartitionData) -> FetchedSlice:
        return FetchedSlice(
            one,
            self._offsets[one],
            _bytes(data.records),  # the answer's memory is used again
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
            [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()],
        )

    def _refused(self, one: TopicPartition, code: int) -> BrokerError:
        error = broker_error(code, topic=one.topic, partition=one.partition, offset=self._offsets[one])
        if code in OUTDATED:
            self._cluster.outdate([one.topic])
            error.retriable = True
        return error


def _left_out(one: TopicPartition, *, is_throttled: bool) -> ClientError:
    """A broker whose quota is used up answers nothing, whatever there is."""
    if is_throttled:
        return broker_error(ErrorCode.THROTTLING_QUOTA_EXCEEDED, topic=one.topic, partition=one.partition)
    return ProtocolError("a broker left it out", topic=one.topic, partition=one.partition)


def _bytes(records: Any) -> bytes:
    return b"".join(records) if isinstance(records, list) else bytes(records or b"")
