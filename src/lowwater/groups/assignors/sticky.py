"""Sticky and uniform: as balanced as the subscriptions allow, with as few partitions as possible changing hands."""

from __future__ import annotations

from lowwater.groups.assignors.levels import Source, blocks
from lowwater.groups.assignors.movement import Movement
from lowwater.groups.assignors.spec import Assignment, Spec
from lowwater.groups.assignors.subscriptions import Subscriptions


class StickyAssignor:
    """`levels` says what balanced means; of all balanced assignments this is one that moves the fewest partitions."""

    name = "sticky"

    def assign(self, spec: Spec) -> Assignment:
        found = Subscriptions(spec)
        owned = _owned(spec, found)
        unowned = list(found.counts)
        for of_member in owned:
            for topic, partitions in of_member.items():
                unowned[topic] -= len(partitions)
        counts = [{topic: len(partitions) for topic, partitions in of_member.items()} for of_member in owned]
        levels = blocks(_sources(found), [len(members) for members in found.class_members])
        movement = Movement(levels, found.class_members, counts, unowned)
        movement.run()
        return _hand_out(found, owned, [holder.held for holder in movement.holders])


class UniformAssignor(StickyAssignor):
    """The name under which Kafka's clients ask for it, and Kafka's default."""

    name = "uniform"


def _owned(spec: Spec, found: Subscriptions) -> list[dict[int, list[int]]]:
    """What every member owned and may keep: it exists, is subscribed to, and no member before claims it."""
    numbers = {topic: number for number, topic in enumerate(found.topics)}
    claimed: dict[int, set[int]] = {}
    owned: list[dict[int, list[int]]] = []
    for member_id in found.members:
        member = spec.members[member_id]
        of_member = {}
        for topic, partitions in member.owned.items():
            number = numbers.get(topic)
            if number is None or topic not in member.topics:
                continue
            taken = claimed.setdefault(number, set())
            valid = {each for each in partitions if 0 <= each < found.counts[number]} - taken
            if valid:
                taken |= valid
                of_member[number] = sorted(valid)
        owned.append(of_member)
    return owned


def _sources(found: Subscriptions) -> list[Source]:
    topics: dict[frozenset[int], list[int]] = {}
    for topic, classes in enumerate(found.topic_classes):
        topics.setdefault(classes, []).append(topic)
    return [Source(each, sum(found.counts[topic] for topic in each), classes) for classes, each in topics.items()]


def _hand_out(found: Subscriptions, owned: list[dict[int, list[int]]], held: list[dict[int, int]]) -> Assignment:
    """Partitions for the numbers: everyone keeps its own as far as the number goes, the rest goes round in order."""
    kept = [
        {topic: owned[member].get(topic, [])[:count] for topic, count in of_member.items()}
        for member, of_member in enumerate(held)
    ]
    free = _free(found, kept)
    assignment: Assignment = {}
    for member, member_id in enumerate(found.members):
        mine = {}
        for topic in sorted(held[member]):
            more = held[member][topic] - len(kept[member][topic])
            mine[found.topics[topic]] = sorted(kept[member][topic] + free[topic][:more])
            del free[topic][:more]
        assignment[member_id] = mine
    return assignment


def _free(found: Subscriptions, kept: list[dict[int, list[int]]]) -> list[list[int]]:
    """The partitions of every topic that nobody keeps."""
    taken: list[set[int]] = [set() for _ in found.topics]
    for of_member in kept:
        for topic, partitions in of_member.items():
            taken[topic].update(partitions)
    return [
        [each for each in range(count) if each not in of_topic]
        for count, of_topic in zip(found.counts, taken, strict=True)
    ]
