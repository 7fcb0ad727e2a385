"""One member reads everything, the others wait to take over: for work that must not be done by two at once."""

from lowwater.groups.assignors import Assignment, Spec


class ActiveStandby:
    """Each topic goes to whoever has it; when that one is gone, to the first of its subscribers."""

    name = "active-standby"

    def assign(self, spec: Spec) -> Assignment:
        assignment: Assignment = {member_id: {} for member_id in spec.members}
        for topic, count in spec.partitions.items():
            subscribers = [each for each in spec.member_ids() if topic in spec.members[each].topics]
            active = next((each for each in subscribers if spec.members[each].owned.get(topic)), None)
            if subscribers:
                assignment[active or subscribers[0]][topic] = list(range(count))
        return assignment
