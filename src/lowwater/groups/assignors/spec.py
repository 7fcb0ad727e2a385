"""What an assignor is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Assignment: TypeAlias = dict[str, dict[str, list[int]]]
"""The partitions of every member: {member id: {topic: partitions}}."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as an assignor sees it. `owned` are the partitions it was last given; they may be gone by now."""

    topics: frozenset[str]
    owned: Mapping[str, Collection[int]] = field(default_factory=dict)
    instance_id: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """A group to be assigned: its members by id, and how many partitions each topic has.

    A topic that is subscribed to but has no count does not exist; one that nobody subscribes to is left alone.
    """

    members: Mapping[str, MemberSpec]
    partitions: Mapping[str, int]

    def member_ids(self) -> list[str]:
        """Static members by instance id, then the others by member id: an order that survives their restart."""
        return sorted(self.members, key=self._order)

    def _order(self, member_id: str) -> tuple[bool, str, str]:
        instance_id = self.members[member_id].instance_id
        return instance_id is None, instance_id or "", member_id


class Assignor(Protocol):
    """Divides the partitions of the subscribed topics among the members of a group.

    It must be a pure function of the spec: it may run in another process.
    """

    @property
    def name(self) -> str:
        """What clients set as `group.remote.assignor`."""

    def assign(self, spec: Spec) -> Assignment:
        """Give a partition to one member at most, and only to one that subscribes to its topic."""
