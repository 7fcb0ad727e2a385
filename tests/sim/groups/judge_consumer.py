"""What a KIP-848 group must never do: give a partition to two members, take an epoch back, fence the innocent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.sim.groups.client import TopicFacts
from tests.sim.groups.consumer_member import LEAVES, LEAVES_FOR_A_WHILE, REBALANCE_TIMEOUT_MS, Held
from tests.sim.groups.network import Exchange

from lowwater.errors import ErrorCode
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from lowwater.wire.messages.leave_group import LeaveGroupRequest

_CLUELESS = -1
_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


@dataclass(slots=True)
class Told:
    """A member as the answers describe it."""

    member_id: str
    instance_id: str | None
    touched_ms: float
    epoch: int = 0
    assignment: set[Held] = field(default_factory=set)
    changed_ms: float = 0.0  # when it was told another assignment
    answered_ms: float = 0.0  # when it was told one at all
    owes_from_ms: float = 0.0  # since when it may have had to give something up: an answer before may have been lost
    holds: set[Held] = field(default_factory=set)  # told, and not yet given up
    is_gone: bool = False
    is_unknown: bool = False  # it was told so, and has to join again
    is_unsure: bool = False  # a crash kept an answer from it
    left_at: int = -1  # the place of its leave in the order of delivery
    subscribed: set[str] = field(default_factory=set)  # every topic it ever wanted
    has_regex: bool = False
    is_impersonated: bool = False  # a request came that its client had given up, or a copy of one
    is_displaced: bool = False  # such a request joined anew in its name, and said that it owns nothing


@dataclass(slots=True)
class ConsumerStory:
    members: dict[str, Told] = field(default_factory=dict)
    epoch: int = 0
    evicted: dict[str, int] = field(
        default_factory=dict
    )  # instance id -> place of the request in the order of delivery
    requests: Counter[str] = field(default_factory=Counter)  # by member, answered or not


class ConsumerJudge:
    def __init__(self, report: Callable[[str], None], session_timeout_ms: int, slack_ms: float) -> None:
        self._report = report
        self._slack_ms = slack_ms
        self._session_ms = session_timeout_ms
        self._stories: dict[str, ConsumerStory] = {}
        self._known: dict[Exchange, int] = {}  # the epoch its member was last told when the request was delivered
        self.assignments = 0

    def forget(self, group: str) -> None:
        self._stories.pop(group, None)

    def holders(self, group: str, now_ms: float) -> Iterator[tuple[str, set[Held]]]:
        """Who surely is a member, and what it has."""
        for told in self._stories.setdefault(group, ConsumerStory()).members.values():
            if not self._is_excused(told, now_ms):
                yield told.member_id, told.holds

    def delivered(self, exchange: Exchange) -> None:
        request = exchange.request
        if isinstance(request, LeaveGroupRequest):
            self._evicted(request, exchange.delivered_at)
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            return
        told = self._told(exchange)
        self._stories[request.group_id].requests[request.member_id] += 1
        self._known[exchange] = _CLUELESS if told is None else self._certain_epoch(told, exchange)
        if told is not None:
            self._listen(told, exchange)

    def _evicted(self, request: LeaveGroupRequest, delivered_at: int) -> None:
        """An operator removes static members by the names of their instances, in groups of either kind."""
        story = self._stories.setdefault(request.group_id, ConsumerStory())
        for identity in request.members:
            story.evicted[identity.group_instance_id or ""] = delivered_at
            for told in story.members.values():
                if told.instance_id is not None and told.instance_id == identity.group_instance_id:
                    told.is_gone, told.left_at = True, delivered_at

    def _certain_epoch(self, told: Told, exchange: Exchange) -> int:
        """The epoch in which this request must not be fenced; none if its member may be out, or is not its author."""
        is_own = exchange.sender is not None and exchange.is_open
        if not is_own or told.is_unsure or told.is_impersonated or self._is_excused(told, exchange.delivered_ms):
            return _CLUELESS
        return told.epoch

    @staticmethod
    def _listen(told: Told, exchange: Exchange) -> None:
        """What a request says of its member, whatever becomes of it."""
        request, is_own = exchange.request, exchange.sender is not None and exchange.is_open
        if request.topic_partitions is not None:
            owned = _held(request.topic_partitions)
            told.holds = owned if is_own else told.holds & owned
        if not is_own:
            told.is_impersonated = True
        if request.member_epoch in (LEAVES, LEAVES_FOR_A_WHILE):
            told.is_gone, told.left_at = True, exchange.delivered_at

    def issued(self, exchange: Exchange, now_ms: float, topics: Mapping[str, TopicFacts]) -> None:
        request, answer = exchange.request, exchange.response
        if not isinstance(request, ConsumerGroupHeartbeatRequest) or exchange not in self._known:
            return
        known = self._known.pop(exchange)
        if answer.error_code in _FENCED:
            self._fenced(exchange, known)
        elif not answer.error_code:
            self._accepted(exchange, now_ms, topics)

    def _told(self, exchange: Exchange) -> Told | None:
        return self._stories.setdefault(exchange.request.group_id, ConsumerStory()).members.get(
            exchange.request.member_id
        )

    def _fenced(self, exchange: Exchange, known: int) -> None:
        told, request = self._told(exchange), exchange.request
        if told is None or exchange.sender is None or not exchange.is_open:
            return  # the member does not hear of it
        if request.member_epoch == known > 0:
            self._report(
                f"{exchange}: {request.member_id} of {request.group_id} was fenced "
                f"({ErrorCode(exchange.response.error_code).name}) in its epoch {known}"
            )
        told.is_gone = True
        told.is_unknown |= exchange.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        told.holds.clear()
        told.assignment.clear()

    def _accepted(self, exchange: Exchange, now_ms: float, topics: Mapping[str, TopicFacts]) -> None:
        request, answer = exchange.request, exchange.response
        story = self._stories.setdefault(request.group_id, ConsumerStory())
        if request.member_epoch in (LEAVES, LEAVES_FOR_A_WHILE):
            if request.member_id in story.members:
                story.members[request.member_id].is_gone = True
            return
        told = story.members.get(answer.member_id)
        if told is not None and told.left_at > exchange.delivered_at:
            return  # decided before it left
        if told is None or request.member_epoch == 0:
            told = self._arrived(exchange, story, told)
        elif told.is_gone:
            if told.is_unknown:
                self._report(f"{exchange}: {told.member_id} of {request.group_id} was unknown before")
            # It seemed lost in a crash, and is not.
            told.is_gone = False
        else:
            self._check_in_time(exchange, told)
        told.touched_ms, told.is_unsure = exchange.delivered_ms, False
        self._note_wishes(exchange, told)
        self._check_epoch(exchange, story, told)
        if answer.assignment is not None:
            self._assigned(exchange, story, told, now_ms, topics)

    def _arrived(self, exchange: Exchange, story: ConsumerStory, old: Told | None) -> Told:
        request, answer = exchange.request, exchange.response
        wishes, has_regex = set[str](), False
        if request.instance_id is not None:
            for other in story.members.values():
                if other.instance_id == request.instance_id and other.member_id != answer.member_id:
                    if not self._is_excused(other, exchange.delivered_ms):
                        self._report(f"{exchange}: instance {request.instance_id} is active twice")
                    other.is_gone = True
                    # It takes over what the one before had, until a new assignment is computed.
                    wishes |= other.subscribed
                    has_regex |= other.has_regex
        told = Told(
            answer.member_id, request.instance_id, exchange.delivered_ms, subscribed=wishes, has_regex=has_regex
        )
        told.changed_ms = told.owes_from_ms = told.answered_ms = exchange.delivered_ms
        told.is_impersonated = told.is_displaced = exchange.sender is None or not exchange.is_open
        told.is_gone = story.evicted.get(request.instance_id or "", -1) > exchange.delivered_at
        if old is not None:
            told.epoch, told.has_regex = old.epoch, old.has_regex or has_regex
            told.subscribed |= old.subscribed
        if answer.member_epoch < story.epoch and story.requests[request.member_id] == 1:
            self._report(f"{exchange} joined {request.group_id} in epoch {answer.member_epoch} after {story.epoch}")
        story.members[answer.member_id] = told
        return told

    def _check_in_time(self, exchange: Exchange, told: Told) -> None:
        late_ms = exchange.delivered_ms - told.touched_ms - self._session_ms
        if late_ms > self._slack_ms:
            self._report(f"{exchange}: {told.member_id} was taken {late_ms:.0f} ms after its session had ended")
        keeps = _held(exchange.request.topic_partitions or []) - told.assignment
        late_ms = exchange.delivered_ms - told.changed_ms - REBALANCE_TIMEOUT_MS
        if keeps and told.holds - told.assignment and late_ms > self._slack_ms and not told.is_impersonated:
            self._report(f"{exchange}: {told.member_id} was taken {late_ms:.0f} ms after it had to give up partitions")

    @staticmethod
    def _note_wishes(exchange: Exchange, told: Told) -> None:
        told.subscribed |= set(exchange.request.subscribed_topic_names or ())
        told.has_regex |= bool(exchange.request.subscribed_topic_regex)

    def _check_epoch(self, exchange: Exchange, story: ConsumerStory, told: Told) -> None:
        epoch = exchange.response.member_epoch
        if epoch < told.epoch:
            self._report(f"{exchange}: the epoch of {told.member_id} went back from {told.epoch} to {epoch}")
        told.epoch = max(told.epoch, epoch)
        story.epoch = max(story.epoch, epoch)

    def _assigned(
        self, exchange: Exchange, story: ConsumerStory, told: Told, now_ms: float, topics: Mapping[str, TopicFacts]
    ) -> None:
        given = _held(exchange.response.assignment.topic_partitions)
        self.assignments += 1
        for other in story.members.values():
            if other is not told and not self._is_excused(other, now_ms) and other.holds & given:
                self._report(
                    f"{exchange}: {sorted(other.holds & given)} of {exchange.request.group_id} were given to "
                    f"{told.member_id}, {other.member_id} has them still"
                )
        names = {facts.id: name for name, facts in topics.items()}
        unwanted = {names[one] for one, _ in given if one in names and names[one] not in told.subscribed}
        if unwanted and not told.has_regex:
            self._report(f"{exchange}: {told.member_id} was given {unwanted}, it wanted {told.subscribed}")
        if given != told.assignment:
            told.assignment, told.changed_ms = given, exchange.decided_ms
            told.owes_from_ms = told.answered_ms
        told.answered_ms = exchange.decided_ms
        told.holds |= given

    def _is_asleep(self, told: Told, now_ms: float) -> bool:
        return now_ms - told.touched_ms >= self._session_ms - self._slack_ms

    def _is_excused(self, told: Told, now_ms: float) -> bool:
        """The group may have removed it, or may do so any moment."""
        # A late copy of an older request says it owns less than its member does, which the group does not believe; and
        # an answer that a crash kept from the member may have told it to give something up.
        must_give_up = bool(told.holds - told.assignment) or told.is_impersonated or told.is_unsure
        took_too_long = must_give_up and now_ms - told.owes_from_ms >= REBALANCE_TIMEOUT_MS - self._slack_ms
        return told.is_gone or told.is_displaced or took_too_long or self._is_asleep(told, now_ms)

    def crashed(self, now_ms: float) -> None:
        for exchange in self._known:
            if (told := self._told(exchange)) is not None:
                told.is_unsure = True
                # It may have joined again, without being told.
                told.is_unknown = told.is_unknown and exchange.request.member_epoch != 0
        self._known.clear()
        for story in self._stories.values():
            for told in story.members.values():
                told.is_gone |= self._is_excused(told, now_ms)

    def reloaded(self, now_ms: float) -> None:
        """Members come back with fresh deadlines."""
        for story in self._stories.values():
            for told in story.members.values():
                told.touched_ms = told.changed_ms = told.owes_from_ms = told.answered_ms = now_ms


def _held(partitions: list) -> set[Held]:  # type: ignore[type-arg]
    return {(topic.topic_id, index) for topic in partitions for index in topic.partitions}
