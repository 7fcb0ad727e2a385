"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members follow at their own pace.

Three epochs tell how far everybody is: that of the group grows with every change of members, subscriptions or topics;
that of the target assignment is the group epoch it was made for; a member's epoch is the target's once it has given up
what it shall not keep. A group is

    Empty        without members
    Assigning    while its epoch is ahead of the target's
    Reconciling  while members are behind the target
    Stable       otherwise
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeAlias

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.assignors import AssignorError, assign
from lowwater.groups.commands import ConsumerHeartbeat
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_description import described
from lowwater.groups.consumer_durable import DurableGroup
from lowwater.groups.consumer_members import LEFT_FOR_A_WHILE, NEW_MEMBER, Member, current_record, removal_records
from lowwater.groups.consumer_patterns import TopicPatterns
from lowwater.groups.consumer_reconciliation import CurrentAssignment, Held, MemberState
from lowwater.groups.consumer_requests import JOINS, LEAVES, check_heartbeat, is_full, owned_by, updated
from lowwater.groups.consumer_step import Step, Subscriptions
from lowwater.groups.consumer_target import (
    AssignmentComputed,
    Computed,
    assignor_of,
    hash_of_topics,
    spec_of,
    target_records,
    targets_by_id,
    work_of,
)
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.outcome import Computation, Now, Outcome, Token
from lowwater.groups.record_schemas import ConsumerGroupMetadataKey, ConsumerGroupRegularExpressionKey
from lowwater.groups.record_schemas import ConsumerGroupTargetAssignmentMetadataKey as TargetEpochKey
from lowwater.groups.records import encode
from lowwater.groups.timers import Timer, Timers
from lowwater.groups.topics import TopicsView
from lowwater.ports import Ids
from lowwater.wire.messages.consumer_group_describe import DescribedGroup
from lowwater.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

log = logging.getLogger(__name__)

MayCommit: TypeAlias = Callable[[str, int], bool]
"""Whether a member with an older epoch may commit a partition (topic name, partition)."""


class SessionTimer(Timer):
    """A member that is not heard of until then is gone."""

    __slots__ = ("member_id",)

    def __init__(self, group: ConsumerGroup, member_id: str) -> None:
        super().__init__(group)
        self.member_id = member_id


class RevocationTimer(SessionTimer):
    """A member that has not given up its partitions until then is put out."""

    __slots__ = ()


