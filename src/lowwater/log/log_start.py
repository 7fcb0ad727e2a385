"""Moving the start of a log up, in steps, so that the slow ones run elsewhere and many logs share one sync.

1. `begin` (event loop): what producers did in the segments that go must be known without them.
2. `LogStart.secure` (any thread): that is durable.
3. `PartitionLog.mark_log_start` (event loop): the new start is written down. It holds once the marks are synced.
4. `PartitionLog.finish_log_start` (event loop): the segments below it go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.errors import StorageError
from lowwater.log.atomic_file import replace_file
from lowwater.log.replay import state_before
from lowwater.log.snapshots import encode_snapshot, snapshot_offsets, snapshot_path
from lowwater.ports import Disk

if TYPE_CHECKING:
    from lowwater.log.partition_log import PartitionLog


class LogStart:
    """A log is to start at `offset`."""

    __slots__ = ("_directory", "_disk", "_snapshot", "offset")

    def __init__(self, disk: Disk, directory: str, offset: int, snapshot: tuple[int, bytes] | None) -> None:
        self._disk = disk
        self._directory = directory
        self._snapshot = snapshot
        self.offset = offset

    @property
    def needs_securing(self) -> bool:
        return self._snapshot is not None

    def secure(self) -> None:
        """Make the producer snapshot durable that older segments are no longer needed for; for any thread."""
        if self._snapshot is None:
            return
        start, content = self._snapshot
        try:
            # A file of its own, even when it is there already: one sync of that one may have failed before.
            replace_file(self._disk, snapshot_path(self._directory, start), content)
            for offset in snapshot_offsets(self._disk.listdir(self._directory)):
                if offset < start:
                    self._disk.unlink(snapshot_path(self._directory, offset))
        except OSError as error:
            why = f"{self._directory}: the producer snapshot is not durable: {error}"
            raise StorageError(why, retriable=True) from error


def begin(log: PartitionLog, disk: Disk, offset: int) -> LogStart:
    """Whether segments go, and what has to be known of them."""
    segments = log.segments
    remaining = [one for one in segments if one.next_offset > offset]
    producers = log.producer_state
    if len(remaining) == len(segments) or not len(producers):
        return LogStart(disk, log.directory, offset, None)
    start = log.log_end
    if remaining:
        start = remaining[0].base_offset
        seen_ms = max(producer.seen_ms for _, producer in producers.items())
        producers = state_before(disk, log.directory, segments, start, seen_ms)
    return LogStart(disk, log.directory, offset, (start, encode_snapshot(producers)))
