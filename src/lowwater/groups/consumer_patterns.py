"""Subscriptions by regular expression: RE2, so that no expression can hang the broker."""

from __future__ import annotations

from typing import Any

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.topics import TopicsView

PATTERNS_MAX = 1_000


class TopicPatterns:
    """Which topics match which expression. When topics change, only those that are new are matched again.

    One for all groups. Of many expressions the oldest are forgotten, and matched again when they are asked for.
    """

    __slots__ = ("_compiled", "_matches", "_names", "_topics", "_version")

    def __init__(self, topics: TopicsView) -> None:
        self._topics = topics
        self._version: int | None = None
        self._names: frozenset[str] = frozenset()
        self._compiled: dict[str, Any] = {}
        self._matches: dict[str, frozenset[str]] = {}

    def topics_of(self, pattern: str) -> frozenset[str]:
        """The topics of this moment whose whole name matches, internal ones too; INVALID_REGULAR_EXPRESSION."""
        self._refresh()
        if pattern not in self._matches:
            self._make_room()
            self._matches[pattern] = self._matching(pattern, self._names)
        return self._matches[pattern]

    def _make_room(self) -> None:
        while len(self._matches) >= PATTERNS_MAX:
            oldest = next(iter(self._matches))
            del self._matches[oldest]
            self._compiled.pop(oldest, None)

    def _refresh(self) -> None:
        if self._topics.version == self._version:
            return
        names = frozenset(self._topics.names())
        added = names - self._names
        self._matches = {
            pattern: (matches & names) | self._matching(pattern, added) for pattern, matches in self._matches.items()
        }
        self._names, self._version = names, self._topics.version

    def _matching(self, pattern: str, names: frozenset[str]) -> frozenset[str]:
        matches = self._compile(pattern).fullmatch
        return frozenset(name for name in names if matches(name) is not None)

    def _compile(self, pattern: str) -> Any:
        if pattern in self._compiled:
            return self._compiled[pattern]
        # Most groups subscribe by name; the library takes longer to import than the broker's other half.
        import re2

        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled[pattern] = re2.compile(pattern, options)
        except re2.error as problem:
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r}: {_text(problem)}") from None
        return self._compiled[pattern]


def _text(problem: Exception) -> str:
    said = problem.args[0] if problem.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
