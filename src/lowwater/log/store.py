"""One data directory: every log in it, the marks and the checkpoint they share.

<data>/.lock  format  marks  checkpoint  clean  topics/<name>-<topic id>/<partition>/<segments>
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterable

from lowwater.errors import StorageError
from lowwater.log.atomic_file import replace_file
from lowwater.log.checkpoint import (
    EMPTY_ENTRY,
    Checkpoint,
    LogEntry,
    SegmentEntry,
    read_checkpoint,
    take_clean_marker,
    write_checkpoint,
    write_clean_marker,
)
from lowwater.log.config import LogConfig
from lowwater.log.doubt import Doubt
from lowwater.log.epochs import LeaderEpochs
from lowwater.log.files import FILES_MAX, FileCache
from lowwater.log.flush import run_tickets
from lowwater.log.marks import CeilingTicket, LogKey, Marks
from lowwater.log.partition_log import PartitionLog
from lowwater.log.producers import Producers
from lowwater.log.recovery import Recovery, Situation
from lowwater.log.segment import Segment, ShortFileError
from lowwater.log.state import LogState, Shared
from lowwater.log.stored_log import StoredLog
from lowwater.ports import Disk, Ids, Lock
from lowwater.types import TopicPartition

logger = logging.getLogger(__name__)

FORMAT = b"lowwater 1\n"
NAME_CHARACTERS_MAX = 100
_TOPIC_ID = re.compile(r"[0-9a-f]{32}")


class LogStore:
    """Logs are opened by `partition`; `close` leaves a clean marker, without which the next start recovers them all."""

    def __init__(self, shared: Shared, path: str, ids: Ids, lock: Lock, last: Checkpoint | None, now_ms: int) -> None:
        self._shared = shared
        self._disk = shared.disk
        self._marks = shared.marks
        self._ids = ids
        self._lock = lock
        self._now_ms = now_ms
        self.path = path
        self.was_clean = False
        self._logs: dict[LogKey, PartitionLog] = {}
        # Entries of logs that nobody asked for yet.
        self._entries: dict[LogKey, bytes] = dict(last.logs) if last is not None else {}
        self._directories: dict[str, frozenset[str]] = {}

    @classmethod
    def open(cls, disk: Disk, path: str, *, now_ms: int, ids: Ids, files_max: int = FILES_MAX) -> LogStore:
        """Take the directory for this process; StorageError when it is in use or of a format we do not know."""
        _make_directory(disk, path)
        lock = _take_lock(disk, path)
        try:
            _check_format(disk, path)
            last = read_checkpoint(disk, f"{path}/checkpoint")
            doubt = Doubt(disk, path)
            was_clean = take_clean_marker(disk, f"{path}/clean", last) and not doubt.found
            marks = Marks.open(disk, f"{path}/marks")
            # Its sync also makes the removal of the clean marker durable: both are in this directory.
            marks.begin_boot(ids.boot_id(), last.boot_count if last is not None else 0, was_clean=was_clean)
            disk.mkdir(f"{path}/topics")
            disk.sync_dir(path)
            store = cls(Shared(disk, FileCache(disk, files_max), marks, doubt), path, ids, lock, last, now_ms)
            store.was_clean = was_clean
            store._directories = {name: frozenset() for name in disk.listdir(f"{path}/topics")}
        except BaseException:
            lock.release()
            raise
        return store

    @property
    def boot_count(self) -> int:
        """How many times this directory was opened; leader epochs count from it."""
        return self._marks.boot_count

    def logs(self) -> Iterable[PartitionLog]:
        return self._logs.values()

    # -- partitions

    def partition(
        self, topic: str, topic_id: bytes, partition: int, config: LogConfig, created_boot: int
    ) -> PartitionLog:
        """The log of a partition. Files appear with its first batch."""
        key = (topic_id, partition)
        known = self._logs.get(key)
        if known is not None:
            return known
        directory = f"{self.path}/topics/{_directory_name(topic, topic_id)}"
        epoch = self.boot_count - created_boot
        log = PartitionLog(self._shared, TopicPartition(topic, partition), key, directory, config, epoch)
        entry = self._entries.pop(key, None)
        if self.was_clean and entry is not None:
            log.open_later(entry, self._load)
        elif self._has_directory(directory, partition):
            last = LogEntry.decode(entry) if entry is not None else EMPTY_ENTRY
            # One log that cannot be read does not keep the others from being served.
            log.open_recovered(entry, lambda: self._recover(log, last))
        else:
            log.open_with(self._without_files(log, entry))
        self._logs[key] = log
        return log

    def _has_directory(self, directory: str, partition: int) -> bool:
        name = directory.rpartition("/")[2]
        if name not in self._directories:
            return False
        if not self._directories[name]:
            self._directories[name] = frozenset(self._disk.listdir(directory))
        return str(partition) in self._directories[name]

    def _load(self, log: StoredLog, entry: LogEntry) -> LogState:
        """After a clean stop the checkpoint is the truth, unless the files say otherwise."""
        segments = [_segment(self._shared.files, log.directory, one) for one in entry.segments]
        if not all(_is_untouched(segment) for segment in segments[-1:]):
            logger.error("%s changed after the last clean stop; it is recovered", log.topic_partition)
            return self._recover(log, entry)
        return LogState(
            log_start=entry.log_start,
            log_end=entry.log_end,
            flushed_end=entry.flushed_end,
            resume_at=entry.resume_at,
            clean_until=entry.clean_until,
            segments=segments,
            epochs=LeaderEpochs(entry.epochs),
            producers=Producers.decode(entry.producers or b""),
        )

    def _recover(self, log: StoredLog, entry: LogEntry) -> LogState:
        situation = Situation(
            key=log.key,
            topic_partition=log.topic_partition,
            directory=log.directory,
            entry=entry,
            leader_epoch=log.leader_epoch,
            interval=log.config.index_interval_bytes,
            now_ms=self._now_ms,
        )
        return Recovery(self._shared, situation).run()

    def _without_files(self, log: PartitionLog, data: bytes | None) -> LogState:
        """No directory: nothing was written, or a power cut took it."""
        entry = LogEntry.decode(data) if data is not None else EMPTY_ENTRY
        start = max(entry.log_start, self._marks.log_start_of(log.key))
        resume_at = max(start, entry.resume_at, self._marks.resume_of(log.key))
        epochs = LeaderEpochs(entry.epochs)
        if self._marks.may_have_lost(log.leader_epoch, epochs.last):
            resume_at = max(resume_at, self._marks.ceiling_of(log.key))
        return LogState(log_start=start, log_end=start, flushed_end=start, resume_at=resume_at, epochs=epochs)

    # -- ceilings

    @property
    def wants_ceilings(self) -> bool:
        return bool(self._marks.wanting)

    def begin_ceilings(self) -> CeilingTicket | None:
        """Write the ceilings that logs want; `ticket.run()` elsewhere, then `finish_ceilings`."""
        return self._marks.begin_ceilings()

    def finish_ceilings(self, ticket: CeilingTicket, error: BaseException | None) -> None:
        self._marks.finish_ceilings(ticket, error)

    def raise_ceilings(self) -> None:
        """The same, blocking."""
        self._marks.raise_ceilings()

    def sync_marks(self) -> None:
        """Make durable what logs have written down; for any thread."""
        self._marks.sync()

    # -- topics

    def begin_delete_topic(self, topic_id: bytes) -> Callable[[], None]:
        """Close the topic's logs; the result removes the files, and may run in another thread.

        The deletion is durable elsewhere: what a crash leaves, the next start removes.
        """
        for key in [key for key in self._logs if key[0] == topic_id]:
            log = self._logs.pop(key)
            log.retire("the topic was deleted")
            log.close()
        for key in [key for key in self._entries if key[0] == topic_id]:
            del self._entries[key]
        self._marks.forget(topic_id)
        suffix = topic_id.hex()
        return lambda: self._remove_directories(lambda found: found == suffix)

    def remove_leftovers(self, is_live: Callable[[bytes], bool]) -> None:
        """Remove what is left of topics that no longer exist."""
        gone = {one for one in self._marks.topic_ids() if not is_live(one)}
        for topic_id in gone:
            self._marks.forget(topic_id)
        for key in [key for key in self._entries if not is_live(key[0])]:
            del self._entries[key]
        self._remove_directories(lambda found: not is_live(bytes.fromhex(found)))

    def _remove_directories(self, is_dead: Callable[[str], bool]) -> None:
        root = f"{self.path}/topics"
        for name in self._disk.listdir(root):
            suffix = name.rpartition("-")[2]
            if _TOPIC_ID.fullmatch(suffix) and is_dead(suffix):
                _remove_tree(self._disk, f"{root}/{name}")

    # -- the end

    def checkpoint(self) -> None:
        """Write down what is durable now, so that a later recovery has less to scan. Blocking."""
        self.begin_checkpoint()()

    def begin_checkpoint(self) -> Callable[[], None]:
        """Take down what is durable now; the result writes it, and may run in another thread, one at a time."""
        checkpoint = self._take_checkpoint()
        return lambda: self._write_checkpoint(checkpoint)

    def flush(self) -> None:
        """Make everything durable; a log that cannot be goes offline. Blocking."""
        tickets = [(log, ticket) for log in self._healthy() if (ticket := log.begin_flush()) is not None]
        errors = run_tickets(self._disk, [ticket for _, ticket in tickets])
        for (log, ticket), error in zip(tickets, errors, strict=True):
            log.finish_flush(ticket, error)

    def _healthy(self) -> list[PartitionLog]:
        return [log for log in self._logs.values() if log.is_loaded and log.offline is None]

    def close(self, now_ms: int, *, clean: bool = True) -> None:
        """Flush everything, save what speeds up the next start, and leave the clean marker.

        `clean`: nothing has failed that the store does not know of.
        """
        try:
            healthy = self._healthy()
            self.flush()
            for log in healthy:
                log.save()
            checkpoint = self._take_checkpoint()
            self._write_checkpoint(checkpoint)
            in_doubt = not clean or self._marks.is_failed or self._shared.doubt.noted
            if not in_doubt and all(log.offline is None for log in self._logs.values()):
                self._shared.doubt.settle()
                write_clean_marker(self._disk, f"{self.path}/clean", checkpoint)
        finally:
            # Also when the disk is full: the directory must not stay locked.
            self.abandon()

    def abandon(self) -> None:
        """Let go of the directory as a killed process would: nothing is flushed, no marker is left."""
        for log in self._logs.values():
            log.close()
        self._shared.files.close_all()
        self._marks.close()
        self._lock.release()

    def _take_checkpoint(self) -> Checkpoint:
        entries = dict(self._entries)
        for key, log in self._logs.items():
            if log.log_end or log.next_offset:
                entries[key] = log.entry()
        return Checkpoint(self._ids.uuid(), self.boot_count, entries)

    def _write_checkpoint(self, checkpoint: Checkpoint) -> None:
        write_checkpoint(self._disk, f"{self.path}/checkpoint", checkpoint)


def _segment(files: FileCache, directory: str, entry: SegmentEntry) -> Segment:
    segment = Segment(files, directory, entry.base_offset, entry.created_ms)
    segment.take(entry.facts, entry.whole_sum)
    segment.is_sealed = entry.is_sealed
    return segment


def _is_untouched(segment: Segment) -> bool:
    try:
        return segment.handle.file().size() == segment.size
    except (FileNotFoundError, ShortFileError):
        return False


def _directory_name(topic: str, topic_id: bytes) -> str:
    """The id makes it unique, the name makes it readable; legal topic names are legal file names."""
    return f"{topic[:NAME_CHARACTERS_MAX]}-{topic_id.hex()}"


def _make_directory(disk: Disk, path: str) -> None:
    """With those above it. Its name is made durable before the format file is there, so never again later."""
    parent = path.rstrip("/").rpartition("/")[0] or ("/" if path.startswith("/") else ".")
    if not disk.exists(parent):
        _make_directory(disk, parent)
    disk.mkdir(path)
    if not disk.exists(f"{path}/format"):
        disk.sync_dir(parent)


def _take_lock(disk: Disk, path: str) -> Lock:
    try:
        return disk.lock(f"{path}/.lock")
    except BlockingIOError:
        raise StorageError(f"data directory {path} is in use by another broker") from None


def _check_format(disk: Disk, path: str) -> None:
    """Write the format of a new directory; refuse one that this version cannot read."""
    file = f"{path}/format"
    if disk.exists(file):
        found = disk.read(file)
        if found != FORMAT:
            raise StorageError(
                f"data directory {path} has format {found[:40]!r}, this version reads {FORMAT!r}: "
                "use the version of lowwater that wrote it"
            )
        return
    if disk.exists(f"{path}/topics") or disk.exists(f"{path}/marks"):
        raise StorageError(
            f"data directory {path} has no format file; restore it ({FORMAT!r}) or use another directory"
        )
    replace_file(disk, file, FORMAT)


def _remove_tree(disk: Disk, path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        for name in disk.listdir(path):
            inner = f"{path}/{name}"
            try:
                disk.unlink(inner)
            except (IsADirectoryError, PermissionError):
                _remove_tree(disk, inner)
        disk.rmdir(path)
