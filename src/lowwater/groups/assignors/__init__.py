"""Assignors: which member of a group reads which partitions."""

from __future__ import annotations

from lowwater.groups.assignors.registry import ENTRY_POINTS, Registry, assign, registry
from lowwater.groups.assignors.spec import Assignment, Assignor, MemberSpec, Spec
from lowwater.groups.assignors.validation import AssignorError

__all__ = [
    "ENTRY_POINTS",
    "Assignment",
    "Assignor",
    "AssignorError",
    "MemberSpec",
    "Registry",
    "Spec",
    "assign",
    "registry",
]
