"""All groups and committed offsets of one partition of `__consumer_offsets`.

`decide` reads what is durable and says what to write; `replay` alone writes it, in life as after a restart. What a
crash may take (timers, waiting members, ids given out) is the decisions' own. Between a decision and the replay of its
records nothing else is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.classic import ClassicGroup, check_join, nobody_leaves
from lowwater.groups.commands import (
    Commit,
    ConsumerHeartbeat,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeGroup,
    Fetch,
    Join,
)
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_admission import MayCommit
from lowwater.groups.consumer_migration import upgraded
from lowwater.groups.consumer_mixed import MixedGroup
from lowwater.groups.consumer_patterns import TopicPatterns
from lowwater.groups.consumer_requests import check_heartbeat
from lowwater.groups.consumer_target import AssignmentComputed
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.offset_commits import OffsetCommits
from lowwater.groups.offsets import CommittedOffsets
from lowwater.groups.records import decode, read_group_key, read_group_value
from lowwater.groups.timers import Timers
from lowwater.groups.topics import TopicsView
from lowwater.outcome import Now, Outcome, StateRecord, Token
from lowwater.ports import Ids
from lowwater.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from lowwater.wire.messages.delete_groups import DeletableGroupResult
from lowwater.wire.messages.describe_groups import DescribedGroup
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.leave_group import LeaveGroupRequest
from lowwater.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from lowwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from lowwater.wire.messages.sync_group import SyncGroupRequest
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

Group: TypeAlias = ClassicGroup | MixedGroup
G = TypeVar("G", ClassicGroup, MixedGroup)
Decide: TypeAlias = Callable[[Any, Token, Now, Outcome], None]
Producer: TypeAlias = tuple[int, int]

OFFSET_KEYS = (0, 1)
CLASSIC_GROUP_KEY = 2
CONSUMER_GROUP_KEY = 3
TIMERS_PER_TICK = 20


class GroupShard:
    """A pure state machine; its driver is `broker.group_driver`. A reply may be an ApiError: the request is refused."""

    def __init__(self, config: GroupConfig, ids: Ids, topics: TopicsView, metrics: GroupMetrics | None = None) -> None:
        self.config = config
        self.metrics = metrics or GroupMetrics()
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets(config, topics)
        self._commits = OffsetCommits(config, topics, self.offsets)
        self._ids = ids
        self._topics = topics
        self._timers = Timers()
        self._patterns = TopicPatterns(topics)
        self._decide: dict[type, Decide] = {
            AssignmentComputed: self._assignment_computed,
            Commit: self._commit,
            ConsumerHeartbeat: self._consumer_heartbeat,
            DeleteGroup: self._delete_group,
            DescribeConsumerGroup: self._describe_consumer_group,
            DescribeGroup: self._describe_group,
            Fetch: self._fetch,
            HeartbeatRequest: self._heartbeat,
            Join: self._join,
            LeaveGroupRequest: self._leave,
            ListGroupsRequest: self._list_groups,
            OffsetDeleteRequest: self._delete_offsets,
            SyncGroupRequest: self._sync,
            TxnOffsetCommitRequest: self._commit_in_transaction,
        }

    # -- what the driver calls

    def decide(self, command: Any, token: Token, now: Now) -> Outcome:
        out = Outcome()
        try:
            self._decide[type(command)](command, token, now, out)
        except ApiError as refusal:
            assert not out.records, "who refuses has written nothing"
            out.reply(token, refusal)
        return out

    @property
    def next_deadline_ms(self) -> float | None:
        """When to call `tick`, by the monotonic clock."""
        return self._timers.next_deadline_ms

    def tick(self, now: Now) -> Outcome:
        """Some of what is due, up to a decision that writes: call again as long as the next deadline has passed."""
        out = Outcome()
        for _ in range(TIMERS_PER_TICK):
            if out.records or (timer := self._timers.take_due(now.monotonic_ms)) is None:
                break
            due = timer.group.due
            if self.groups.get(timer.group.group_id) is timer.group:
                due(timer, now, out)
        return out

    def replay(self, record: StateRecord, producer: Producer | None = None) -> None:
        """With `end_transaction` the only writer of what is durable. Keys of kinds that are not known are skipped.

        `producer` (id, epoch) when the record is part of its transaction.
        """
        kind = record.key[1] if len(record.key) > 1 and not record.key[0] else -1
        if kind in OFFSET_KEYS:
            group_id = self.offsets.replay(record, producer[0] if producer is not None else None)
            if record.value is not None and group_id not in self.groups:
                self._add(self._new_classic(group_id))
            return
        if kind == CLASSIC_GROUP_KEY:
            self._replay_classic(read_group_key(record.key), record.value)
            return
        decoded = decode(record)
        if decoded is not None:
            self._replay_consumer(kind, *decoded)

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """The transaction's marker is in the log behind all that was replayed; so too when the log is loaded."""
        self.offsets.end_transaction(producer_id, commit)

    def _replay_classic(self, group_id: str, stored: bytes | None) -> None:
        group = self.groups.get(group_id)
        if stored is None:
            if isinstance(group, ClassicGroup):
                # At a start: it was turned into a consumer group with its members.
                self.metrics.total_members -= len(group.roster.members)
                self._forgotten(group)
            return
        value = group.just_written(stored) if isinstance(group, ClassicGroup) else None
        value = value or read_group_value(stored)
        if not isinstance(group, ClassicGroup):
            group = self._add(self._new_classic(group_id))
        group.replay_metadata(value)

    def _replay_consumer(self, kind: int, key: Any, value: Any) -> None:
        group = self.groups.get(key.group_id)
        if value is None and (not isinstance(group, MixedGroup) or kind == CONSUMER_GROUP_KEY):
            if isinstance(group, MixedGroup):
                self._forgotten(group)
            return
        if not isinstance(group, MixedGroup):
            group = self._add(self._new_consumer(key.group_id))
        group.replay(key, value)

    def _forgotten(self, group: Group) -> None:
        """Offsets that outlive it, as when nobody joined the group that took its place, still belong to a group."""
        self._drop(group)
        if self.offsets.count(group.group_id):
            self._add(self._new_classic(group.group_id))

    def loaded(self, now: Now) -> Outcome:
        """All records were replayed: take up life where it stopped, members with fresh deadlines."""
        out = Outcome()
        self.offsets.delete_outdated(out)
        for group in self.groups.values():
            group.loaded(now, out)
        return out

    def topic_deleted(self, name: str, group_ids: Iterable[str]) -> Outcome:
        """What these groups committed for it means nothing. Consumer groups notice with their next heartbeat."""
        out = Outcome()
        self.offsets.delete_topic(name, group_ids, out)
        return out

    def expire_offsets(self, now: Now, group_ids: Iterable[str]) -> Outcome:
        """Forget what is too old of these groups, and the groups that have nothing left."""
        out = Outcome()
        for group_id in group_ids:
            group = self.groups.get(group_id)
            if group is not None:
                self._expire(group, now, out)
        return out

    def _expire(self, group: Group, now: Now, out: Outcome) -> None:
        if _keeps_offsets(group):
            return
        left = self.offsets.expire(group.group_id, group.empty_since_ms, group.subscribes_to, now, out)
        if not left and group.is_empty:
            group.forget(out)

    # -- groups

    def _new_classic(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self.config, self._ids, self._timers, self.metrics)

    def _new_consumer(self, group_id: str) -> MixedGroup:
        return MixedGroup(group_id, self.config, self._ids, self._timers, self.metrics, self._topics, self._patterns)

    def _add(self, group: G) -> G:
        self.groups[group.group_id] = group
        self.metrics.active_groups = len(self.groups)
        return group

    def _drop(self, group: Group) -> None:
        del self.groups[group.group_id]
        self.metrics.active_groups = len(self.groups)

    def _of_member(self, group_id: str) -> Group:
        """The group that a member speaks of."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"no group {group_id!r}")
        return group

    # -- the classic protocol

    def _join(self, command: Join, token: Token, now: Now, out: Outcome) -> None:
        request = command.request
        check_join(request, self.config)
        known = self.groups.get(request.group_id)
        if known is None and request.member_id:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"no group {request.group_id!r}")
        if known is None or (isinstance(known, MixedGroup) and known.is_empty):
            self._join_anew(command, known, token, now, out)
        else:
            self._ask_as_classic(known, command, token, now, out)

    def _ask_as_classic(self, group: Group, command: Any, token: Token, now: Now, out: Outcome) -> None:
        """A request of the classic protocol to a group of either kind, which may have to change its kind for it."""
        changed = self._downgraded(group, now, out) if isinstance(group, MixedGroup) else group
        try:
            _CLASSIC_REQUESTS[type(command)](changed, command, token, now, out)
        except ApiError as refusal:
            if changed is group:
                raise
            out.reply(token, refusal)

    def _downgraded(self, group: MixedGroup, now: Now, out: Outcome) -> Group:
        """A classic group again, if the last member that spoke the new protocol is gone."""
        value = group.as_classic(now)
        if value is None:
            return group
        group.forget(out)
        group.retire()
        classic = self._add(self._new_classic(group.group_id))
        classic.take_over(value, group.assignments_of_classic(), now, out)
        return classic

    def _join_anew(self, command: Join, old: MixedGroup | None, token: Token, now: Now, out: Outcome) -> None:
        """A new group, in place of one of the other protocol that has no members any more."""
        group = self._add(self._new_classic(command.request.group_id))
        try:
            group.join(command, token, now, out)
        except ApiError:
            self._put_back(group, old)
            raise
        if old is not None:
            old.forget(out)

    def _put_back(self, new: Group, old: Group | None) -> None:
        self._drop(new)
        if old is not None:
            self.groups[old.group_id] = old
            self.metrics.active_groups = len(self.groups)

    def _sync(self, request: SyncGroupRequest, token: Token, now: Now, out: Outcome) -> None:
        self._ask_as_classic(self._of_member(request.group_id), request, token, now, out)

    def _heartbeat(self, request: HeartbeatRequest, token: Token, now: Now, out: Outcome) -> None:
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup) and request.group_id:
            group.heartbeat(request, token, now, out)
        else:
            self._ask_as_classic(self._of_member(request.group_id), request, token, now, out)

    def _leave(self, request: LeaveGroupRequest, token: Token, now: Now, out: Outcome) -> None:
        if request.group_id and request.group_id not in self.groups:
            out.reply(token, nobody_leaves(request))
            return
        self._ask_as_classic(self._of_member(request.group_id), request, token, now, out)

    # -- the consumer protocol

    def _consumer_heartbeat(self, command: ConsumerHeartbeat, token: Token, now: Now, out: Outcome) -> None:
        request = command.request
        known = self.groups.get(request.group_id)
        if isinstance(known, MixedGroup):
            known.heartbeat(command, token, now, out)
            return
        check_heartbeat(command, self.config)
        if request.member_epoch != 0:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"no group {request.group_id!r}")
        self._begin_consumer_group(command, known, token, now, out)

    def _begin_consumer_group(
        self, command: ConsumerHeartbeat, old: ClassicGroup | None, token: Token, now: Now, out: Outcome
    ) -> None:
        """A new group, or a classic one with or without members that changes to the new protocol."""
        group = self._new_consumer(command.request.group_id)
        if old is not None:
            self._upgrade(old, group, now, out)
        self._add(group)
        try:
            group.heartbeat(command, token, now, out)
        except ApiError:
            group.retire()
            self._put_back(group, old)
            out.records.clear()
            raise
        if old is not None:
            old.send_away(out)

    def _upgrade(self, old: ClassicGroup, group: MixedGroup, now: Now, out: Outcome) -> None:
        records = [] if old.is_empty else upgraded(old, self.config, self._topics, now)
        if records is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"{old.group_id!r} cannot become a consumer group")
        old.forget(out)
        out.records += records
        group.become(records, now, out)

    def _assignment_computed(self, command: AssignmentComputed, token: Token, now: Now, out: Outcome) -> None:
        """Nobody waits for this one."""
        group = self.groups.get(command.group_id)
        if isinstance(group, MixedGroup):
            group.assignment_computed(command, now, out)

    # -- committed offsets

    def _commit(self, command: Commit, token: Token, now: Now, out: Outcome) -> None:
        refused, may_commit = ErrorCode.NONE, None
        try:
            may_commit = self._check_commit(command, now)
        except ApiError as error:
            refused = error.code
            if refused is ErrorCode.STALE_MEMBER_EPOCH and not command.knows_consumer_groups:
                refused = ErrorCode.UNSUPPORTED_VERSION
        out.reply(token, self._commits.commit(command, refused, may_commit, now, out))
        self.metrics.offset_commits_total += len(out.records)

    def _check_commit(self, command: Commit, now: Now) -> MayCommit | None:
        request = command.request
        group = self.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if group is not None:
            may_commit = group.check_commit(request.member_id, request.group_instance_id, epoch, now)
            if epoch >= 0 and not command.knows_consumer_groups and _speaks_new_protocol(group, request.member_id):
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "members of consumer groups commit with a newer version")
            return may_commit
        if epoch >= 0:
            known = ErrorCode.GROUP_ID_NOT_FOUND if command.knows_consumer_groups else ErrorCode.ILLEGAL_GENERATION
            raise ApiError(known, f"no group {request.group_id!r}")
        return None

    def _commit_in_transaction(self, request: TxnOffsetCommitRequest, token: Token, now: Now, out: Outcome) -> None:
        """That the transaction is open, and this partition in it, has been asked already."""
        refused, may_commit = ErrorCode.NONE, None
        try:
            may_commit = self._check_txn_commit(request, now)
        except ApiError as error:
            is_stale = error.code is ErrorCode.STALE_MEMBER_EPOCH
            refused = ErrorCode.ILLEGAL_GENERATION if is_stale else error.code
        out.reply(token, self._commits.commit_in_transaction(request, refused, may_commit, now, out))
        self.metrics.offset_commits_total += len(out.records)

    def _check_txn_commit(self, request: TxnOffsetCommitRequest, now: Now) -> MayCommit | None:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        group = self.groups.get(request.group_id)
        if group is not None:
            return group.check_txn_commit(request.member_id, request.group_instance_id, request.generation_id, now)
        if request.generation_id >= 0:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION, f"no group {request.group_id!r}")
        return None

    def _fetch(self, command: Fetch, token: Token, now: Now, out: Outcome) -> None:
        asked = command.group
        group = self.groups.get(asked.group_id)
        if group is not None:
            group.check_fetch(asked.member_id, asked.member_epoch)
        out.reply(token, self.offsets.fetch(command))

    def _delete_offsets(self, request: OffsetDeleteRequest, token: Token, now: Now, out: Outcome) -> None:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        group = self.groups.get(request.group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"no group {request.group_id!r}")
        group.check_offset_delete()
        topics = [self._delete_of_topic(group, topic, out) for topic in request.topics]
        out.reply(token, OffsetDeleteResponse(topics=topics))

    def _delete_of_topic(
        self, group: Group, topic: OffsetDeleteRequestTopic, out: Outcome
    ) -> OffsetDeleteResponseTopic:
        count = self._topics.partition_count(topic.name) or 0
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.subscribes_to(topic.name) else ErrorCode.NONE
        answers = []
        for index in dict.fromkeys(one.partition_index for one in topic.partitions):
            unknown = not 0 <= index < count
            answers.append(
                OffsetDeleteResponsePartition(
                    partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if unknown else code
                )
            )
        forgotten = [one.partition_index for one in answers if one.error_code == ErrorCode.NONE]
        self.offsets.delete(group.group_id, topic.name, forgotten, out)
        return OffsetDeleteResponseTopic(name=topic.name, partitions=answers)

    # -- administration

    def _delete_group(self, command: DeleteGroup, token: Token, now: Now, out: Outcome) -> None:
        group = self.groups.get(command.group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"no group {command.group_id!r}")
        group.check_delete()
        self.offsets.delete_all(command.group_id, out)
        group.forget(out)
        out.reply(token, DeletableGroupResult(group_id=command.group_id))

    def _describe_group(self, command: DescribeGroup, token: Token, now: Now, out: Outcome) -> None:
        group = self.groups.get(command.group_id)
        if isinstance(group, ClassicGroup):
            out.reply(token, group.describe())
        elif command.unknown_is_error:
            what = f"no group {command.group_id!r}" if group is None else f"{command.group_id!r} is not a classic group"
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, what)
        else:
            out.reply(token, DescribedGroup(group_id=command.group_id, group_state="Dead"))

    def _describe_consumer_group(self, command: DescribeConsumerGroup, token: Token, now: Now, out: Outcome) -> None:
        group = self.groups.get(command.group_id)
        if not command.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        if not isinstance(group, MixedGroup):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"no consumer group {command.group_id!r}")
        described: DescribedConsumerGroup = group.describe()
        out.reply(token, described)

    def _list_groups(self, request: ListGroupsRequest, token: Token, now: Now, out: Outcome) -> None:
        states = {state.lower() for state in request.states_filter}
        kinds = {kind.lower() for kind in request.types_filter}
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.kind,
            )
            for group in self.groups.values()
            if (not states or group.state.lower() in states) and (not kinds or group.kind in kinds)
        ]
        out.reply(token, ListGroupsResponse(groups=listed))


_CLASSIC_REQUESTS: dict[type, Callable[[Any, Any, Token, Now, Outcome], None]] = {
    Join: lambda group, command, token, now, out: group.join(command, token, now, out),
    SyncGroupRequest: lambda group, request, token, now, out: group.sync(request, token, now, out),
    HeartbeatRequest: lambda group, request, token, now, out: _heartbeat(group)(request, token, now, out),
    LeaveGroupRequest: lambda group, request, token, now, out: group.leave(request, token, now, out),
}


def _heartbeat(group: Group) -> Callable[[HeartbeatRequest, Token, Now, Outcome], None]:
    return group.heartbeat_of_classic if isinstance(group, MixedGroup) else group.heartbeat


def _speaks_new_protocol(group: Group, member_id: str) -> bool:
    return isinstance(group, MixedGroup) and not group.speaks_classic(member_id)


def _keeps_offsets(group: Group) -> bool:
    """A classic group that has members keeps everything, unless it is known what they read."""
    if not isinstance(group, ClassicGroup) or group.is_empty:
        return False
    return group.protocol_type != "consumer" or group.state != "Stable"
