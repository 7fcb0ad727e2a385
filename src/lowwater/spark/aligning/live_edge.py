"""How long a cut waits for partitions that may still get rows before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lowwater.types import TopicPartition


class LiveEdge:
    """Told the time. A partition without a row behind the cut holds it as long as it is not idle.

    Idle is one that has got nothing for `idle_ms`; for readers of committed records, nothing that is committed. Once
    any partition is past the cut, the others hold it for `idle_ms` at most. And whatever comes, a cut is held no longer
    than its span and `idle_ms`: rows that never get there do not stop a query.
    """

    def __init__(self, span_ms: int, idle_ms: int) -> None:
        self._span_ms = span_ms
        self._idle_ms = idle_ms
        self._moved: dict[TopicPartition, tuple[int, int]] = {}
        self._last_ms: int | None = None
        self._since_ms: int | None = None
        self._passed_ms: int | None = None

    def note(self, heads: Mapping[TopicPartition, int], now_ms: int) -> None:
        """Where partitions end now."""
        for one, head in heads.items():
            if one not in self._moved or self._moved[one][0] != head:
                self._moved[one] = (head, now_ms)

    def holds(
        self, last_ms: int | None, waited_for: Collection[TopicPartition], *, is_passed: bool, now_ms: int
    ) -> bool:
        """Whether there is to be no batch yet. `is_passed`: some partition has a row at or after the cut.

        By the cut before, `last_ms`: with a limit the one to come is another with every row that comes.
        """
        if self._since_ms is None or last_ms != self._last_ms:
            self._last_ms, self._since_ms, self._passed_ms = last_ms, now_ms, None
        if is_passed and self._passed_ms is None:
            self._passed_ms = now_ms
        if all(now_ms - self._moved[one][1] >= self._idle_ms for one in waited_for):
            return False
        if self._passed_ms is not None and now_ms - self._passed_ms >= self._idle_ms:
            return False
        return now_ms - self._since_ms < self._span_ms + self._idle_ms

    def begin_anew(self) -> None:
        """Nothing is held: what there was, was late."""
        self._since_ms = None
