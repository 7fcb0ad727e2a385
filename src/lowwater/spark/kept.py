"""What a Python worker keeps from task to task: workers live across micro-batches and queries.

To connect, to log in and to ask for leaders takes longer than to read or write a small batch, so that is done once.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
Key: TypeAlias = tuple[tuple[str, str], ...]

KEPT_MAX = 4
IDLE_S = 300
REUSED = "SPARK_REUSE_WORKER"
"""Spark says with it that a worker lives on behind its task."""


@dataclass(slots=True)
class _Entry(Generic[T]):
    thing: T
    pid: int
    used_s: float


class Kept(Generic[T]):
    """One thing for each set of settings, a few at most. A fork takes none of them along."""

    def __init__(self, make: Callable[[Mapping[str, str]], T], close: Callable[[T], None]) -> None:
        self._make = make
        self._close = close
        self._entries: dict[Key, _Entry[T]] = {}  # the one used last stands last

    def get(self, settings: Mapping[str, str]) -> T:
        """That of these settings, made when there is none, or none that was used lately."""
        key = _key(settings)
        entry = self._entries.pop(key, None)
        if entry is not None and not _is_fresh(entry):
            self._let_go(entry)
            entry = None
        while len(self._entries) >= KEPT_MAX:
            self._let_go(self._entries.pop(next(iter(self._entries))))
        entry = self._entries[key] = entry or _Entry(self._make(settings), os.getpid(), 0)
        entry.used_s = time.monotonic()
        return entry.thing

    def used(self, settings: Mapping[str, str]) -> None:
        """Until now: what follows is idleness."""
        if (entry := self._entries.get(_key(settings))) is not None:
            entry.used_s = time.monotonic()
        _settle()

    def forget(self, settings: Mapping[str, str]) -> None:
        """Something went wrong with it: the next task begins with a new one."""
        if (entry := self._entries.pop(_key(settings), None)) is not None:
            self._let_go(entry)

    def _let_go(self, entry: _Entry[T]) -> None:
        if entry.pid == os.getpid():  # what another process had is that one's to close
            self._close(entry.thing)


_settled = set[int]()


def _settle() -> None:
    """Once in a worker, behind its first task: what is loaded by then stays.

    Spark has Python look for garbage after every task. In Arrow, numba and all that came with them there is none, and
    to look takes longer than to read a small batch.
    """
    if os.environ.get(REUSED) and os.getpid() not in _settled:
        _settled.add(os.getpid())
        gc.collect()
        gc.freeze()


def _key(settings: Mapping[str, str]) -> Key:
    return tuple(sorted(settings.items()))


def _is_fresh(entry: _Entry[T]) -> bool:
    """Brokers close connections that were not used for long."""
    return entry.pid == os.getpid() and time.monotonic() - entry.used_s < IDLE_S
