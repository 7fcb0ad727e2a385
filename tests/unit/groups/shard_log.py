"""A log of a shard as the tests keep it: records, records of transactions, and the ends of those."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from lowwater.groups.shard import GroupShard
from lowwater.outcome import Outcome, StateRecord


class InTransaction(NamedTuple):
    record: StateRecord
    producer: tuple[int, int]


class Ended(NamedTuple):
    """The marker of a commit or an abort."""

    producer_id: int
    commit: bool


Logged: TypeAlias = StateRecord | InTransaction | Ended


def logged(out: Outcome) -> list[Logged]:
    """What a decision comes to in the log."""
    if out.producer is None:
        return list(out.records)
    return [InTransaction(record, out.producer) for record in out.records]


def replay(shard: GroupShard, log: Iterable[Logged]) -> None:
    for entry in log:
        if isinstance(entry, Ended):
            shard.end_transaction(entry.producer_id, entry.commit)
        elif isinstance(entry, InTransaction):
            shard.replay(*entry)
        else:
            shard.replay(entry)


def compacted(log: list[Logged], *, tombstones: bool = True) -> list[Logged]:
    """Of each key the last record that is not of an aborted transaction. What an open transaction may change stays."""
    stable_end, aborted = _fates(log)
    kept = [place for place in range(stable_end) if place not in aborted]
    last = {_key(log[place]): place for place in kept if not isinstance(log[place], Ended)}
    clean = [log[place] for place in kept if isinstance(log[place], Ended) or last[_key(log[place])] == place]
    if not tombstones:
        clean = [entry for entry in clean if not isinstance(entry, StateRecord) or entry.value is not None]
    return [*clean, *log[stable_end:]]


def _fates(log: list[Logged]) -> tuple[int, set[int]]:
    """Where the first open transaction begins, and the places of what was aborted."""
    open_places: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for place, entry in enumerate(log):
        if isinstance(entry, InTransaction):
            open_places.setdefault(entry.producer[0], []).append(place)
        elif isinstance(entry, Ended):
            places = open_places.pop(entry.producer_id, [])
            aborted |= set() if entry.commit else set(places)
    return min((places[0] for places in open_places.values()), default=len(log)), aborted


def _key(entry: Logged) -> bytes:
    assert not isinstance(entry, Ended)
    return entry.record.key if isinstance(entry, InTransaction) else entry.key
