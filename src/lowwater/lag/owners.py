"""Spark queries that commit to groups: they write their lineage beside each offset."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lowwater.client.group_offsets import Committed
from lowwater.types import TopicPartition

_NOTE = re.compile(r"lowwater:([0-9a-f]{8})", re.ASCII)


def lineages_of(committed: Mapping[TopicPartition, Committed]) -> tuple[str, ...]:
    """Of the queries whose offsets these are; empty when no Spark job follows the group."""
    found = (_NOTE.fullmatch(each.metadata) for each in committed.values())
    return tuple(sorted({each[1] for each in found if each is not None}))


def checkpoint_rules(group: str, lineages: tuple[str, ...]) -> str:
    """Why setting such a group's offsets does not move its job, and what does."""
    whose = "a Spark job" if len(lineages) == 1 else f"{len(lineages)} Spark jobs"
    return (
        f"group {group!r} follows {whose} (lineage {', '.join(lineages)}): the job's checkpoint says where it goes on, "
        "not the group, and it will commit over what is set here; `lowwater pipeline reset FILE --to POSITION` moves "
        "both"
    )
