"""Who subscribes to what, with equal subscriptions told once: a large group has few different ones."""

from __future__ import annotations

from lowwater.groups.assignors.spec import Spec


class Subscriptions:
    """Members and topics by number, both in assignment order; a class is all members with one subscription."""

    def __init__(self, spec: Spec) -> None:
        self.members = spec.member_ids()
        self.class_members: list[list[int]] = []
        class_topics = self._classify(spec)
        self.topics = sorted(topic for topic in set[str]().union(*class_topics) if spec.partitions.get(topic, 0) > 0)
        self.counts = [spec.partitions[topic] for topic in self.topics]
        self.topic_classes = self._by_topic(class_topics)

    def _classify(self, spec: Spec) -> list[frozenset[str]]:
        numbers: dict[frozenset[str], int] = {}
        for number, member_id in enumerate(self.members):
            of_member = numbers.setdefault(spec.members[member_id].topics, len(numbers))
            if of_member == len(self.class_members):
                self.class_members.append([])
            self.class_members[of_member].append(number)
        return list(numbers)

    def _by_topic(self, class_topics: list[frozenset[str]]) -> list[frozenset[int]]:
        classes: dict[str, list[int]] = {topic: [] for topic in self.topics}
        for number, topics in enumerate(class_topics):
            for topic in topics & classes.keys():
                classes[topic].append(number)
        shared: dict[frozenset[int], frozenset[int]] = {}
        sets = (frozenset(classes[topic]) for topic in self.topics)
        return [shared.setdefault(each, each) for each in sets]

    def subscribers(self) -> list[list[int]]:
        """The members of every topic, in order; one list for all topics of the same classes."""
        found: dict[frozenset[int], list[int]] = {}
        for classes in self.topic_classes:
            if classes not in found:
                found[classes] = sorted(member for each in classes for member in self.class_members[each])
        return [found[classes] for classes in self.topic_classes]
