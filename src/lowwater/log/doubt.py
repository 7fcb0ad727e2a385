"""Whether what the page cache holds can be believed.

After a failed fsync the kernel takes pages for written that are on no disk. A process that starts later on the same
boot reads them like any others, and its own fsyncs succeed. So a failure is left behind as an empty file; the next
start writes again whatever it does not know to be durable.
"""

from __future__ import annotations

import contextlib

from lowwater.ports import Disk

MARKER = "in-doubt"


class Doubt:
    """`found`: an earlier process of this data directory met a failure."""

    __slots__ = ("_disk", "_path", "found", "noted")

    def __init__(self, disk: Disk, data_dir: str) -> None:
        self._disk = disk
        self._path = f"{data_dir}/{MARKER}"
        self.found = disk.exists(self._path)
        self.noted = False

    def note(self) -> None:
        """Something failed: who knows what is on disk. The marker is for this boot alone, it need not be durable."""
        self.noted = True
        with contextlib.suppress(OSError):
            self._disk.open(self._path, create=True).close()

    def settle(self) -> None:
        """Everything was written again and synced."""
        if self.found:
            self._disk.unlink(self._path)
            self.found = False
