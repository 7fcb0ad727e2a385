"""Encoded answers about topics, kept until anything about topics changes."""

from __future__ import annotations

from collections.abc import Hashable

BYTES_MAX = 8 * 2**20


class AnswerCache:
    """Clients ask for the same metadata again and again; describing thousands of partitions each time is slow."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._answers: dict[Hashable, bytes] = {}
        self._size = 0

    def get(self, key: Hashable) -> bytes | None:
        return self._answers.get(key)

    def put(self, key: Hashable, answer: bytes) -> bytes:
        """Keep `answer` unless it is too large; return it."""
        if len(answer) > self._bytes_max:
            return answer
        if self._size + len(answer) > self._bytes_max:
            self.clear()
        self._answers[key] = answer
        self._size += len(answer)
        return answer

    def clear(self) -> None:
        self._answers.clear()
        self._size = 0
