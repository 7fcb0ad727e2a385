"""Ranges that queries went on without: as values, as records of the ledger, and put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets [first, behind) of a partition were not read by a query. `behind` None: nobody knows how many.

    `lineage` is the query as its checkpoint has it, empty for a batch query; `query` the id that Spark shows.
    """

    topic: str
    partition: int
    first: int
    behind: int | None
    why: str
    found_ms: int
    lineage: str = ""
    query: str = ""
    group: str = ""

    @property
    def count(self) -> int | None:
        return None if self.behind is None else self.behind - self.first


def to_record(loss: Loss) -> tuple[bytes, bytes]:
    """Key and value."""
    key = f"{loss.topic}-{loss.partition}"
    return key.encode(), json.dumps({"lowwater_loss": VERSION, **asdict(loss)}).encode()


def from_record(value: bytes | None) -> Loss | None:
    """None: not one that this version can read."""
    try:
        given = json.loads(value or b"")
        if given.pop("lowwater_loss") != VERSION:
            return None
        return Loss(**{each.name: given[each.name] for each in fields(Loss)})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def put_together(losses: Iterable[Loss]) -> list[Loss]:
    """Each range of a query once, when it was first found: tasks that are tried again find it again."""
    found: list[Loss] = []
    for loss in sorted(losses, key=_place):
        last = found[-1] if found else None
        if last is not None and _is_of_same(last, loss) and _touches(last, loss):
            found[-1] = _joined(last, loss)
        else:
            found.append(loss)
    return sorted(found, key=lambda loss: (loss.found_ms, loss.topic, loss.partition, loss.first))


def _place(loss: Loss) -> tuple[Any, ...]:
    return (*_source(loss), loss.first, loss.behind is None, loss.behind or 0, loss.found_ms)


def _source(loss: Loss) -> tuple[str, ...]:
    return loss.lineage or loss.query, loss.topic, str(loss.partition), loss.why


def _is_of_same(one: Loss, other: Loss) -> bool:
    return _source(one) == _source(other)


def _touches(before: Loss, after: Loss) -> bool:
    if before.behind is None or after.behind is None:
        return before.first == after.first
    return after.first <= before.behind


def _joined(before: Loss, after: Loss) -> Loss:
    behind = None if before.behind is None or after.behind is None else max(before.behind, after.behind)
    names = {name: getattr(before, name) or getattr(after, name) for name in ("query", "group")}
    return replace(before, behind=behind, found_ms=min(before.found_ms, after.found_ms), **names)
