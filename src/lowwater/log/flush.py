"""Making logs durable: what to sync is decided on the event loop, the syncing happens elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lowwater.log.files import OpenFile
from lowwater.log.segment import Segment
from lowwater.ports import Disk, File

SHARED_FROM = 32


class FlushTicket:
    """Files and directories which, once synced, make a log durable below `end`."""

    __slots__ = ("_pinned", "directories", "end", "files", "handles")

    def __init__(self, end: int, handles: list[OpenFile], directories: list[str]) -> None:
        self.end = end
        self.handles = handles
        self.files: list[File] = []
        self._pinned: list[OpenFile] = []
        self.directories = directories
        for handle in handles:
            self.files.append(handle.pin())
            self._pinned.append(handle)

    def run(self, disk: Disk) -> None:
        """The slow part, for any thread. OSError means that nobody knows what is on disk."""
        disk.sync_files(self.files)
        for directory in self.directories:
            disk.sync_dir(directory)

    def release(self) -> None:
        for handle in self._pinned:
            handle.unpin()
        self._pinned.clear()


class Unflushed:
    """What a log has written and not yet synced, and the tickets under way."""

    __slots__ = ("_names", "_segments", "_tickets")

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self._segments = list(segments)
        self._names = bool(segments)
        self._tickets: list[FlushTicket] = []

    def note(self, segment: Segment) -> None:
        """A batch was written to `segment`."""
        if not self._segments or self._segments[-1] is not segment:
            self._segments.append(segment)

    def note_names(self) -> None:
        """A file or a directory was created."""
        self._names = True

    def drop(self, segments: Sequence[Segment]) -> None:
        """Their files are gone."""
        self._segments = [one for one in self._segments if one not in segments]

    def begin(self, end: int, directories: list[str]) -> FlushTicket:
        """A ticket for everything below `end`. Whoever finishes first must have synced all of it, so it also takes
        what other tickets are still syncing."""
        handles = {segment.handle: None for segment in self._segments}
        names = dict.fromkeys(directories if self._names else [])
        for running in self._tickets:
            handles.update(dict.fromkeys(running.handles))
            names.update(dict.fromkeys(running.directories))
        ticket = FlushTicket(end, list(handles), list(names))
        self._segments.clear()
        self._names = False
        self._tickets.append(ticket)
        return ticket

    def end(self, ticket: FlushTicket) -> None:
        ticket.release()
        self._tickets.remove(ticket)


def run_tickets(disk: Disk, tickets: list[FlushTicket]) -> list[BaseException | None]:
    """Run them together; for each the error it met. Many files share one sync, and then its failure too."""
    files = [file for ticket in tickets for file in ticket.files]
    if len(files) < SHARED_FROM:
        return [_error_of(disk, ticket) for ticket in tickets]
    try:
        disk.sync_files(files)
        for directory in _distinct(tickets):
            disk.sync_dir(directory)
    except OSError as error:
        return [error] * len(tickets)
    return [None] * len(tickets)


def _error_of(disk: Disk, ticket: FlushTicket) -> BaseException | None:
    try:
        ticket.run(disk)
    except OSError as error:
        return error
    return None


def _distinct(tickets: Iterable[FlushTicket]) -> list[str]:
    return list(dict.fromkeys(directory for ticket in tickets for directory in ticket.directories))
