"""What a classic group must never do, whatever its members and the network do.

Everything is judged by answers, in the order in which they left the broker: an answer that got lost was given too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.sim.groups.classic_member import decode_places, nonce_of
from tests.sim.groups.client import UNKNOWN_TOPIC
from tests.sim.groups.network import Exchange

from lowwater.errors import ErrorCode
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest
from lowwater.wire.messages.leave_group import LeaveGroupRequest
from lowwater.wire.messages.offset_commit import OffsetCommitRequest
from lowwater.wire.messages.sync_group import SyncGroupRequest

# Of one record's way to the disk, and of the last timer.
ANSWER_SLACK_MS = 3_000


@dataclass(slots=True)
class Told:
    """A member as the answers describe it."""

    member_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[str, ...]
    touched_ms: float  # when its session was surely prolonged
    perhaps_ms: float  # when it was prolonged at the latest
    settled_ms: float  # when no rebalance was waiting for it
    joined_ms: float
    generation: int = -1
    synced: int = -1  # the generation in which it has an assignment
    parked: int = 0  # its Joins and Syncs that are waiting
    gone: str = ""  # why it may be unknown from now on
    was_refused: bool = False


@dataclass(slots=True)
class Generation:
    leader: str = ""  # the instance or member that was told to assign
    protocol: str = ""
    members: frozenset[str] = frozenset()
    nonce: bytes = b""
    owners: dict[tuple[str, int], str] = field(default_factory=dict)
    assignments: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class ClassicStory:
    """Of one group since it was created."""

    last: int = -1
    generations: dict[int, Generation] = field(default_factory=dict)
    members: dict[str, Told] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)  # instance id -> member id
    evicted: dict[str, float] = field(default_factory=dict)  # instance id -> when it was last removed by its name
    offered: dict[str, tuple[float, int]] = field(default_factory=dict)  # ids that may join: since when, session


class ClassicJudge:
    """`report(text)` is called for every violation."""

    def __init__(self, report: Callable[[str], None], slack_ms: float) -> None:
        self._report = report
        self._slack_ms = slack_ms
        self.stories: dict[str, ClassicStory] = {}
        self._waiting: dict[Exchange, tuple[float, float]] = {}  # delivered, and the longest it may wait
        self._stale: dict[Exchange, int] = {}  # the generation that was known when it was delivered
        self.generations = 0

    def story(self, group: str) -> ClassicStory:
        return self.stories.setdefault(group, ClassicStory())

    def forget(self, group: str) -> None:
        """The group was deleted; the next one of that name is another."""
        self.stories.pop(group, None)

    # -- the broker got a request

    def delivered(self, exchange: Exchange, now_ms: float) -> None:
        request = exchange.request
        if not isinstance(
            request, JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | OffsetCommitRequest | LeaveGroupRequest
        ):
            return
        story = self.story(request.group_id)
        self._stale[exchange] = story.last
        if isinstance(request, LeaveGroupRequest):
            self._left(story, request, now_ms)
            return
        told = story.members.get(request.member_id)
        if isinstance(request, JoinGroupRequest | SyncGroupRequest):
            longest = max([12_000, *(one.rebalance_timeout_ms for one in story.members.values())])
            self._waiting[exchange] = (now_ms, longest)
            if told is not None:
                told.parked += 1
        if isinstance(request, JoinGroupRequest):
            self._use_offer(story, exchange)

    def _left(self, story: ClassicStory, request: LeaveGroupRequest, now_ms: float) -> None:
        """Whether it is accepted or not: from here on the member may be gone."""
        for identity in [*request.members, request]:
            ids = {identity.member_id}
            if not identity.member_id and getattr(identity, "group_instance_id", None):
                ids = {story.holders.get(identity.group_instance_id, "")}
                story.evicted[identity.group_instance_id] = now_ms
            for member_id in ids & story.members.keys():
                story.members[member_id].gone = "it left"

    # -- an answer left

    def issued(self, exchange: Exchange, now_ms: float) -> None:
        request = exchange.request
        if exchange not in self._stale:
            return
        story = self.story(request.group_id)
        self._ended_waiting(exchange, story, now_ms)
        known = self._stale.pop(exchange)
        if isinstance(request, JoinGroupRequest):
            self._joined(exchange, story, known, now_ms)
        elif isinstance(request, SyncGroupRequest):
            self._answered_member(exchange, exchange.response.error_code, request.generation_id, known, now_ms)
            if not exchange.response.error_code:
                self._synced(exchange, story)
        elif isinstance(request, HeartbeatRequest):
            self._answered_member(exchange, exchange.response.error_code, request.generation_id, known, now_ms)
        elif isinstance(request, OffsetCommitRequest) and request.member_id:
            self._answered_member(
                exchange, _commit_code(exchange), request.generation_id_or_member_epoch, known, now_ms
            )

    def _ended_waiting(self, exchange: Exchange, story: ClassicStory, now_ms: float) -> None:
        waited = self._waiting.pop(exchange, None)
        if waited is None:
            return
        told = story.members.get(exchange.request.member_id)
        if told is not None and told.parked:
            told.parked -= 1
            if exchange.response.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
                told.perhaps_ms = max(told.perhaps_ms, exchange.decided_ms)
        since_ms, longest_ms = waited
        if now_ms - since_ms > longest_ms + ANSWER_SLACK_MS:
            self._report(f"{exchange} of {exchange.request.group_id} waited {now_ms - since_ms:.0f} ms")

    # -- joins

    def _joined(self, exchange: Exchange, story: ClassicStory, known: int, now_ms: float) -> None:
        request, answer = exchange.request, exchange.response
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            story.offered[answer.member_id] = (exchange.delivered_ms, request.session_timeout_ms)
            return
        if answer.error_code:
            if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._refused(story, request.member_id, exchange, now_ms)
            return
        self._check_offer(exchange, story)
        self._check_generation(exchange, story, known)
        self._note_member(exchange, story)
        self._check_leader(exchange, story)

    @staticmethod
    def _use_offer(story: ClassicStory, exchange: Exchange) -> None:
        """An id that was given out is good for one session timeout only."""
        since_ms, session_ms = story.offered.get(exchange.request.member_id, (0.0, -1))
        if exchange.delivered_ms - since_ms <= session_ms:
            del story.offered[exchange.request.member_id]

    def _check_offer(self, exchange: Exchange, story: ClassicStory) -> None:
        offer = story.offered.pop(exchange.request.member_id, None)
        if offer is not None and exchange.request.member_id not in story.members:
            late_ms = exchange.delivered_ms - offer[0] - offer[1]
            if late_ms > self._slack_ms:
                self._report(f"{exchange} joined with an id that was good until {late_ms:.0f} ms before")

    def _check_generation(self, exchange: Exchange, story: ClassicStory, known: int) -> None:
        answer = exchange.response
        if answer.generation_id < max(known, story.last):
            self._report(
                f"{exchange} of {exchange.request.group_id} joined generation {answer.generation_id} after {story.last}"
            )
        if answer.generation_id > story.last:
            self.generations += 1
        story.last = max(story.last, answer.generation_id)
        generation = story.generations.setdefault(answer.generation_id, Generation())
        if not generation.protocol:
            generation.protocol = answer.protocol_name
        if answer.protocol_name != generation.protocol:
            self._report(
                f"generation {answer.generation_id} has protocols {generation.protocol}, {answer.protocol_name}"
            )
        names = {protocol.name for protocol in exchange.request.protocols}
        if answer.protocol_name not in names:
            self._report(f"{exchange} was given protocol {answer.protocol_name}, it knows {sorted(names)}")

    def _note_member(self, exchange: Exchange, story: ClassicStory) -> None:
        request, answer = exchange.request, exchange.response
        told = story.members.get(answer.member_id)
        if told is not None and told.was_refused:
            self._report(f"member {answer.member_id} of {request.group_id} was unknown before, and joined")
        instance = request.group_instance_id
        if instance is not None:
            holder = story.holders.get(instance)
            if holder not in (None, answer.member_id):
                story.members[holder].gone = "replaced"
            story.holders[instance] = answer.member_id
        # The answer of a generation may be repeated, which need not prolong anything.
        repeated = told if told is not None and told.generation == answer.generation_id else None
        story.members[answer.member_id] = Told(
            answer.member_id,
            instance,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            tuple(protocol.name for protocol in request.protocols),
            touched_ms=repeated.touched_ms if repeated else exchange.decided_ms,
            perhaps_ms=exchange.decided_ms,
            settled_ms=repeated.settled_ms if repeated else exchange.decided_ms,
            joined_ms=exchange.decided_ms,
            generation=answer.generation_id,
            synced=told.synced if told is not None else -1,
            parked=told.parked if told is not None else 0,
            gone=told.gone if told is not None else "",
        )

    def _check_leader(self, exchange: Exchange, story: ClassicStory) -> None:
        request, answer = exchange.request, exchange.response
        if answer.leader != answer.member_id or answer.skip_assignment:
            return
        generation = story.generations[answer.generation_id]
        leader = request.group_instance_id or answer.member_id
        members = frozenset(one.group_instance_id or one.member_id for one in answer.members)
        if leader not in members:
            self._report(f"leader {leader} of {request.group_id} is not among the members it was told of")
        if generation.leader and (generation.leader, generation.members) != (leader, members):
            self._report(
                f"generation {answer.generation_id} of {request.group_id} was led by {generation.leader} with "
                f"{sorted(generation.members)}, and then by {leader} with {sorted(members)}"
            )
        generation.leader, generation.members = leader, members

    # -- assignments

    def _synced(self, exchange: Exchange, story: ClassicStory) -> None:
        request, assignment = exchange.request, bytes(exchange.response.assignment)
        generation = story.generations.setdefault(request.generation_id, Generation())
        member = request.group_instance_id or request.member_id
        nonce = nonce_of(assignment)
        if nonce is not None:
            if generation.nonce and generation.nonce != nonce:
                self._report(f"generation {request.generation_id} of {request.group_id} was assigned twice")
            generation.nonce = nonce
        if generation.assignments.setdefault(member, assignment) != assignment:
            self._report(f"{member} got two assignments in generation {request.generation_id} of {request.group_id}")
        for place in decode_places(assignment):
            owner = generation.owners.setdefault(place, member)
            if owner != member:
                self._report(f"{place} belongs to {owner} and {member} in generation {request.generation_id}")
        told = story.members.get(request.member_id)
        if told is not None:
            told.synced = request.generation_id
            told.settled_ms = told.touched_ms = exchange.decided_ms

    # -- members that are or are not

    def _answered_member(self, exchange: Exchange, code: int, generation: int, known: int, now_ms: float) -> None:
        request = exchange.request
        story = self.story(request.group_id)
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._refused(story, request.member_id, exchange, now_ms)
        if code == ErrorCode.FENCED_INSTANCE_ID and request.member_id in story.members:
            # Another one has its instance, also when a crash kept that one's answer.
            told = story.members[request.member_id]
            told.gone = told.gone or "fenced"
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and request.member_id in story.members:
            # The partitions are gone, so nothing was said about the member.
            told = story.members[request.member_id]
            told.perhaps_ms = max(told.perhaps_ms, exchange.delivered_ms)
        if code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            return
        if generation < known:
            self._report(f"{exchange} of generation {generation} was taken in {request.group_id}, after {known}")
        self._accepted(exchange, code, story, generation, now_ms)

    def _accepted(self, exchange: Exchange, code: int, story: ClassicStory, generation: int, now_ms: float) -> None:
        request = exchange.request
        told = story.members.get(request.member_id)
        if told is None:
            if code == ErrorCode.NONE:
                self._report(f"{exchange}: {request.member_id} was taken for a member of {request.group_id}")
            return
        if told.was_refused:
            self._report(f"{exchange}: {request.member_id} of {request.group_id} was unknown before")
        instance = getattr(request, "group_instance_id", None)
        if instance is not None and told.gone == "replaced":
            self._report(f"{exchange}: {request.member_id} was taken after another one got its instance {instance}")
        late_ms = exchange.delivered_ms - max(told.touched_ms, told.perhaps_ms) - told.session_timeout_ms
        if late_ms > self._slack_ms and not told.parked and not isinstance(request, SyncGroupRequest):
            self._report(f"{exchange}: {request.member_id} was taken {late_ms:.0f} ms after its session had ended")
        told.perhaps_ms = max(told.perhaps_ms, exchange.delivered_ms)
        if code == ErrorCode.NONE or isinstance(request, HeartbeatRequest):
            told.touched_ms = max(told.touched_ms, exchange.delivered_ms)
        if code == ErrorCode.NONE and isinstance(request, HeartbeatRequest) and told.synced == generation:
            told.settled_ms = exchange.delivered_ms

    def _refused(self, story: ClassicStory, member_id: str, exchange: Exchange, now_ms: float) -> None:
        told = story.members.get(member_id)
        if told is None or not member_id:
            return
        evicted = told.instance_id is not None and story.evicted.get(told.instance_id, -1.0) >= told.joined_ms
        if not (told.gone or told.was_refused or evicted or self._may_be_out(story, told, now_ms)):
            silent_ms, away_ms = exchange.delivered_ms - told.touched_ms, now_ms - told.settled_ms
            self._report(
                f"{exchange}: {member_id} of {exchange.request.group_id} is unknown, {silent_ms:.0f} ms after its last "
                f"sign of life and {away_ms:.0f} ms after it was settled"
            )
        told.was_refused = True

    def _may_be_out(self, story: ClassicStory, told: Told, now_ms: float) -> bool:
        """Its session may have ended, or a rebalance may have gone on without it."""
        rebalance_ms = min(one.rebalance_timeout_ms for one in story.members.values())
        asleep = now_ms - told.touched_ms >= told.session_timeout_ms - self._slack_ms
        return asleep or now_ms - told.settled_ms >= rebalance_ms - self._slack_ms

    # -- the broker starts again

    def crashed(self, now_ms: float) -> None:
        """Nobody waits any more; ids that were only offered are forgotten."""
        self._waiting.clear()
        self._stale.clear()
        for story in self.stories.values():
            story.offered.clear()
            for told in story.members.values():
                told.parked = 0
                # Who was put out since the last generation is in the log still, and so a member again.
                told.was_refused = False
                if self._may_be_out(story, told, now_ms):
                    told.gone = told.gone or "it was out before the crash"

    def reloaded(self, now_ms: float) -> None:
        """Members come back with fresh deadlines."""
        for story in self.stories.values():
            for told in story.members.values():
                told.touched_ms = told.perhaps_ms = told.settled_ms = now_ms

    def overdue(self, now_ms: float) -> list[Exchange]:
        return [one for one, (since, longest) in self._waiting.items() if now_ms - since > longest + ANSWER_SLACK_MS]


def _commit_code(exchange: Exchange) -> int:
    codes = [one.error_code for topic in exchange.response.topics for one in topic.partitions]
    told = [code for code in codes if code not in UNKNOWN_TOPIC]
    # Only partitions that are gone: nothing was said about the member.
    return told[0] if told else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
