"""Committed offsets of one shard: how far each group has read, by topic and partition.

A value is kept as the bytes that are stored in the log, and read when someone asks: a million of them fit in little
memory and are back quickly after a restart. Those of open transactions stand beside the others, not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from lowwater.errors import ErrorCode, WireError
from lowwater.groups.commands import Fetch
from lowwater.groups.config import GroupConfig
from lowwater.groups.pending_offsets import PendingOffsets, Place
from lowwater.groups.record_schemas import OffsetCommitValue
from lowwater.groups.records import forget_offset, read_offset_key, read_offset_value
from lowwater.groups.topics import TopicsView
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from lowwater.wire.schema import ZERO_UUID

NEVER = -1
EXPIRING_VERSION = b"\0\1"


class CommittedOffsets:
    """`replay` and `end_transaction` write; everything else reads, or says what is to be written."""

    def __init__(self, config: GroupConfig, topics: TopicsView) -> None:
        self._config = config
        self._topics = topics
        self._by_group: dict[str, dict[str, dict[int, bytes]]] = {}
        self._pending = PendingOffsets()
        # What the keys of a commit say, until it is replayed: nobody has to read what was just written.
        self.announced: dict[bytes, Place] = {}
        # Group -> (what its offsets were aged from, when the first of them can expire): not worth a look before that.
        self._due: dict[str, tuple[int | None, int]] = {}

    def replay(self, record: StateRecord, producer_id: int | None = None) -> str:
        """Keep or forget one offset; return its group. That of a transaction waits for `end_transaction`."""
        key, value = record
        place = self.announced.pop(key, None) or read_offset_key(key)
        if value is None:
            self._forget(*place)
            self._pending.forget(place)
        elif producer_id is None:
            self._keep(place, value)
            if self._pending:
                self._pending.overtake(place)
        else:
            self._pending.add(producer_id, place, value)
        return place[0]

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """What the producer's transaction has written holds from now on, where nobody has committed since; or never."""
        for place, (number, value) in self._pending.end(producer_id).items():
            if commit and value is not None:
                self._keep(place, value)
                self._pending.overtake(place, number)
                # It may be older than the others were when they were last looked at.
                self._due.pop(place[0], None)

    def _keep(self, place: Place, value: bytes) -> None:
        group, topic, partition = place
        topics = self._by_group.get(group)
        if topics is None:
            topics = self._by_group[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        partitions[partition] = value
        if value.startswith(EXPIRING_VERSION):
            self._due.pop(group, None)

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
        """Those of open transactions too."""
        return sum(map(len, self._by_group.get(group, {}).values())) + self._pending.count(group)

    def groups_of(self, topic: str) -> list[str]:
        """Who has committed anything for it, or is about to."""
        committed = [group for group, topics in self._by_group.items() if topic in topics]
        return list(dict.fromkeys([*committed, *self._pending.groups_of(topic)]))

    def get(self, group: str, topic: str, partition: int) -> OffsetCommitValue | None:
        """None: never committed, or for a topic that is gone, also when another one has its name now."""
        value = self._by_group.get(group, {}).get(topic, {}).get(partition)
        return None if value is None else self._of_topic(topic, value)

    def _of_topic(self, topic: str, value: bytes) -> OffsetCommitValue | None:
        committed = _readable(value)
        if committed is not None and committed.topic_id != ZERO_UUID:
            return committed if committed.topic_id == self._topics.topic_id(topic) else None
        return committed

    def fetch(self, command: Fetch) -> OffsetFetchResponseGroup:
        group_id, asked = command.group.group_id, command.group.topics
        if asked is None:
            return OffsetFetchResponseGroup(group_id=group_id, topics=list(self._everything(command)))
        topics = [self._fetch_topic(command, topic) for topic in asked]
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    def _everything(self, command: Fetch) -> Iterator[OffsetFetchResponseTopics]:
        group_id = command.group.group_id
        for name, partitions in self._by_group.get(group_id, {}).items():
            topic_id = self._topics.topic_id(name)
            if command.by_id and topic_id is None:
                continue
            known = [one for one in partitions if self.get(group_id, name, one) is not None]
            if known:
                answers = [self._answer(command, name, one) for one in known]
                yield OffsetFetchResponseTopics(name=name, topic_id=topic_id or ZERO_UUID, partitions=answers)

    def _fetch_topic(self, command: Fetch, asked: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
        name = self._topics.topic_name(asked.topic_id) if command.by_id else asked.name
        if name is None:
            answers = [_nothing(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in asked.partition_indexes]
        else:
            answers = [self._answer(command, name, partition) for partition in asked.partition_indexes]
        return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=answers)

    def _answer(self, command: Fetch, topic: str, partition: int) -> OffsetFetchResponsePartitions:
        group_id = command.group.group_id
        if command.require_stable and (group_id, topic, partition) in self._pending:
            return _nothing(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = self.get(group_id, topic, partition)
        if committed is None:
            return _nothing(partition)
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )

    # -- forgetting

    def delete(self, group_id: str, topic: str, partitions: Iterable[int], out: Outcome) -> None:
        """With what transactions are about to commit there."""
        stored = self._by_group.get(group_id, {}).get(topic, {})
        out.records += [
            forget_offset(group_id, topic, one)
            for one in partitions
            if one in stored or (group_id, topic, one) in self._pending
        ]

    def delete_all(self, group_id: str, out: Outcome) -> None:
        for topic, partitions in self._known(group_id).items():
            self.delete(group_id, topic, partitions, out)

    def delete_topic(self, topic: str, group_ids: Iterable[str], out: Outcome) -> None:
        """The topic was deleted, and may be there anew: what these groups committed for the old one goes."""
        for group_id in group_ids:
            self._delete_outdated(group_id, topic, self._known(group_id).get(topic, ()), out)

    def delete_outdated(self, out: Outcome) -> None:
        """After a restart: those of topics that were deleted when there was no time to write it down."""
        for group_id in dict.fromkeys([*self._by_group, *self._pending.groups()]):
            for topic, partitions in self._known(group_id).items():
                self._delete_outdated(group_id, topic, partitions, out)

    def _known(self, group_id: str) -> Mapping[str, Collection[int]]:
        """The partitions of each topic that it has committed, or is about to."""
        committed = self._by_group.get(group_id, {})
        if not self._pending.has_group(group_id):
            return committed
        known = {topic: set(partitions) for topic, partitions in committed.items()}
        for topic, partition in self._pending.places_of(group_id):
            known.setdefault(topic, set()).add(partition)
        return known

    def _delete_outdated(self, group_id: str, topic: str, partitions: Collection[int], out: Outcome) -> None:
        topic_id = self._topics.topic_id(topic)
        if topic_id is None:
            self.delete(group_id, topic, partitions, out)
            return
        # The id stands last in nearly every value, and a million of them are looked at in one turn.
        stored = self._by_group.get(group_id, {}).get(topic, {})
        doubtful = [one for one in partitions if not stored.get(one, b"").endswith(topic_id)]
        self.delete(group_id, topic, [one for one in doubtful if self._is_outdated(group_id, topic, one)], out)

    def _is_outdated(self, group_id: str, topic: str, partition: int) -> bool:
        """Neither what is committed nor what may come to be is of the topic that has the name now."""
        pending = self._pending.values_at((group_id, topic, partition))
        is_alive = any(self._of_topic(topic, value) is not None for value in pending)
        return not is_alive and self.get(group_id, topic, partition) is None

    def expire(
        self, group_id: str, since_ms: int | None, subscribes_to: Callable[[str], bool], now: Now, out: Outcome
    ) -> bool:
        """Forget what is too old, counted from `since_ms` or, when None, from each commit; whether anything is left.

        What a transaction is about to replace stays until that has ended.
        """
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
            due = [one for one, at_ms in expiries.items() if at_ms <= now.wall_ms]
            gone = {one for one in due if (group_id, topic, one) not in self._pending}
            self.delete(group_id, topic, gone, out)
            left += [at_ms for one, at_ms in expiries.items() if one not in gone]
        if left and not read:
            self._due[group_id] = since_ms, min(left)
        return bool(left or read) or self._pending.has_group(group_id)

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


def _nothing(partition: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=partition, committed_offset=-1, error_code=code)
