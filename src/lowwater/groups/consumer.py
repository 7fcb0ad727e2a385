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
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.assignors import AssignorError, assign
from lowwater.groups.commands import ConsumerHeartbeat
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_admission import MayCommit, caller, check_commit, check_fetch, known, known_static
from lowwater.groups.consumer_deadlines import Deadlines, DutyTimer, SessionTimer
from lowwater.groups.consumer_description import described
from lowwater.groups.consumer_durable import DurableGroup
from lowwater.groups.consumer_members import (
    LEFT_FOR_A_WHILE,
    NEW_MEMBER,
    Member,
    MemberMetadata,
    current_record,
    removal_records,
)
from lowwater.groups.consumer_patterns import TopicPatterns
from lowwater.groups.consumer_reconciliation import Held, MemberState, Partitions
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
from lowwater.groups.record_schemas import ConsumerGroupMetadataKey, ConsumerGroupRegularExpressionKey
from lowwater.groups.record_schemas import ConsumerGroupTargetAssignmentMetadataKey as TargetEpochKey
from lowwater.groups.records import encode
from lowwater.groups.timers import Timers
from lowwater.groups.topics import TopicsView
from lowwater.outcome import Computation, Now, Outcome, Token
from lowwater.ports import Ids
from lowwater.wire.messages.consumer_group_describe import DescribedGroup
from lowwater.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

