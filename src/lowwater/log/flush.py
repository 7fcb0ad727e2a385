"""Making logs durable: what to sync is decided on the event loop, the syncing happens elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from lowwater.log.atomic_file import sync_path
from lowwater.log.doubt import Doubt
from lowwater.log.files import OpenFile
from lowwater.log.segment import Segment
from lowwater.ports import Disk, File

# From so many files on, one sync of the whole file system is cheaper than one for each.
SHARED_FROM = 16


class FlushTicket:
    """Segments and directories which, once synced, make a log durable below `end`."""

    __slots__ = ("_files", "_paths", "_pinned", "directories", "doubt", "end", "root", "segments")

    def __init__(self, end: int, root: str, segments: list[Segment], directories: list[str], doubt: Doubt) -> None:
        self.end = end
        self.doubt = doubt
        self.root = root
        self.segments = segments
        self.directories = directories
        self._files: list[File] = []
        self._pinned: list[OpenFile] = []
        # Closed by now, since many logs share few handles: opened one after the other by `run`.
        self._paths: list[str] = []
        for segment in segments:
            file = segment.pin_if_open()
            if file is None:
                self._paths.append(segment.path)
            else:
                self._files.append(file[1])
                self._pinned.append(file[0])

    @property
    def file_count(self) -> int:
        return len(self._files) + len(self._paths) + len(self.directories)

    def run(self, disk: Disk) -> None:
        """The slow part, for any thread. OSError means that nobody knows what is on disk."""
        disk.sync_files(self._files)
        for path in self._paths:
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile, on purpose
                sync_path(disk, path)
        for directory in self.directories:
            disk.sync_dir(directory)

    def release(self) -> None:
        for handle in self._pinned:
            handle.unpin()
        self._pinned.clear()


class Unflushed:
    """What a log has written and not yet synced, and the tickets under way."""

    __slots__ = ("_has_new_names", "_segments", "_tickets")

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self._segments = list(segments)
        self._has_new_names = bool(segments)
        self._tickets: list[FlushTicket] = []

    def note(self, segment: Segment) -> None:
        """A batch was written to `segment`."""
        if not self._segments or self._segments[-1] is not segment:
            self._segments.append(segment)

    def note_names(self) -> None:
        """A file or a directory was created."""
        self._has_new_names = True

    def drop(self, segments: Sequence[Segment]) -> None:
        """Their files are gone."""
        self._segments = [one for one in self._segments if one not in segments]

    def begin(self, end: int, directories: list[str], doubt: Doubt) -> FlushTicket:
        """A ticket for everything below `end`; `directories` from the log's own to the one all logs are in.

        Whoever finishes first must have synced all of it, so it also takes what other tickets are still syncing.
        """
        segments = dict.fromkeys(self._segments)
        names = dict.fromkeys(directories if self._has_new_names else ())
        for running in self._tickets:
            segments.update(dict.fromkeys(running.segments))
            names.update(dict.fromkeys(running.directories))
        ticket = FlushTicket(end, directories[-1], list(segments), list(names), doubt)
        self._segments.clear()
        self._has_new_names = False
        self._tickets.append(ticket)
        return ticket

    def end(self, ticket: FlushTicket) -> None:
        ticket.release()
        self._tickets.remove(ticket)


def run_tickets(disk: Disk, tickets: list[FlushTicket]) -> list[BaseException | None]:
    """Run them together; for each the error it met. Many files share one sync, and then its failure too."""
    if sum(ticket.file_count for ticket in tickets) >= SHARED_FROM:
        try:
            if disk.sync_all(tickets[0].root):
                return [None] * len(tickets)
        except OSError as error:
            tickets[0].doubt.note()
            return [error] * len(tickets)
    return [_error_of(disk, ticket) for ticket in tickets]


def _error_of(disk: Disk, ticket: FlushTicket) -> BaseException | None:
    try:
        ticket.run(disk)
    except OSError as error:
        # Here and now: this process may be dead before its event loop hears of it.
        ticket.doubt.note()
        return error
    return None
