"""Committed offsets of one shard: how far each group has read, by topic and partition.

A value is kept as the bytes that are stored in the log, and read when someone asks: a million of them fit in little
memory and are back quickly after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from lowwater.errors import ErrorCode, WireError
from lowwater.groups.commands import Commit, Fetch
from lowwater.groups.config import GroupConfig
from lowwater.groups.record_schemas import OffsetCommitValue
from lowwater.groups.records import (
    encode_value,
    forget_offset,
    offset_key,
    offset_value,
    read_offset_key,
    read_offset_value,
)
from lowwater.groups.topics import TopicsView
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from lowwater.wire.schema import ZERO_UUID

NEVER = -1
EXPIRING_VERSION = b"\0\1"
TIME_MAX = (1 << 63) - 1
MayCommit: TypeAlias = Callable[[str, int], bool]


class CommittedOffsets:
    """`replay` writes; everything else reads, or says what is to be written."""

    def __init__(self, config: GroupConfig, topics: TopicsView) -> None:
        self._config = config
        self._topics = topics
        self._by_group: dict[str, dict[str, dict[int, bytes]]] = {}
        # What the keys of a commit say, until it is replayed: nobody has to read what was just written.
        self._places: dict[bytes, tuple[str, str, int]] = {}
        # Group -> (what its offsets were aged from, when the first of them can expire): not worth a look before that.
        self._due: dict[str, tuple[int | None, int]] = {}

    def replay(self, record: StateRecord) -> str:
        """Keep or forget one offset; return its group."""
        key = record.key
        group, topic, partition = self._places.pop(key) if key in self._places else read_offset_key(key)
        if record.value is not None:
            topics = self._by_group.get(group)
            if topics is None:
                topics = self._by_group[group] = {}
            partitions = topics.get(topic)
            if partitions is None:
                partitions = topics[topic] = {}
            partitions[partition] = record.value
            if record.value.startswith(EXPIRING_VERSION):
                self._due.pop(group, None)
        else:
            self._forget(group, topic, partition)
        return group

    def _forget(self, group: str, topic: str, partition: int) -> None:
        topics = self._by_group.get(group, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is not None and not partitions:
            del topics[topic]
            if not topics:
                del self._by_group[group]
                self._due.pop(group, None)

    # -- reading

    def __len__(self) -> int:
        return sum(len(partitions) for topics in self._by_group.values() for partitions in topics.values())

    def count(self, group: str) -> int:
        return sum(map(len, self._by_group.get(group, {}).values()))

    def groups_of(self, topic: str) -> list[str]:
        """Who has committed anything for it."""
        return [group for group, topics in self._by_group.items() if topic in topics]

    def get(self, group: str, topic: str, partition: int) -> OffsetCommitValue | None:
        """None: never committed, or for a topic that is gone, also when another one has its name now."""
        value = self._by_group.get(group, {}).get(topic, {}).get(partition)
        committed = None if value is None else _readable(value)
        if committed is None:
            return None
        if committed.topic_id != ZERO_UUID:
            return committed if committed.topic_id == self._topics.topic_id(topic) else None
        return committed

    def fetch(self, command: Fetch) -> OffsetFetchResponseGroup:
        group_id, asked = command.group.group_id, command.group.topics
        if asked is None:
            return OffsetFetchResponseGroup(group_id=group_id, topics=list(self._everything(group_id, command.by_id)))
        topics = [self._fetch_topic(group_id, topic, command.by_id) for topic in asked]
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    def _everything(self, group_id: str, by_id: bool) -> Iterator[OffsetFetchResponseTopics]:
        for name, partitions in self._by_group.get(group_id, {}).items():
            topic_id = self._topics.topic_id(name)
            if by_id and topic_id is None:
                continue
            known = [one for one in partitions if self.get(group_id, name, one) is not None]
            if known:
                answers = [self._answer(group_id, name, one) for one in known]
                yield OffsetFetchResponseTopics(name=name, topic_id=topic_id or ZERO_UUID, partitions=answers)

    def _fetch_topic(self, group_id: str, asked: OffsetFetchRequestTopics, by_id: bool) -> OffsetFetchResponseTopics:
        name = self._topics.topic_name(asked.topic_id) if by_id else asked.name
        if name is None:
            answers = [_nothing(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in asked.partition_indexes]
        else:
            answers = [self._answer(group_id, name, partition) for partition in asked.partition_indexes]
        return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=answers)

    def _answer(self, group_id: str, topic: str, partition: int) -> OffsetFetchResponsePartitions:
        committed = self.get(group_id, topic, partition)
        if committed is None:
            return _nothing(partition)
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )

    # -- committing

    def commit(
        self, command: Commit, refused: ErrorCode, may_commit: MayCommit | None, now: Now, out: Outcome
    ) -> OffsetCommitResponse:
        """Store what can be stored. `refused` is the group's word on all of it, `may_commit` that on each partition."""
        request = command.request
        expire_ms = NEVER if command.expire_after_ms < 0 else min(now.wall_ms + command.expire_after_ms, TIME_MAX)
        topics = self._topics
        answers = []
        for topic in request.topics:
            name = topics.topic_name(topic.topic_id) if command.by_id else topic.name
            count = topics.partition_count(name) if name is not None else None
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            # Also of commits by name: a topic that is deleted and made anew begins without offsets.
            topic_id = (topics.topic_id(name) if name is not None else None) or ZERO_UUID
            parts = []
            for part in topic.partitions:
                index = part.partition_index
                if count is None or not 0 <= index < count:
                    parts.append(OffsetCommitResponsePartition(partition_index=index, error_code=unknown))
                    continue
                assert name is not None
                code = refused or self._problem(part)
                if may_commit is not None and not code and not may_commit(name, index):
                    code = ErrorCode.STALE_MEMBER_EPOCH
                if not code:
                    key = offset_key(request.group_id, name, index)
                    self._places[key] = request.group_id, name, index
                    out.records.append(StateRecord(key, _value(part, now.wall_ms, expire_ms, topic_id)))
                parts.append(OffsetCommitResponsePartition(partition_index=index, error_code=code))
            answers.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts))
        return OffsetCommitResponse(topics=answers)

    def _problem(self, part: OffsetCommitRequestPartition) -> ErrorCode:
        metadata = part.committed_metadata
        if metadata and len(metadata) > self._config.offset_metadata_bytes_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    # -- forgetting

    def delete(self, group_id: str, topic: str, partitions: Iterable[int], out: Outcome) -> None:
        stored = self._by_group.get(group_id, {}).get(topic, {})
        out.records += [forget_offset(group_id, topic, one) for one in partitions if one in stored]

    def delete_all(self, group_id: str, out: Outcome) -> None:
        for topic, partitions in self._by_group.get(group_id, {}).items():
            self.delete(group_id, topic, partitions, out)

    def delete_topic(self, topic: str, group_ids: Iterable[str], out: Outcome) -> None:
        """The topic was deleted, and may be there anew: what these groups committed for the old one goes."""
        for group_id in group_ids:
            self._delete_outdated(group_id, topic, self._by_group.get(group_id, {}).get(topic, {}), out)

    def delete_outdated(self, out: Outcome) -> None:
        """After a restart: those of topics that were deleted when there was no time to write it down."""
        for group_id, topics in self._by_group.items():
            for topic, partitions in topics.items():
                self._delete_outdated(group_id, topic, partitions, out)

    def _delete_outdated(self, group_id: str, topic: str, partitions: Mapping[int, bytes], out: Outcome) -> None:
        topic_id = self._topics.topic_id(topic)
        if topic_id is None:
            self.delete(group_id, topic, partitions, out)
            return
        # The id stands last in nearly every value, and a million of them are looked at in one turn.
        doubtful = [one for one, value in partitions.items() if not value.endswith(topic_id)]
        self.delete(group_id, topic, [one for one in doubtful if self.get(group_id, topic, one) is None], out)

    def expire(
        self, group_id: str, since_ms: int | None, subscribes_to: Callable[[str], bool], now: Now, out: Outcome
    ) -> bool:
        """Forget what is too old, counted from `since_ms` or, when None, from each commit; whether anything is left."""
        known_since_ms, due_ms = self._due.get(group_id, (NEVER, 0))
        if known_since_ms == since_ms and now.wall_ms < due_ms:
            return True
        topics = self._by_group.get(group_id, {})
        read = {topic for topic in topics if subscribes_to(topic)}
        left: list[int] = []
        for topic in topics:
            if topic in read:
                continue
            expiries = {one: self._expires_ms(value, since_ms) for one, value in topics[topic].items()}
            self.delete(group_id, topic, [one for one, at_ms in expiries.items() if at_ms <= now.wall_ms], out)
            left += [at_ms for at_ms in expiries.values() if at_ms > now.wall_ms]
        if left and not read:
            self._due[group_id] = since_ms, min(left)
        return bool(left or read)

    def _expires_ms(self, value: bytes, since_ms: int | None) -> int:
        committed = _readable(value)
        if committed is None:
            return 0
        if committed.expire_timestamp >= 0:
            return committed.expire_timestamp
        base_ms = committed.commit_timestamp if since_ms is None else since_ms
        return base_ms + self._config.offsets_retention_ms


def _readable(value: bytes) -> OffsetCommitValue | None:
    """None for what somebody else wrote to the internal topic: it stands for nothing."""
    try:
        return read_offset_value(value)
    except WireError:
        return None


def _value(part: OffsetCommitRequestPartition, now_ms: int, expire_ms: int, topic_id: bytes) -> bytes:
    metadata = part.committed_metadata or ""
    if expire_ms == NEVER:
        return offset_value(part.committed_offset, part.committed_leader_epoch, metadata, now_ms, topic_id)
    return encode_value(
        OffsetCommitValue(
            offset=part.committed_offset,
            leader_epoch=part.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=now_ms,
            expire_timestamp=expire_ms,
            topic_id=topic_id,
        )
    )


def _nothing(partition: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=partition, committed_offset=-1, error_code=code)
