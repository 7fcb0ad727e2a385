"""Who is in a classic group: members, static instances, ids that were handed out, and the counts kept of them.

Everything a Join has to know is a count here, so that the thousandth member costs no more than the first.
"""

from __future__ import annotations

from typing import Any

from lowwater.groups.commands import Protocols
from lowwater.groups.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.timers import Timer
from lowwater.outcome import Token


class Member(Timer):
    """A member. `assignment` is as the log has it; its deadline is the end of its session."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "holds",
        "instance_id",
        "is_new",
        "join_token",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_token",
    )

    def __init__(self, group: Any, member_id: str, instance_id: str | None) -> None:
        super().__init__(group)
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = ""
        self.client_host = ""
        self.session_timeout_ms = 0
        self.rebalance_timeout_ms = 0
        self.protocols: Protocols = ()
        self.assignment = b""
        # What it was given last, which it may hold on to until it is given anew.
        self.holds = b""
        # In no generation yet: the one who waits is the client's first Join, so there is no session that could end.
        self.is_new = False
        self.join_token: Token | None = None
        self.sync_token: Token | None = None

    @property
    def name(self) -> str:
        """For the log: an id or instance may hold anything, so it is quoted."""
        return repr(self.member_id) if self.instance_id is None else f"{self.member_id!r} (static {self.instance_id!r})"

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        """The dearest of the candidates."""
        return next(name for name, _ in self.protocols if name in candidates)


NOBODY = Member(None, "", None)
"""Whoever asks without being a member."""


class HandedOutId(Timer):
    """A member id that a new client was told to join with."""

    __slots__ = ("member_id",)

    def __init__(self, group: Any, member_id: str) -> None:
        super().__init__(group)
        self.member_id = member_id


class Roster:
    """The members in the order in which they came."""

    __slots__ = (
        "_metrics",
        "_supporters",
        "_topics",
        "handed_out",
        "heir",
        "instances",
        "joined",
        "members",
        "protocol_type",
        "unsynced",
    )

    def __init__(self, metrics: GroupMetrics) -> None:
        self._metrics = metrics
        self.members: dict[str, Member] = {}
        self.instances: dict[str, Member] = {}
        self.handed_out: dict[str, HandedOutId] = {}
        self.protocol_type = ""
        # Who leads the next generation, if still there and joining in time.
        self.heir: str | None = None
        # How many have a Join waiting.
        self.joined = 0
        # Who has not asked for the assignment of this generation.
        self.unsynced: set[str] = set()
        self._supporters: dict[str, int] = {}
        self._topics: frozenset[str] | None = None

    def all_have_joined(self) -> bool:
        return self.joined == len(self.members) and not self.handed_out

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these would leave the group a protocol that all of its members know."""
        if not self.members:
            return bool(protocol_type and protocols)
        if protocol_type != self.protocol_type:
            return False
        everyone = len(self.members)
        return any(self._supporters.get(name) == everyone for name, _ in protocols)

    def add(self, member: Member, protocol_type: str) -> None:
        self.members[member.member_id] = member
        self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.instances[member.instance_id] = member
        self._metrics.total_members += 1
        self._count(member, 1)

    def remove(self, member: Member) -> None:
        """Its waiting requests have been answered."""
        assert member.join_token is None
        assert member.sync_token is None
        del self.members[member.member_id]
        # Somebody else's records may tell of two members of one instance.
        if member.instance_id is not None and self.instances.get(member.instance_id) is member:
            del self.instances[member.instance_id]
        self.unsynced.discard(member.member_id)
        self._metrics.total_members -= 1
        self._count(member, -1)

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        if protocols == member.protocols:
            return
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def wait_for_join(self, member: Member, token: Token) -> Token | None:
        """The Join of `token` waits; answers whom it takes the place of."""
        before, member.join_token = member.join_token, token
        self.joined += before is None
        return before

    def end_join(self, member: Member) -> Token | None:
        """Whose Join waited and is to be answered now."""
        token, member.join_token = member.join_token, None
        self.joined -= token is not None
        return token

    def vote(self) -> str:
        """The protocol dearest to most, out of those that all know. There is one: see `supports`."""
        everyone = len(self.members)
        candidates = {name for name, supporters in self._supporters.items() if supporters == everyone}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def elect(self) -> Member | None:
        """Who leads the next generation: the heir, or the one who is here longest, of those who joined."""
        heir = self.members.get(self.heir) if self.heir is not None else None
        if heir is not None and heir.join_token is not None:
            return heir
        return next((member for member in self.members.values() if member.join_token is not None), None)

    def rebalance_timeout_ms(self) -> int:
        """The time of the slowest."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def subscribes_to(self, topic: str) -> bool:
        """Consumers say what they read; of all others anything has to be assumed."""
        if self._topics is None:
            topics = self._subscribed_topics()
            if topics is None:
                return True
            self._topics = topics
        return topic in self._topics

    def _subscribed_topics(self) -> frozenset[str] | None:
        topics: set[str] = set()
        for member in self.members.values():
            # All protocols of a consumer name the same topics.
            subscription = decode_subscription(member.protocols[0][1])
            if self.protocol_type != PROTOCOL_TYPE or subscription is None:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)

    def _count(self, member: Member, step: int) -> None:
        self._topics = None
        for name in {name for name, _ in member.protocols}:
            self._supporters[name] = self._supporters.get(name, 0) + step
            if not self._supporters[name]:
                del self._supporters[name]