class ConsumerGroup:
    """Decides for one group; what it decides is in the records, and takes effect when they are replayed."""

    kind = "consumer"
    protocol_type = "consumer"
    # The log does not say when the group became empty: offsets age from their commits, as in Kafka.
    empty_since_ms: int | None = None

    def __init__(
        self,
        group_id: str,
        config: GroupConfig,
        ids: Ids,
        timers: Timers,
        metrics: GroupMetrics,
        topics: TopicsView,
        patterns: TopicPatterns | None = None,
    ) -> None:
        self.group_id = group_id
        self.config = config
        self._ids = ids
        self._timers = timers
        self._metrics = metrics
        self._topics = topics
        self._patterns = patterns or TopicPatterns(topics)
        self._durable = DurableGroup(metrics)
        self._sessions: dict[str, SessionTimer] = {}
        self._revocations: dict[str, RevocationTimer] = {}
        # Of the topics that the group's epoch was last compared with; None: not since it was loaded.
        self._topics_version: int | None = None
        # The epoch whose assignment is being computed elsewhere.
        self._computing: int | None = None
        self._rebalancing_since_ms: float | None = None

    # -- what others ask

    @property
    def state(self) -> str:
        durable = self._durable
        if not durable.members:
            return "Empty"
        if durable.epoch > durable.target_epoch:
            return "Assigning"
        return "Reconciling" if durable.behind else "Stable"

    @property
    def is_empty(self) -> bool:
        return not self._durable.members

    def subscribes_to(self, topic: str) -> bool:
        durable = self._durable
        return topic in durable.subscribers or any(topic in topics for topics in durable.resolved.values())

    def describe(self) -> DescribedGroup:
        assignor = assignor_of(self._durable.assignor_votes, self.config)
        return described(self.group_id, self.state, assignor, self._durable, self._topics)

    def check_commit(self, member_id: str, instance_id: str | None, epoch: int, now: Now) -> MayCommit | None:
        """Whether offsets may be committed; None: all, else those partitions that the answer says yes to."""
        durable = self._durable
        if epoch < 0 and not durable.members:
            return None
        current = self._known(member_id).current
        if epoch == current.epoch:
            return None
        if epoch > current.epoch or epoch < 0:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH, f"epoch {epoch}; the member is in epoch {current.epoch}")
        return lambda topic, partition: self._has_since(current, epoch, topic, partition)

    def _has_since(self, current: CurrentAssignment, epoch: int, topic: str, partition: int) -> bool:
        """A commit on its way while the epoch grew is good, if the member had the partition all the time."""
        topic_id = self._topics.topic_id(topic)
        given = None if topic_id is None else current.epoch_of(topic_id, partition)
        return given is not None and given <= epoch

    def check_txn_commit(self, member_id: str, instance_id: str | None, epoch: int, now: Now) -> MayCommit | None:
        """A transaction that says nothing of a member may commit."""
        if epoch == -1 and not member_id and instance_id is None:
            return None
        return self.check_commit(member_id, instance_id, epoch, now)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        current = self._known(member_id or "").current
        if epoch != current.epoch:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH, f"epoch {epoch}; the member is in epoch {current.epoch}")

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may go at any time."""

    def check_delete(self) -> None:
        if self._durable.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"{self.group_id!r} has {len(self._durable.members)} members")

    def _known(self, member_id: str) -> Member:
        member = self._durable.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is not a member of {self.group_id!r}")
        return member

    # -- life

    def replay(self, key: Any, value: Any) -> None:
        self._durable.replay(key, value)

    def loaded(self, now: Now, out: Outcome) -> None:
        """Members have their full time to call again; those that shall give up partitions, to give them up."""
        for member_id, member in self._durable.members.items():
            self._heard_of(member_id, now)
            self._watch_revocation(member_id, member.current, member.metadata.rebalance_timeout_ms, now)

    def forget(self, out: Outcome) -> None:
        """Tombstones for everything the log has of the group."""
        for member_id in self._durable.members:
            out.records += removal_records(self.group_id, member_id)
        for pattern in self._durable.resolved:
            key = ConsumerGroupRegularExpressionKey(group_id=self.group_id, regular_expression=pattern)
            out.records.append(encode(key, None))
        out.records.append(encode(TargetEpochKey(group_id=self.group_id), None))
        out.records.append(encode(ConsumerGroupMetadataKey(group_id=self.group_id), None))

    def due(self, timer: SessionTimer, now: Now, out: Outcome) -> None:
        if isinstance(timer, RevocationTimer):
            del self._revocations[timer.member_id]
            self._put_out({timer.member_id}, "did not give up its partitions in time", now, out)
            return
        silent = {timer.member_id}
        silent.update(other for other, one in self._sessions.items() if one.deadline_ms <= now.monotonic_ms)
        self._put_out(silent, "was not heard of for its session timeout", now, out)

    def _put_out(self, member_ids: Collection[str], why: str, now: Now, out: Outcome) -> None:
        members = [self._durable.members[one] for one in member_ids if one in self._durable.members]
        if members:
            self._metrics.member_timeouts += len(members)
            self._remove(members, why, now, out)

    # -- heartbeats

    def heartbeat(self, command: ConsumerHeartbeat, token: Token, now: Now, out: Outcome) -> None:
        request = command.request
        member = self._durable.members.get(request.member_id)
        if member is not None and self._is_quiet(member, command):
            times = self.config.consumer_times(self.group_id)
            self._sessions[request.member_id].deadline_ms = now.monotonic_ms + times.session_timeout_ms
            out.reply(token, _response(request.member_id, member.current.epoch, times.heartbeat_interval_ms))
            return
        check_heartbeat(command, self.config)
        if request.member_epoch < JOINS:
            out.reply(token, self._leave(request, now, out))
        else:
            out.reply(token, self._attend(command, now, out))

    def _is_quiet(self, member: Member, command: ConsumerHeartbeat) -> bool:
        """Whether nothing happened: not with the member, not with its group, not with the topics."""
        request, current, durable = command.request, member.current, self._durable
        return (
            request.member_epoch == current.epoch == durable.target_epoch == durable.epoch
            and request.topic_partitions is None
            and request.subscribed_topic_names is None
            and request.subscribed_topic_regex is None
            and current.state is MemberState.STABLE
            and self._topics.version == self._topics_version
            and request.rebalance_timeout_ms == -1
            and request.server_assignor is None
            and request.rack_id is None
            and request.instance_id in (None, member.metadata.instance_id)
            and command.client_id == member.metadata.client_id
            and command.client_host == member.metadata.client_host
        )

    def _attend(self, command: ConsumerHeartbeat, now: Now, out: Outcome) -> ConsumerGroupHeartbeatResponse:
        request = command.request
        step = self._admit(command)
        if step.is_new or step.subscription_changed or self._topics.version != self._topics_version:
            step.look_at_topics(now.wall_ms)
        if step.epoch > self._durable.target_epoch:
            self._assign(step, now, out)
        # What a member reports with an older epoch may be older than what it was given since.
        is_current = request.member_epoch == step.current.epoch
        step.reconcile(owned_by(request) if is_current else None)
        self._follow(step, now)
        out.records += step.records
        times = self.config.consumer_times(self.group_id)
        response = _response(step.member_id, step.current.epoch, times.heartbeat_interval_ms)
        if request.member_epoch == JOINS or is_full(request) or step.current.assigned != step.before.current.assigned:
            response.assignment = _assignment(step.current.assigned)
        return response

    def _admit(self, command: ConsumerHeartbeat) -> Step:
        """Who calls, and whether it may; nothing is changed yet."""
        request = command.request
        member_id = request.member_id or urlsafe_b64encode(self._ids.uuid()).rstrip(b"=").decode()
        self._check_size(member_id)
        before = self._caller(request, member_id)
        step = Step(
            self.group_id,
            self._durable,
            self._topics,
            self._patterns,
            member_id,
            before,
            updated(before.metadata, command),
        )
        if before.current.epoch == LEFT_FOR_A_WHILE:
            step.become_static_successor()
        else:
            step.enter()
        return step

    def _check_size(self, member_id: str) -> None:
        members, size_max = self._durable.members, self.config.consumer_group_size_max
        if len(members) >= size_max and member_id not in members:
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"{self.group_id!r} has {size_max} members")

    def _caller(self, request: ConsumerGroupHeartbeatRequest, member_id: str) -> Member:
        joins = request.member_epoch == JOINS
        if request.instance_id is not None:
            member = self._static_caller(request.instance_id, member_id, joins)
        elif joins:
            return self._durable.members.get(member_id, NEW_MEMBER)
        else:
            member = self._known(member_id)
        if not joins:
            _check_epoch(member, request)
        return member

    def _static_caller(self, instance_id: str, member_id: str, joins: bool) -> Member:
        if not joins:
            return self._known_static(instance_id, member_id)
        holder = self._durable.member_of_instance(instance_id)
        if holder is None:
            return self._durable.members.get(member_id, NEW_MEMBER)
        if holder.current.epoch != LEFT_FOR_A_WHILE:
            raise ApiError(
                ErrorCode.UNRELEASED_INSTANCE_ID, f"instance {instance_id!r} is held by member {holder.member_id!r}"
            )
        return holder

    def _known_static(self, instance_id: str, member_id: str) -> Member:
        holder = self._durable.member_of_instance(instance_id)
        if holder is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"instance {instance_id!r} is not known")
        if holder.member_id != member_id:
            raise ApiError(
                ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id!r} is held by member {holder.member_id!r}"
            )
        return holder

    def _follow(self, step: Step, now: Now) -> None:
        """What is known of a step beside its records: deadlines, and how long a rebalance takes."""
        self._topics_version = self._topics.version
        if step.before.member_id != step.member_id:
            self._unwatch(step.before.member_id)
        self._heard_of(step.member_id, now)
        if step.current is not step.before.current:
            self._watch_revocation(step.member_id, step.current, step.metadata.rebalance_timeout_ms, now)
        if step.epoch != self._durable.epoch:
            self._began_to_rebalance(step.epoch, "joined" if step.is_new else "or its topics changed", step, now)
        others_behind = self._durable.behind - {step.member_id, step.before.member_id}
        if step.target_epoch != self._durable.target_epoch:
            others_behind = self._durable.members.keys() - {step.member_id, step.before.member_id}
        if step.epoch == step.target_epoch and not others_behind and step.current.is_reconciled_to(step.epoch):
            self._rebalanced(now)

    def _began_to_rebalance(self, epoch: int, what: str, step: Step, now: Now) -> None:
        log.info("group %s: epoch %d: member %s %s", self.group_id, epoch, step.member_id, what)
        if self._rebalancing_since_ms is None:
            self._rebalancing_since_ms = now.monotonic_ms

    def _rebalanced(self, now: Now) -> None:
        if self._rebalancing_since_ms is None:
            return
        self._metrics.rebalanced(now.monotonic_ms - self._rebalancing_since_ms)
        self._rebalancing_since_ms = None

    # -- leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now: Now, out: Outcome) -> ConsumerGroupHeartbeatResponse:
        if request.instance_id is None:
            member = self._known(request.member_id)
        else:
            member = self._known_static(request.instance_id, request.member_id)
        if request.member_epoch == LEAVES:
            self._remove([member], "left", now, out)
        else:
            # What it was to give up it has given up by leaving; the rest is kept for its return.
            gone = replace(member.current, epoch=LEFT_FOR_A_WHILE, revoking={})
            out.records.append(current_record(self.group_id, member.member_id, gone))
            self._watch_revocation(member.member_id, CurrentAssignment(), 0, now)
        return _response(member.member_id, request.member_epoch, 0)

    def _remove(self, members: Collection[Member], why: str, now: Now, out: Outcome) -> None:
        """The partitions are free at once; the next heartbeat of anybody assigns them."""
        after = Subscriptions(self.group_id, self._durable, self._topics, self._patterns)
        for member in members:
            log.info("group %s: member %s %s", self.group_id, member.member_id, why)
            out.records += removal_records(self.group_id, member.member_id)
            self._unwatch(member.member_id)
        after.renew(members, NEW_MEMBER.metadata, now.wall_ms, changed=True)
        out.records += after.records
        if self._rebalancing_since_ms is None:
            self._rebalancing_since_ms = now.monotonic_ms
        if len(members) == len(self._durable.members):
            self._rebalanced(now)

    # -- the target assignment

    def _assign(self, step: Step, now: Now, out: Outcome) -> None:
        """Make the target of the group's new epoch, now or, when that is much work, elsewhere."""
        if self._computing is not None:
            return
        spec = spec_of(step.members(), step.targets(), step.resolved, self._topics)
        assignor = assignor_of(step.assignor_votes(), self.config)
        if work_of(spec) > self.config.assignments_inline_max:
            self._computing = step.epoch
            then = Computed(self.group_id, step.epoch, step.topics_hash)
            out.computations.append(Computation(assign, (assignor, spec), then))
            return
        try:
            targets = targets_by_id(assign((assignor, spec)), self._topics)
        except AssignorError as failure:
            log.error("group %s: no assignment for epoch %d: %s", self.group_id, step.epoch, failure)
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure)) from failure
        step.records += target_records(self.group_id, self._durable, targets, step.epoch, now.wall_ms)
        step.target_epoch, step.target = step.epoch, targets.get(step.member_id, {})
        log.info(
            "group %s: epoch %d assigned by %s: %d members, %d partitions",
            self.group_id,
            step.epoch,
            assignor,
            len(spec.members),
            sum(spec.partitions.values()),
        )

    def assignment_computed(self, command: AssignmentComputed, now: Now, out: Outcome) -> None:
        """Take the result when the group is still in the epoch it was computed for, else begin again."""
        durable = self._durable
        self._computing = None
        if isinstance(command.result, Exception):
            log.error("group %s: no assignment for epoch %d: %s", self.group_id, command.epoch, command.result)
            return
        names = set(durable.subscribers).union(*durable.resolved.values())
        if command.epoch == durable.epoch and hash_of_topics(names, self._topics) == command.topics_hash:
            targets = targets_by_id(command.result, self._topics)
            out.records += target_records(self.group_id, durable, targets, command.epoch, now.wall_ms)
            log.info("group %s: epoch %d assigned: %d members", self.group_id, command.epoch, len(targets))
        elif durable.members and durable.epoch > durable.target_epoch:
            self._assign_again(out)

    def _assign_again(self, out: Outcome) -> None:
        durable = self._durable
        members = {member_id: member.metadata for member_id, member in durable.members.items()}
        spec = spec_of(members, durable.targets, durable.resolved, self._topics)
        self._computing = durable.epoch
        then = Computed(self.group_id, durable.epoch, durable.topics_hash)
        assignor = assignor_of(durable.assignor_votes, self.config)
        out.computations.append(Computation(assign, (assignor, spec), then))

    # -- deadlines

    def _heard_of(self, member_id: str, now: Now) -> None:
        timer = self._sessions.get(member_id)
        if timer is None:
            timer = self._sessions[member_id] = SessionTimer(self, member_id)
        session_timeout_ms = self.config.consumer_times(self.group_id).session_timeout_ms
        self._timers.set(timer, now.monotonic_ms + session_timeout_ms)

    def _watch_revocation(self, member_id: str, current: CurrentAssignment, timeout_ms: int, now: Now) -> None:
        timer = self._revocations.pop(member_id, None)
        if timer is not None:
            self._timers.stop(timer)
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            timer = self._revocations[member_id] = RevocationTimer(self, member_id)
            self._timers.set(timer, now.monotonic_ms + timeout_ms)

    def _unwatch(self, member_id: str) -> None:
        for timers in (self._sessions, self._revocations):
            timer = timers.pop(member_id, None)
            if timer is not None:
                self._timers.stop(timer)


def _check_epoch(member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
    """An older epoch is good when it is the one before: the answer that told the new one may have been lost."""
    current, epoch = member.current, request.member_epoch
    if epoch == current.epoch:
        return
    if epoch == current.previous_epoch and epoch < current.epoch and _owns_only(request, current.assigned):
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"epoch {epoch}; the member is in epoch {current.epoch} and has to give up its partitions and join anew",
    )


def _owns_only(request: ConsumerGroupHeartbeatRequest, assigned: Held) -> bool:
    if request.topic_partitions is None:
        return False
    return all(assigned.get(topic.topic_id, {}).keys() >= set(topic.partitions) for topic in request.topic_partitions)


def _response(member_id: str, epoch: int, heartbeat_interval_ms: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=epoch, heartbeat_interval_ms=heartbeat_interval_ms
    )


def _assignment(assigned: Held) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
