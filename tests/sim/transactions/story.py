"""What clients know of their transactions: what they wrote, how they asked to end it, and what they were told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(slots=True, eq=False)
class Story:
    """One transaction as its client lived it. Values are unique in a world and begin with the number."""

    number: int
    transactional_id: str
    acked: dict[int, list[str]] = field(default_factory=dict)
    offset: int | None = None  # that was committed in it, and the broker said so
    asked_commit_ms: float | None = None
    asked_abort: bool = False
    is_committed: bool = False  # the broker said so

    def value(self, place: int) -> str:
        return f"{self.number}:{place}"

    @property
    def values(self) -> set[str]:
        return {value for some in self.acked.values() for value in some}


def number_of(value: str) -> int:
    return int(value.split(":")[0])


Owner: TypeAlias = tuple[str, int]
"""A process: a name, and which of its lives."""


class Library:
    """All transactions of a world, and which requests are about which."""

    def __init__(self) -> None:
        self.stories: list[Story] = []
        self._latest: dict[Owner, Story] = {}
        self._sent: dict[int, tuple[Any, Owner, Story]] = {}

    def begin(self, transactional_id: str, owner: Owner) -> Story:
        story = self._latest[owner] = Story(len(self.stories), transactional_id)
        self.stories.append(story)
        return story

    def send(self, request: Any, owner: Owner) -> None:
        if owner in self._latest:
            self._sent[id(request)] = request, owner, self._latest[owner]

    def is_past(self, request: Any) -> bool:
        """It speaks of a transaction after which its sender has begun another one."""
        if id(request) not in self._sent:
            return False
        _, owner, story = self._sent[id(request)]
        return self._latest[owner] is not story
