"""Offsets that were committed in transactions which have not ended: nobody sees them before their transaction commits.

The last commit of a partition holds, by its place in the log: what a transaction wrote before another commit is not
taken when the transaction ends after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, str, int]
"""Group, topic, partition."""


class Pending(NamedTuple):
    """`number` is its place in the order of the log. No value: a later commit holds, whatever becomes of this one."""

    number: int
    value: bytes | None


class PendingOffsets:
    """By producer, of which each has one transaction at a time."""

    def __init__(self) -> None:
        self._number = 0
        self._by_producer: dict[int, dict[Place, Pending]] = {}
        self._producers: dict[str, dict[tuple[str, int], set[int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def add(self, producer_id: int, place: Place, value: bytes) -> None:
        self._number += 1
        self._by_producer.setdefault(producer_id, {})[place] = Pending(self._number, value)
        group, topic, partition = place
        self._producers.setdefault(group, {}).setdefault((topic, partition), set()).add(producer_id)

    def end(self, producer_id: int) -> dict[Place, Pending]:
        """The transaction has ended: what it has written, to be kept or not."""
        ended = self._by_producer.pop(producer_id, {})
        for place in ended:
            self._release(place, producer_id)
        return ended

    def overtake(self, place: Place, number: int | None = None) -> None:
        """A commit with that number in the order, or the last of all, holds: what was pending before it is too late."""
        for producer_id in self._at(place):
            pending = self._by_producer[producer_id]
            if number is None or pending[place].number < number:
                pending[place] = Pending(pending[place].number, None)

    def forget(self, place: Place) -> None:
        """The offset was deleted, and what was about to take its place with it."""
        for producer_id in list(self._at(place)):
            pending = self._by_producer[producer_id]
            del pending[place]
            if not pending:
                del self._by_producer[producer_id]
            self._release(place, producer_id)

    def _release(self, place: Place, producer_id: int) -> None:
        group, topic, partition = place
        of_group = self._producers[group]
        producers = of_group[topic, partition]
        producers.discard(producer_id)
        if not producers:
            del of_group[topic, partition]
            if not of_group:
                del self._producers[group]

    # -- reading

    def _at(self, place: Place) -> Iterable[int]:
        group, topic, partition = place
        return self._producers.get(group, {}).get((topic, partition), ())

    def __contains__(self, place: Place) -> bool:
        group, topic, partition = place
        return bool(self._producers) and (topic, partition) in self._producers.get(group, ())

    def has_group(self, group: str) -> bool:
        return group in self._producers

    def count(self, group: str) -> int:
        return len(self._producers.get(group, ()))

    def groups(self) -> list[str]:
        return list(self._producers)

    def groups_of(self, topic: str) -> list[str]:
        return [group for group, places in self._producers.items() if any(name == topic for name, _ in places)]

    def places_of(self, group: str) -> list[tuple[str, int]]:
        return list(self._producers.get(group, ()))

    def values_at(self, place: Place) -> Iterator[bytes]:
        """What may still come to hold."""
        for producer_id in self._at(place):
            value = self._by_producer[producer_id][place].value
            if value is not None:
                yield value
