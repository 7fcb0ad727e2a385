"""What a query commits to its group: decided here, asked and sent by `following`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lowwater.client.group_offsets import Committed
from lowwater.types import TopicPartition

_NOTE = re.compile(r"lowwater:([0-9a-f]{8})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Decision:
    """`strangers` are the lineages of other queries that have committed to the same group."""

    offsets: Mapping[TopicPartition, Committed]
    strangers: frozenset[str] = frozenset()


def note(lineage: str) -> str:
    """What stands beside an offset that a query has committed."""
    return f"lowwater:{lineage}"


def lineage_of(metadata: str) -> str | None:
    found = _NOTE.fullmatch(metadata)
    return None if found is None else found[1]


def decide(at: Mapping[TopicPartition, int], lineage: str, committed: Mapping[TopicPartition, Committed]) -> Decision:
    """The group follows the checkpoint, wherever it was before; but the same query never takes it back."""
    offsets: dict[TopicPartition, Committed] = {}
    strangers: set[str] = set()
    for one, offset in at.items():
        before = committed.get(one)
        whose = None if before is None else lineage_of(before.metadata)
        if whose is not None and whose != lineage:
            strangers.add(whose)
        if before is None or whose != lineage or before.offset < offset:
            offsets[one] = Committed(offset, metadata=note(lineage))
    return Decision(offsets, frozenset(strangers))
