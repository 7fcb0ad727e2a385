"""What was seen of groups and their partitions at one moment. What is not known is None or missing, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lowwater.client.admin.group_members import GroupMember
from lowwater.client.group_offsets import Committed
from lowwater.client.stamps import Place, Stamp
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID


class Fault(NamedTuple):
    """What could not be asked, and why: `where` is a broker, a partition or a group."""

    where: str
    what: str


def visible(name: str) -> str:
    """A name that clients have chosen, without what would begin a line or command a terminal."""
    return name if name.isprintable() else repr(name)[1:-1]


class LoggedCommit(NamedTuple):
    """A commit as it stands in `__consumer_offsets`; `offset` None: it was deleted."""

    group: str
    partition: TopicPartition
    at_ms: int
    offset: int | None
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a partition begins and ends. `fault` says why that is not known; `is_gone`: because there is none."""

    start: int | None = None
    end: int | None = None
    topic_id: bytes = ZERO_UUID
    epoch: int = -1
    fault: str | None = None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """`state` None: its coordinator did not say. `fault`: why its offsets, or its members, are not known."""

    group: str
    state: str | None = None
    kind: str | None = None
    members: tuple[GroupMember, ...] = ()
    committed: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    fault: str | None = None

    @property
    def partitions(self) -> list[TopicPartition]:
        """Those it has offsets for, and those its members read."""
        assigned = {one for member in self.members for one in member.partitions or ()}
        return sorted(assigned | self.committed.keys())


@dataclass(frozen=True, slots=True)
class Observation:
    """`next_records` has the record that each group reads next, None where none is left. `is_all`: there is no other
    group; all brokers have told theirs."""

    at_ms: int
    groups: Mapping[str, GroupSeen]
    partitions: Mapping[TopicPartition, Standing] = field(default_factory=dict)
    next_records: Mapping[Place, Stamp | None] = field(default_factory=dict)
    commits: tuple[LoggedCommit, ...] = ()
    faults: tuple[Fault, ...] = ()
    is_all: bool = False
