"""Range: every topic is cut into runs of neighbouring partitions, one for each of its subscribers."""

from __future__ import annotations

from lowwater.groups.assignors.spec import Assignment, Spec
from lowwater.groups.assignors.subscriptions import Subscriptions


class RangeAssignor:
    """Topics of as many partitions and the same subscribers are cut alike, so that they can be joined by partition."""

    name = "range"

    def assign(self, spec: Spec) -> Assignment:
        found = Subscriptions(spec)
        assignment: Assignment = {member_id: {} for member_id in found.members}
        for topic, count, subscribers in zip(found.topics, found.counts, found.subscribers(), strict=True):
            quota, extra = divmod(count, len(subscribers))
            start = 0
            for place, member in enumerate(subscribers[:count]):
                end = start + quota + (place < extra)
                assignment[found.members[member]][topic] = list(range(start, end))
                start = end
        return assignment
