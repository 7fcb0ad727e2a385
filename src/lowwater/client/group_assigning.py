"""How a group shares its partitions: what members tell each other about it, and what the leader makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lowwater.errors import ConfigError, WireError
from lowwater.groups.assignors import Assignment, MemberSpec, Spec, registry
from lowwater.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    CooperativeUserData,
    StickyUserData,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from lowwater.groups.consumer_protocol import TopicPartition as OfTopic
from lowwater.types import TopicPartition
from lowwater.wire.schema import decoder, encoder

COOPERATIVE = "cooperative-sticky"
STICKY = "sticky"
_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
_JAVA = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": STICKY,
    "CooperativeStickyAssignor": COOPERATIVE,
}
# Every version of an assignment has the same fields, and every client reads the first.
_ASSIGNMENT_VERSION = 0


@dataclass(frozen=True, slots=True)
class Owned:
    """Partitions that a member has, or had, and since which generation."""

    partitions: frozenset[TopicPartition] = field(default_factory=frozenset)
    generation: int = -1


def strategies(names: Iterable[str]) -> tuple[str, ...]:
    """partition.assignment.strategy as the wire has it; Java's class names are taken. ConfigError for others."""
    found = tuple(dict.fromkeys(_JAVA.get(name.removeprefix(_JAVA_PACKAGE), name) for name in names))
    if not found:
        raise ConfigError("partition.assignment.strategy is empty; there are range, roundrobin, sticky, " + COOPERATIVE)
    for name in found:
        if name != COOPERATIVE and name not in registry():
            known = ", ".join([*registry().names(), COOPERATIVE])
            raise ConfigError(f"partition.assignment.strategy has {name!r}; there are {known}")
    return found


def is_cooperative(names: Iterable[str]) -> bool:
    """Whether partitions may be kept through a rebalance: only when every strategy that may be chosen allows it."""
    return all(name == COOPERATIVE for name in names)


def subscription(name: str, topics: Iterable[str], owned: Owned, had: Owned, rack: str | None) -> bytes:
    """What a member says in JoinGroup for one strategy: `owned` it still has, `had` it last had."""
    user_data = None
    if name == COOPERATIVE:
        user_data = encoder(CooperativeUserData, 0)(CooperativeUserData(generation=owned.generation))
    elif name == STICKY and had.partitions:
        user_data = encoder(StickyUserData, 1)(
            StickyUserData(previous_assignment=_of_topics(had.partitions), generation=had.generation)
        )
    said = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=_of_topics(owned.partitions),
        generation_id=owned.generation,
        rack_id=rack,
    )
    return encode_subscription(said)


def partitions_of(data: bytes) -> frozenset[TopicPartition]:
    """What the leader gave, as SyncGroup brings it; nothing at all is an empty share."""
    given = decode_assignment(data) if data else None
    if given is None:
        return frozenset()
    return frozenset(
        TopicPartition(each.topic, number) for each in given.assigned_partitions for number in each.partitions
    )


class Sharing:
    """The leader's work: everybody's words, and what to give to whom."""

    def __init__(self, name: str, members: Mapping[str, tuple[str | None, bytes]]) -> None:
        """`members`: by member id, their instance id and what they said."""
        self._name = name
        self._instances = {member: instance for member, (instance, _) in members.items()}
        self._said = {
            member: decode_subscription(data) or ConsumerProtocolSubscription(topics=[], owned_partitions=[])
            for member, (_, data) in members.items()
        }
        self.topics = frozenset(topic for said in self._said.values() for topic in said.topics)

    def assign(self, counts: Mapping[str, int]) -> dict[str, bytes]:
        """The share of every member, in the words of SyncGroup. A pure function; it may take a while."""
        claims = {member: self._claim(said) for member, said in self._said.items()}
        owned = _undisputed(claims)
        spec = Spec(
            {
                member: MemberSpec(frozenset(said.topics), owned[member], self._instances[member], said.rack_id)
                for member, said in self._said.items()
            },
            counts,
        )
        shares = registry().assign(STICKY if self._name == COOPERATIVE else self._name, spec)
        if self._name == COOPERATIVE:
            shares = _without_those_in_use(shares, claims)
        return {member: _encoded(shares.get(member, {})) for member in self._said}

    def _claim(self, said: ConsumerProtocolSubscription) -> Owned:
        if self._name == COOPERATIVE:
            partitions, generation = said.owned_partitions, said.generation_id
            if generation < 0:
                generation = _cooperative_generation(said.user_data)
        elif self._name == STICKY:
            had = _sticky_user_data(said.user_data)
            partitions, generation = had.previous_assignment, had.generation
        else:
            return Owned()
        return Owned(
            frozenset(TopicPartition(each.topic, number) for each in partitions for number in each.partitions),
            generation,
        )


def _undisputed(claims: Mapping[str, Owned]) -> dict[str, dict[str, set[int]]]:
    """What each member may keep: of two who claim a partition the one of the later generation, of equals neither."""
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member, claim in claims.items():
        for one in claim.partitions:
            generation, _ = best.get(one, (-2, None))
            if claim.generation > generation:
                best[one] = claim.generation, member
            elif claim.generation == generation:
                best[one] = generation, None
    owned: dict[str, dict[str, set[int]]] = {member: {} for member in claims}
    for one, (_, owner) in best.items():
        if owner is not None:
            owned[owner].setdefault(one.topic, set()).add(one.partition)
    return owned


def _without_those_in_use(shares: Assignment, claims: Mapping[str, Owned]) -> Assignment:
    """A partition that someone else still reads is given to nobody yet: its owner gives it up, and all join again."""
    users: dict[TopicPartition, set[str]] = {}
    for member, claim in claims.items():
        for one in claim.partitions:
            users.setdefault(one, set()).add(member)
    return {
        member: {
            topic: [number for number in numbers if not users.get(TopicPartition(topic, number), set()) - {member}]
            for topic, numbers in share.items()
        }
        for member, share in shares.items()
    }


def _cooperative_generation(user_data: bytes | None) -> int:
    try:
        return decoder(CooperativeUserData, 0)(memoryview(user_data or b"")).generation
    except WireError:
        return -1


def _sticky_user_data(user_data: bytes | None) -> StickyUserData:
    for version in (1, 0):
        try:
            return decoder(StickyUserData, version)(memoryview(user_data or b""))
        except WireError:
            continue
    return StickyUserData(previous_assignment=[])


def _of_topics(partitions: Iterable[TopicPartition]) -> list[OfTopic]:
    found: dict[str, list[int]] = {}
    for one in sorted(partitions):
        found.setdefault(one.topic, []).append(one.partition)
    return [OfTopic(topic=topic, partitions=numbers) for topic, numbers in found.items()]


def _encoded(share: Mapping[str, Iterable[int]]) -> bytes:
    given = [OfTopic(topic=topic, partitions=sorted(numbers)) for topic, numbers in sorted(share.items())]
    assignment = ConsumerProtocolAssignment(assigned_partitions=[each for each in given if each.partitions])
    return encode_assignment(assignment, _ASSIGNMENT_VERSION)
