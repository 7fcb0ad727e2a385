"""A shard with its log, a few topics, and a clock that moves when told to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.unit.groups.classic_world import CountedIds
from tests.unit.groups.shard_log import Ended, Logged, compacted, logged, replay

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.commands import Commit, DeleteGroup, Fetch, Join
from lowwater.groups.config import GroupConfig
from lowwater.groups.shard import GroupShard
from lowwater.outcome import Now, Outcome
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.list_groups import ListGroupsRequest
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from lowwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

WALL_MS = 1_700_000_000_000
DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS
OK = ErrorCode.NONE


class FakeTopics:
    """Topics by name: partition count and id."""

    def __init__(self, **counts: int) -> None:
        self.version = 1
        self._topics: dict[str, tuple[int, bytes]] = {}
        for name, count in counts.items():
            self.create(name, count)

    def create(self, name: str, count: int) -> bytes:
        self.version += 1
        topic_id = self.version.to_bytes(16, "big")
        self._topics[name] = count, topic_id
        return topic_id

    def delete(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def names(self) -> Iterable[str]:
        return sorted(self._topics)

    def partition_count(self, name: str) -> int | None:
        return self._topics[name][0] if name in self._topics else None

    def topic_id(self, name: str) -> bytes | None:
        return self._topics[name][1] if name in self._topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, (_, one) in self._topics.items() if one == topic_id), None)


class ShardWorld:
    """What is decided is logged and replayed at once; `restart` makes a new shard of the log."""

    def __init__(self, **config: int) -> None:
        self.config = GroupConfig(**{"initial_rebalance_delay_ms": 0, **config})
        self.topics = FakeTopics(orders=3, metrics=1)
        self.ids = CountedIds()
        self.wall_ms = WALL_MS
        self.elapsed_ms = 0.0
        self.log: list[Logged] = []
        self.shard = GroupShard(self.config, self.ids, self.topics)
        self.replies: dict[object, Any] = {}

    @property
    def now(self) -> Now:
        return Now(self.wall_ms, self.elapsed_ms)

    def pass_time(self, by_ms: int) -> None:
        self.wall_ms += by_ms
        self.elapsed_ms += by_ms
        self.tick()

    def tick(self) -> None:
        while (due_ms := self.shard.next_deadline_ms) is not None and due_ms <= self.elapsed_ms:
            self.do(self.shard.tick(self.now))

    def do(self, out: Outcome) -> Outcome:
        self._append(logged(out))
        self.replies.update(out.replies)
        return out

    def _append(self, entries: list[Logged]) -> None:
        self.log += entries
        replay(self.shard, entries)

    def ask(self, command: Any) -> Any:
        """The reply, or None when it waits."""
        token = object()
        self.do(self.shard.decide(command, token, self.now))
        return self.replies.get(token)

    def restart(self, log: Iterable[Logged] | None = None) -> None:
        self.shard = GroupShard(self.config, self.ids, self.topics)
        replay(self.shard, self.log if log is None else log)
        self.do(self.shard.loaded(self.now))

    def compacted(self) -> list[Logged]:
        """The log after a compaction whose tombstones are gone."""
        return compacted(self.log, tombstones=False)

    def expire(self) -> Outcome:
        return self.do(self.shard.expire_offsets(self.now, list(self.shard.groups)))

    # -- requests

    def commit(
        self,
        group: str,
        offsets: dict[tuple[str, int], int],
        *,
        metadata: str | None = "",
        member_id: str = "",
        generation: int = -1,
        expire_after_ms: int = -1,
        by_id: bool = False,
        knows_consumer_groups: bool = True,
    ) -> list[ErrorCode]:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            part = OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
            topics.setdefault(topic, []).append(part)
        request = OffsetCommitRequest(
            group_id=group,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[
                OffsetCommitRequestTopic(name=name, topic_id=self.topics.topic_id(name) or bytes(16), partitions=parts)
                for name, parts in topics.items()
            ],
        )
        answer = self.ask(Commit(request, by_id, expire_after_ms, knows_consumer_groups))
        return [ErrorCode(part.error_code) for topic in answer.topics for part in topic.partitions]

    def commit_in_transaction(
        self,
        group: str,
        offsets: dict[tuple[str, int], int],
        *,
        producer: int = 7,
        metadata: str | None = "",
        member_id: str = "",
        instance_id: str | None = None,
        generation: int = -1,
    ) -> list[ErrorCode]:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            part = TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
            topics.setdefault(topic, []).append(part)
        request = TxnOffsetCommitRequest(
            transactional_id=f"t{producer}",
            group_id=group,
            producer_id=producer,
            producer_epoch=0,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )
        answer = self.ask(request)
        return [ErrorCode(part.error_code) for topic in answer.topics for part in topic.partitions]

    def end_transaction(self, producer: int = 7, *, commit: bool) -> None:
        self._append([Ended(producer, commit)])

    def is_unstable(self, group: str, topic: str = "orders", partition: int = 0) -> bool:
        """Whether one who wants what no transaction may change is told to come again."""
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
        [answer] = self.ask(Fetch(asked, False, True)).topics[0].partitions
        assert answer.error_code in (OK, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert not answer.error_code or answer.committed_offset == -1
        return bool(answer.error_code)

    def fetch(self, group: str, topic: str = "orders", partition: int = 0) -> tuple[int, str]:
        """(offset, metadata); -1 when there is none."""
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
        [answer] = self.ask(Fetch(asked, False, False)).topics[0].partitions
        assert answer.error_code == 0
        return answer.committed_offset, answer.metadata

    def fetch_all(self, group: str) -> dict[tuple[str, int], int]:
        answer = self.ask(Fetch(OffsetFetchRequestGroup(group_id=group, topics=None), False, False))
        return {
            (topic.name, one.partition_index): one.committed_offset
            for topic in answer.topics
            for one in topic.partitions
        }

    def delete_offsets(self, group: str, topic: str, *partitions: int) -> Any:
        parts = [OffsetDeleteRequestPartition(partition_index=one) for one in partitions]
        topics = [OffsetDeleteRequestTopic(name=topic, partitions=parts)]
        answer = self.ask(OffsetDeleteRequest(group_id=group, topics=topics))
        if isinstance(answer, ApiError):
            return answer.code
        return [ErrorCode(one.error_code) for one in answer.topics[0].partitions]

    def delete_group(self, group: str) -> ErrorCode:
        answer = self.ask(DeleteGroup(group))
        return answer.code if isinstance(answer, ApiError) else ErrorCode(answer.error_code)

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> dict[str, tuple[str, str, str]]:
        """Group -> (state, type, protocol type)."""
        answer = self.ask(ListGroupsRequest(states_filter=list(states), types_filter=list(types)))
        return {one.group_id: (one.group_state, one.group_type, one.protocol_type) for one in answer.groups}

    def begin_join(
        self, group: str, subscription: bytes = b"", protocol_type: str = "consumer", member_id: str = ""
    ) -> Any:
        """The answer, or None while the others are waited for."""
        protocol = JoinGroupRequestProtocol(name="range", metadata=subscription)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type=protocol_type,
            protocols=[protocol],
        )
        return self.ask(Join(request, "client", "/host", False, True))

    def sync(self, group: str, member_id: str, generation: int) -> None:
        """The leader assigns something to itself."""
        assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=b"x")
        request = SyncGroupRequest(
            group_id=group, generation_id=generation, member_id=member_id, assignments=[assignment]
        )
        synced = self.ask(request)
        assert synced.error_code == 0, synced

    def join(self, group: str, subscription: bytes = b"", protocol_type: str = "consumer") -> tuple[str, int]:
        """A group of one member, Stable; (member id, generation)."""
        joined = self.begin_join(group, subscription, protocol_type)
        assert joined.error_code == 0, joined
        self.sync(group, joined.member_id, joined.generation_id)
        return joined.member_id, joined.generation_id

    def leave(self, group: str, member_id: str) -> None:
        answer = self.ask(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)]))
        assert answer.members[0].error_code == 0