log = logging.getLogger(__name__)


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
        self._metrics = metrics
        self._topics = topics
        self._patterns = patterns or TopicPatterns(topics)
        self._durable = DurableGroup(metrics)
        self._deadlines = Deadlines(self, timers)
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
        return check_commit(self._durable, self._topics, member_id, epoch)

    def check_txn_commit(self, member_id: str, instance_id: str | None, epoch: int, now: Now) -> MayCommit | None:
        """A transaction that says nothing of a member may commit."""
        if epoch == -1 and not member_id and instance_id is None:
            return None
        return check_commit(self._durable, self._topics, member_id, epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        check_fetch(self._durable, member_id, epoch)

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may go at any time."""

    def check_delete(self) -> None:
        if self._durable.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"{self.group_id!r} has {len(self._durable.members)} members")

    # -- life

    def replay(self, key: Any, value: Any) -> None:
        self._durable.replay(key, value)

    def loaded(self, now: Now, out: Outcome) -> None:
        """Members have their full time to call again; those that shall give up partitions, to give them up."""
        for member_id, member in self._durable.members.items():
            self._deadlines.heard_of(member_id, self._session_end_ms(member.metadata, now))
            if member.metadata.classic is None:
                revoked_by_ms = now.monotonic_ms + member.metadata.rebalance_timeout_ms
                self._deadlines.revoking(member_id, member.current, revoked_by_ms)

    def _session_end_ms(self, metadata: MemberMetadata, now: Now) -> float:
        if metadata.classic is not None:
            return now.monotonic_ms + metadata.classic.session_timeout_ms
        return now.monotonic_ms + self.config.consumer_times(self.group_id).session_timeout_ms

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
        if isinstance(timer, DutyTimer):
            self._put_out({timer.member_id}, "did not do in time what it was told to", now, out)
            return
        silent = self._deadlines.silent(now.monotonic_ms) | {timer.member_id}
        self._put_out(silent, "was not heard of for its session timeout", now, out)

    def _put_out(self, member_ids: Collection[str], why: str, now: Now, out: Outcome) -> None:
        members = [self._durable.members[one] for one in member_ids if one in self._durable.members]
        if members:
            self._metrics.member_timeouts += len(members)
            self._remove(members, why, now, out)

    # -- heartbeats

    def heartbeat(self, command: ConsumerHeartbeat, token: Token, now: Now, out: Outcome) -> None:
        request = command.request
        self._metrics.heartbeats_total += 1
        member = self._durable.members.get(request.member_id)
        if member is not None and self._is_quiet(member, command):
            times = self.config.consumer_times(self.group_id)
            self._deadlines.sessions[request.member_id].deadline_ms = now.monotonic_ms + times.session_timeout_ms
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
        self._advance(step, _believed(request, step.current.epoch), now, out)
        times = self.config.consumer_times(self.group_id)
        response = _response(step.member_id, step.current.epoch, times.heartbeat_interval_ms)
        if request.member_epoch == JOINS or is_full(request) or step.current.assigned != step.before.current.assigned:
            response.assignment = _assignment(step.current.assigned)
        return response

    def _advance(self, step: Step, owned: Partitions | None, now: Now, out: Outcome) -> None:
        """Let the group see what the member says, and bring the member nearer to its target."""
        if step.is_new or step.subscription_changed or self._topics.version != self._topics_version:
            step.look_at_topics(now.wall_ms)
        if step.epoch > self._durable.target_epoch:
            self._assign(step, now, out)
        step.reconcile(owned)
        self._follow(step, now)
        out.records += step.records

    def _admit(self, command: ConsumerHeartbeat) -> Step:
        """Who calls, and whether it may; nothing is changed yet."""
        request = command.request
        member_id = request.member_id or self._new_id()
        self._check_size(member_id)
        before = caller(self._durable, request, member_id)
        return self._step(member_id, before, updated(before.metadata, command))

    def _new_id(self) -> str:
        return urlsafe_b64encode(self._ids.uuid()).rstrip(b"=").decode()

    def _step(self, member_id: str, before: Member, metadata: MemberMetadata) -> Step:
        step = Step(self.group_id, self._durable, self._topics, self._patterns, member_id, before, metadata)
        takes_over = before is not NEW_MEMBER and before.member_id != member_id
        if takes_over or before.current.epoch == LEFT_FOR_A_WHILE:
            step.become_static_successor()
        else:
            step.enter()
        return step

    def _check_size(self, member_id: str) -> None:
        members, size_max = self._durable.members, self.config.consumer_group_size_max
        if len(members) >= size_max and member_id not in members:
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"{self.group_id!r} has {size_max} members")

    def _follow(self, step: Step, now: Now) -> None:
        """What is known of a step beside its records: deadlines, and how long a rebalance takes."""
        self._topics_version = self._topics.version
        if step.before.member_id != step.member_id:
            self._deadlines.forget(step.before.member_id)
        self._deadlines.heard_of(step.member_id, self._session_end_ms(step.metadata, now))
        if step.before.metadata.classic is not None:
            self._deadlines.is_done(step.member_id)
        if step.current is not step.before.current and step.metadata.classic is None:
            revoked_by_ms = now.monotonic_ms + step.metadata.rebalance_timeout_ms
            self._deadlines.revoking(step.member_id, step.current, revoked_by_ms)
        if step.epoch != self._durable.epoch:
            log.info("group %r: epoch %d: %s", self.group_id, step.epoch, step.reason)
            self._begins_to_rebalance(now)
        if step.ends_rebalance:
            self._rebalanced(now)

    def _begins_to_rebalance(self, now: Now) -> None:
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
            member = known(self._durable, request.member_id)
        else:
            member = known_static(self._durable, request.instance_id, request.member_id)
        if request.member_epoch == LEAVES:
            self._remove([member], "left", now, out)
        else:
            # What it was to give up it has given up by leaving; the rest is kept for its return.
            gone = replace(member.current, epoch=LEFT_FOR_A_WHILE, revoking={})
            out.records.append(current_record(self.group_id, member.member_id, gone))
            self._deadlines.revoking(member.member_id, NEW_MEMBER.current, now.monotonic_ms)
        return _response(member.member_id, request.member_epoch, 0)

    def _remove(self, members: Collection[Member], why: str, now: Now, out: Outcome) -> None:
        """The partitions are free at once; the next heartbeat of anybody assigns them."""
        after = Subscriptions(self.group_id, self._durable, self._topics, self._patterns)
        for member in members:
            log.info("group %r: member %r %s", self.group_id, member.member_id, why)
            out.records += removal_records(self.group_id, member.member_id)
            self._deadlines.forget(member.member_id)
        after.renew(members, NEW_MEMBER.metadata, now.wall_ms, changed=True)
        out.records += after.records
        self._begins_to_rebalance(now)
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
            log.error("group %r: no assignment for epoch %d: %s", self.group_id, step.epoch, failure)
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure)) from failure
        step.records += target_records(self.group_id, self._durable, targets, step.epoch, now.wall_ms)
        step.target_epoch, step.target = step.epoch, targets.get(step.member_id, {})
        log.info(
            "group %r: epoch %d assigned by %s: %d members, %d partitions",
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
            log.error("group %r: no assignment for epoch %d: %s", self.group_id, command.epoch, command.result)
            return
        if command.epoch != durable.epoch or command.result.keys() != durable.members.keys():
            # A static member that was replaced meanwhile has another id in the same epoch.
            self._assign_again(out)
        elif self._is_of_these_topics(command.topics_hash):
            targets = targets_by_id(command.result, self._topics)
            out.records += target_records(self.group_id, durable, targets, command.epoch, now.wall_ms)
            log.info("group %r: epoch %d assigned: %d members", self.group_id, command.epoch, len(targets))

    def _is_of_these_topics(self, topics_hash: int) -> bool:
        """When not, the next heartbeat finds the topics changed and begins a new epoch."""
        names = set(self._durable.subscribers).union(*self._durable.resolved.values())
        return hash_of_topics(names, self._topics) == topics_hash

    def _assign_again(self, out: Outcome) -> None:
        durable = self._durable
        if not durable.members or durable.epoch <= durable.target_epoch:
            return
        members = {member_id: member.metadata for member_id, member in durable.members.items()}
        spec = spec_of(members, durable.targets, durable.resolved, self._topics)
        self._computing = durable.epoch
        then = Computed(self.group_id, durable.epoch, durable.topics_hash)
        assignor = assignor_of(durable.assignor_votes, self.config)
        out.computations.append(Computation(assign, (assignor, spec), then))


def _believed(request: ConsumerGroupHeartbeatRequest, epoch: int) -> Partitions | None:
    """What the member reports to own, unless that may be older than what it was given since.

    Who joins again or lost an answer says everything anew and is believed: nothing changes for it, so that it would not
    say it again.
    """
    return owned_by(request) if request.member_epoch == epoch or is_full(request) else None


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
