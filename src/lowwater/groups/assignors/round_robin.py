"""Round-robin: the partitions of all topics are dealt out one by one, going round the members."""

from __future__ import annotations

from bisect import bisect_left

from lowwater.groups.assignors.spec import Assignment, Spec
from lowwater.groups.assignors.subscriptions import Subscriptions


class RoundRobinAssignor:
    """A member that does not subscribe to the topic is passed over."""

    name = "roundrobin"

    def assign(self, spec: Spec) -> Assignment:
        found = Subscriptions(spec)
        assignment: Assignment = {member_id: {} for member_id in found.members}
        turn = 0
        for topic, count, subscribers in zip(found.topics, found.counts, found.subscribers(), strict=True):
            place = bisect_left(subscribers, turn)
            for partition in range(count):
                member = subscribers[(place + partition) % len(subscribers)]
                assignment[found.members[member]].setdefault(topic, []).append(partition)
            turn = (member + 1) % len(found.members)
        return assignment
