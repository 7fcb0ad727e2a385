"""Whether a group can be given what an assignor made: a custom one may be wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lowwater.groups.assignors.spec import Assignment, MemberSpec, Spec


class AssignorError(Exception):
    """An assignor is unknown, cannot be loaded, or failed. The text says which one and why."""


def validated(spec: Spec, result: Any) -> Assignment:
    """The assignment with every member in it and partitions in order; AssignorError when it breaks a rule."""
    if not isinstance(result, Mapping):
        raise AssignorError(f"it returned {type(result).__name__} instead of a mapping by member id")
    if unknown := result.keys() - spec.members.keys():
        raise AssignorError(f"it assigned to {min(map(repr, unknown))}, which is not a member")
    owners: dict[tuple[str, int], str] = {}
    assignment: Assignment = {}
    for member_id, member in spec.members.items():
        topics = result.get(member_id, {})
        if not isinstance(topics, Mapping):
            raise AssignorError(f"it gave {member_id!r} {type(topics).__name__} instead of a mapping by topic")
        assignment[member_id] = {
            topic: _partitions(spec, member_id, member, topic, partitions, owners)
            for topic, partitions in topics.items()
            if partitions
        }
    return assignment


def _partitions(
    spec: Spec, member_id: str, member: MemberSpec, topic: str, partitions: Any, owners: dict[tuple[str, int], str]
) -> list[int]:
    if topic not in member.topics:
        raise AssignorError(f"it gave {topic!r} to {member_id!r}, which does not subscribe to it")
    if not isinstance(partitions, Collection):
        raise AssignorError(f"it gave {member_id!r} {type(partitions).__name__} instead of partitions of {topic!r}")
    count = spec.partitions.get(topic, 0)
    for partition in partitions:
        if type(partition) is not int or not 0 <= partition < count:
            raise AssignorError(f"it gave {member_id!r} partition {partition!r} of {topic!r}, which has {count}")
        if owner := owners.get((topic, partition)):
            raise AssignorError(f"it gave partition {partition} of {topic!r} to {owner!r} and to {member_id!r}")
        owners[topic, partition] = member_id
    return sorted(partitions)
