"""Reading what is not in memory: the event loop does not wait for the disk, it asks again when the pages are there."""

from __future__ import annotations

import contextlib
from typing import TypeAlias

from lowwater.log.segment import Segment
from lowwater.ports import Disk

Place: TypeAlias = tuple[str, int, int]  # path, position, size
Warmed: TypeAlias = set[Place]

STEP = 1024 * 1024


class ColdReadError(Exception):
    """`bring_in` in any thread, then ask again with `place` among those that were warmed."""

    def __init__(self, disk: Disk, place: Place, paths: tuple[str, ...]) -> None:
        super().__init__(f"{place} is not in memory")
        self.place = place
        self._disk = disk
        self._paths = paths

    def bring_in(self) -> None:
        """Read it for the sake of the page cache. What goes wrong here goes wrong again when it is used."""
        _, position, size = self.place
        for path in self._paths:
            with contextlib.suppress(OSError), contextlib.closing(self._disk.open(path)) as file:
                end = min(file.size(), position + max(size, STEP))
                for start in range(position, end, STEP):
                    file.pread(min(STEP, end - start), start)


def require(segment: Segment, position: int, size: int, warmed: Warmed | None) -> None:
    """Raise ColdReadError when that range is neither in memory nor was just brought in. None: wait for the disk."""
    place = (segment.path, position, size)
    if warmed is not None and place not in warmed and not segment.is_cached(position, size):
        raise ColdReadError(segment.disk, place, (segment.path,))


def require_index(segment: Segment, warmed: Warmed | None) -> None:
    """The same for the index of the segment."""
    place = (segment.index_paths[0], 0, 0)
    if warmed is not None and place not in warmed and not segment.has_index:
        raise ColdReadError(segment.disk, place, segment.index_paths)
