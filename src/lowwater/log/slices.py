"""What a read gives: stored bytes, ready or still on disk."""

from __future__ import annotations

from collections.abc import Callable

from lowwater.types import Buffer


class Slice:
    """Whole batches as stored.

    When `cached` is false the bytes are still on disk: `buffers` is empty and `size` the most that may come, until
    `warm()` ran in another thread and filled both in place.
    """

    __slots__ = ("_load", "buffers", "cached", "size")

    def __init__(self, buffers: list[Buffer], size: int, load: Callable[[], list[Buffer]] | None = None) -> None:
        self.buffers = buffers
        self.size = size
        self.cached = load is None
        self._load = load

    def warm(self) -> None:
        """Fetch the bytes from disk; StorageError when that fails. Safe in any one thread."""
        if self._load is None:
            return
        load, self._load = self._load, None
        self.size = 0
        self.buffers[:] = load()
        self.size = sum(map(len, self.buffers))
        self.cached = True


def empty_slice() -> Slice:
    return Slice([], 0)
