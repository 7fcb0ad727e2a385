"""Changes to offsets of groups, with what was there before: as values, and as records of the journal. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from lowwater.client.group_offsets import Committed
from lowwater.types import TopicPartition

VERSION = 1
PART_BYTES = 256 * 1024
DONE = "done"
_NOTHING_DONE = "nothing was done: "
_TEXTS, _NUMBERS = ("id", "group", "who", "verb"), ("at_ms", "parts")

Offsets: TypeAlias = Mapping[TopicPartition, Committed | None]
"""None: no offset is committed there."""


@dataclass(frozen=True, slots=True)
class Change:
    """`outcome` is DONE, or what went wrong; empty when whoever made the change did not live to tell."""

    id: str
    group: str
    at_ms: int
    who: str
    verb: str
    before: Offsets = field(default_factory=dict)
    after: Offsets = field(default_factory=dict)
    undoes: str | None = None
    outcome: str = ""

    @property
    def may_be_made(self) -> bool:
        """Something of it was done, as far as is known."""
        return not self.outcome.startswith(_NOTHING_DONE)

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "group": self.group,
            "at_ms": self.at_ms,
            "who": self.who,
            "verb": self.verb,
            "undoes": self.undoes,
            "outcome": self.outcome or None,
            "partitions": [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "before": None if before is None else before.offset,
                    "after": None if (after := self.after.get(one)) is None else after.offset,
                }
                for one, before in sorted(self.before.items())
            ],
        }


def to_records(change: Change) -> list[tuple[bytes, bytes]]:
    """Keys and values; in parts, since a group may have more partitions than a record has room for."""
    key = change.group.encode()
    parts = _parts(change)
    about = {
        "lowwater_change": VERSION,
        "id": change.id,
        "group": change.group,
        "at_ms": change.at_ms,
        "who": change.who,
        "verb": change.verb,
        "undoes": change.undoes,
        "parts": len(parts),
    }
    return [
        (key, json.dumps({**about, "part": place, "offsets": offsets}).encode()) for place, offsets in enumerate(parts)
    ]


def nothing_done(why: object) -> str:
    """The outcome of a change that was refused as a whole."""
    return f"{_NOTHING_DONE}{why}"


def outcome_record(change: Change, outcome: str) -> tuple[bytes, bytes]:
    """Written when it is over."""
    told = {"lowwater_change": VERSION, "id": change.id, "group": change.group, "outcome": outcome}
    return change.group.encode(), json.dumps(told).encode()


def _parts(change: Change) -> list[list[Any]]:
    parts: list[list[Any]] = [[]]
    size = 0
    for one, before in sorted(change.before.items()):
        row = [one.topic, one.partition, _listed(before), _listed(change.after.get(one))]
        size += len(json.dumps(row))
        if parts[-1] and size > PART_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(row)
    return parts


def _listed(committed: Committed | None) -> list[Any] | None:
    return None if committed is None else [committed.offset, committed.leader_epoch, committed.metadata]


def from_records(values: Iterable[bytes | None]) -> list[Change]:
    """The changes in the order in which they were written. Those that are not whole are none: nothing was done then."""
    found: dict[str, dict[int, Any]] = {}
    outcomes: dict[str, str] = {}
    for value in values:
        told = _told(value)
        if told is None:
            continue
        if "outcome" in told:
            outcomes[told["id"]] = str(told["outcome"])
        else:
            found.setdefault(told["id"], {})[told["part"]] = told
    changes = []
    for name, parts in found.items():
        change = _whole(parts)
        if change is not None:
            changes.append(replace(change, outcome=outcomes.get(name, "")))
    return changes


def _told(value: bytes | None) -> dict[str, Any] | None:
    """None: not one that this version can read."""
    try:
        told = json.loads(value or b"")
        known = told["lowwater_change"] == VERSION and isinstance(told["id"], str)
        known = known and ("outcome" in told or type(told["part"]) is int)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return told if known else None


def _whole(parts: Mapping[int, Mapping[str, Any]]) -> Change | None:
    try:
        first = parts[0]
        if not _is_sound(first):
            return None
        rows = [row for place in range(first["parts"]) for row in parts[place]["offsets"]]
        before = {_partition(topic, number): _committed(old) for topic, number, old, _ in rows}
        after = {_partition(topic, number): _committed(new) for topic, number, _, new in rows}
        return Change(
            first["id"], first["group"], first["at_ms"], first["who"], first["verb"], before, after, first["undoes"]
        )
    except (KeyError, ValueError, TypeError):
        return None


def _is_sound(first: Mapping[str, Any]) -> bool:
    return (
        all(isinstance(first[name], str) for name in _TEXTS)
        and all(type(first[name]) is int for name in _NUMBERS)
        and isinstance(first["undoes"], str | None)
    )


def _partition(topic: Any, number: Any) -> TopicPartition:
    if not (isinstance(topic, str) and type(number) is int):
        raise TypeError("not a partition")
    return TopicPartition(topic, number)


def _committed(listed: list[Any] | None) -> Committed | None:
    if listed is None:
        return None
    offset, epoch, metadata = listed
    if not (type(offset) is int and type(epoch) is int and isinstance(metadata, str)):
        raise TypeError("not a committed offset")
    return Committed(offset, epoch, metadata)
