"""One segment: a `.log` file of batches back to back, with its sparse index beside it."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from lowwater.errors import StorageError
from lowwater.log.aborted import TXN_INDEX_SUFFIX, AbortedTransactions
from lowwater.log.batches import (
    SPAN_SIZE,
    DamagedBatchError,
    find_offset,
    headers,
    last_boundary,
    prefixes_sum,
    span_at,
)
from lowwater.log.files import FileCache, OpenFile
from lowwater.log.index import SegmentIndex
from lowwater.log.sidecar import SIDECAR_SUFFIXES, SegmentFacts, read_sidecar, write_sidecar
from lowwater.log.slices import Slice, empty_slice
from lowwater.log.tally import Tally
from lowwater.ports import Disk, File
from lowwater.types import Buffer
from lowwater.wire.records import CRC_START

LOG_SUFFIX = ".log"
SEGMENT_SUFFIXES = (LOG_SUFFIX, *SIDECAR_SUFFIXES, TXN_INDEX_SUFFIX)  # the log first
INDEX_INTERVAL = 4096
SMALL_READ = 64 * 1024
BRING_IN_STEP = 1024 * 1024
HOT_TAIL = 32 * 1024 * 1024
ALLOCATE_FROM = 1024 * 1024
ALLOCATE_STEP_MAX = 64 * 1024 * 1024
RELATIVE_MAX = (1 << 31) - 1


def segment_path(directory: str, base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


class Segment(Tally):
    """Owned by one PartitionLog. Everything in [0, size) is whole batches and never changes."""

    __slots__ = (
        "_allocated",
        "_files",
        "_handle",
        "_hot_from",
        "_is_index_saved",
        "_taken",
        "_whole_sum",
        "aborted",
        "created_ms",
        "directory",
        "is_sealed",
    )

    def __init__(self, files: FileCache, directory: str, base_offset: int, created_ms: int) -> None:
        super().__init__(base_offset, created_ms)
        self._files = files
        self._handle: OpenFile | None = None
        self._allocated = 0
        self._hot_from = 0
        self._is_index_saved = False
        self._whole_sum: int | None = None
        # Those that ended here; None while they are only in the file that was written for `_taken`.
        self.aborted: AbortedTransactions | None = AbortedTransactions()
        self._taken: SegmentFacts | None = None
        self.directory = directory
        self.is_sealed = False
        self.created_ms = created_ms

    @classmethod
    def create(cls, files: FileCache, directory: str, base_offset: int, now_ms: int) -> Segment:
        """A new, empty file; its name is durable after a sync of the directory."""
        segment = cls(files, directory, base_offset, now_ms)
        segment._handle = files.open(segment.path, create=True)
        if segment._handle.file().size():
            segment._handle.file().truncate(0)  # left over from a create that failed halfway
        segment.start_over()
        return segment

    @property
    def path(self) -> str:
        return segment_path(self.directory, self.base_offset)

    @property
    def handle(self) -> OpenFile:
        if self._handle is None:
            handle = self._files.open(self.path)
            if handle.file().size() < self.size:
                self._files.forget(handle)
                raise ShortFileError(f"{self.path} is shorter than the {self.size} bytes it had")
            self._handle = handle
        return self._handle

    def pin_if_open(self) -> tuple[OpenFile, File] | None:
        """The open file, which stays open until unpinned; None when it is closed."""
        if self._handle is None or not self._handle.is_open:
            return None
        return self._handle, self._handle.pin()

    @property
    def index(self) -> SegmentIndex:
        """Loaded from the files beside the log, or rebuilt from the log."""
        if self._index is None and self._whole_sum is not None:
            self._index = SegmentIndex()
            self._index.chain, self._index.unindexed_bytes = self._whole_sum, self.size
            self._index.doubt_everything()
        elif self._index is None:
            sidecar = read_sidecar(self._files.disk, self._stem)
            if sidecar is not None and sidecar.facts.size == self.size:
                self._index = sidecar.index
                self._is_index_saved = True
            else:
                self.rebuild_index()
        assert self._index is not None
        return self._index

    @property
    def has_index(self) -> bool:
        """Whether using the index reads no file."""
        return self._index is not None or self._whole_sum is not None

    @property
    def index_paths(self) -> tuple[str, ...]:
        return tuple(self._stem + suffix for suffix in SIDECAR_SUFFIXES)

    @property
    def disk(self) -> Disk:
        return self._files.disk

    @property
    def _stem(self) -> str:
        return segment_path(self.directory, self.base_offset, "")

    @property
    def whole_sum(self) -> int | None:
        """For a segment too small for an index: the checksum of all its batch headers, which stands in for it."""
        if self._index is None:
            return self._whole_sum
        return self._index.chain if self._index.is_empty else None

    def take(self, facts: SegmentFacts, whole_sum: int | None = None) -> None:
        if facts.has_aborts and not self.has_aborts:
            self.aborted, self._taken = None, facts
        super().take(facts)
        self._whole_sum = whole_sum
        self._hot_from = self.size

    # -- writing

    def append(self, batch: memoryview, last_offset: int, max_timestamp: int, now_ms: int, interval: int) -> None:
        """Write `batch`, its place already set in it. OSError or ShortWriteError leaves the segment as it was."""
        position = self.size
        size = len(batch)
        if position + size > self._allocated:
            self._allocate(position, size)
        written = self.handle.file().pwrite(batch, position)
        if written != size:
            raise ShortWriteError(written, size)
        self.note(batch[:CRC_START], last_offset, max_timestamp, size, interval)
        self.modified_ms = now_ms
        self._is_index_saved = False

    def cut_back(self) -> None:
        """Remove what a failed write left behind the end."""
        self._allocated = 0
        self.handle.file().truncate(self.size)

    def _allocate(self, position: int, size: int) -> None:
        """Reserve in growing steps; small logs take no more than they need."""
        if position < ALLOCATE_FROM:
            return
        step = max(size, min(position, ALLOCATE_STEP_MAX))
        self.handle.file().allocate(position, step)
        self._allocated = position + step

    def release_reserve(self) -> None:
        """Give back what was reserved behind the end."""
        if self._allocated > self.size:
            self._allocated = 0
            self.handle.file().truncate(self.size)

    def has_room_for(self, last_offset: int, size: int, segment_bytes: int) -> bool:
        return self.size + size <= segment_bytes and last_offset - self.base_offset <= RELATIVE_MAX

    # -- reading

    def read(self, offset: int, max_bytes: int, end: int, *, min_one: bool) -> Slice:
        """Batches from the one that holds `offset`, or the next, within `max_bytes` and before position `end`."""
        begin = self.index.position_before(offset - self.base_offset)
        if begin >= end:
            return empty_slice()
        wanted = min(max_bytes, end - begin)
        if not self.is_cached(begin, wanted):
            return self._cold(offset, begin, max_bytes, end, min_one)
        self.verify(begin, min(begin + wanted, end))
        if wanted < SMALL_READ:
            return _as_slice(_copy(self.handle.file(), offset, begin, max_bytes, end, min_one))
        view = self.handle.mapped(end, wanted)
        start = find_offset(view, begin, end, offset)
        stop = self._stop(view, start, max_bytes, end, min_one)
        return _as_slice(view[start:stop])

    def _stop(self, view: memoryview, start: int, max_bytes: int, end: int, min_one: bool) -> int:
        limit = start + max_bytes
        if limit >= end:
            return end
        stop = last_boundary(view, max(start, self.index.boundary_before(limit)), limit, end)
        return start + span_at(view, start)[2] if stop == start and min_one else stop

    def is_cached(self, begin: int, size: int) -> bool:
        """Whether reading that range is likely not to wait for the disk."""
        if begin >= max(self._hot_from, self.size - HOT_TAIL):
            return True
        return self.handle.file().is_cached(begin, max(size, 1))

    def _cold(self, offset: int, begin: int, max_bytes: int, end: int, min_one: bool) -> Slice:
        """The same view of the file, after its pages were read elsewhere: readers that are slow cost no memory."""
        disk, path, content = self._files.disk, self.path, self._content(max_bytes)
        view = content.view

        def load() -> list[Buffer]:
            try:
                # A handle of its own: those of the cache belong to the event loop.
                with contextlib.closing(disk.open(path)) as file:
                    _bring_in(file, begin, min(begin + max_bytes, end))
                    start = find_offset(view, begin, end, offset)
                    stop = self._stop(view, start, max_bytes, end, min_one)
                    _bring_in(file, max(start, begin + max_bytes), stop)
                self._compare(content, begin, stop)
            except (OSError, DamagedBatchError) as error:
                raise StorageError(f"{path} cannot be read: {error}") from error
            return [view[start:stop]] if stop > start else []

        return Slice([], max(1, min(max_bytes, end - begin)), load)

    def verify(self, start: int, end: int) -> None:
        """Compare what [start, end) touches with the sums of its intervals, once; StorageError on damage."""
        if self.index.unverified is not None:
            self._compare(self._content(end - start), start, end)

    def _content(self, reads: int) -> _Content:
        return _Content(self.handle.mapped(self.size, reads), self.size, *self.index.last_interval)

    def _compare(self, content: _Content, start: int, end: int) -> None:
        """The same with what was there a while ago; for any thread."""
        index = self.index
        if index.unverified is None:
            return
        for number, begin, stop in index.unverified_intervals(start, end):
            # The last interval may have grown, or ended, since.
            is_last = number == content.last
            stop, expected = (content.size, content.last_sum) if is_last else (stop, index.sum_of(number))
            try:
                good = prefixes_sum(content.view, begin, stop) == expected
            except DamagedBatchError:
                good = False
            if not good:
                raise StorageError(f"{self.path} is damaged between bytes {begin} and {stop}")
            index.unverified[number] = 0

    def batch_at(self, position: int) -> memoryview:
        """The whole batch at `position`."""
        view = self.handle.mapped(self.size, INDEX_INTERVAL)
        return view[position : position + span_at(view, position)[2]]

    def end_position(self, upto: int) -> int:
        """Where the first batch begins that holds `upto` or a later offset."""
        if upto >= self.next_offset:
            return self.size
        view = self.handle.mapped(self.size, INDEX_INTERVAL)
        begin = self.index.position_before(upto - self.base_offset)
        return find_offset(view, begin, self.size, upto)

    # -- files

    def rebuild_index(self) -> None:
        """Walk over all headers; StorageError when they do not lead to the end, and then the segment is as before."""
        before = self.facts
        # First of all, since it may fail: a failed write is cut back to `size`, which must not be forgotten then.
        view = self.handle.mapped(before.size) if before.size else memoryview(b"")
        self.start_over()
        self.has_aborts = before.has_aborts
        try:
            for position, header in headers(view, 0, before.size):
                prefix = view[position : position + CRC_START]
                self.note(prefix, header.last_offset, header.max_timestamp, header.size, INDEX_INTERVAL)
        except DamagedBatchError as error:
            self.take(before)
            raise StorageError(f"{self.path} is damaged {error}") from error

    def save_index(self) -> None:
        """Leave the index on disk for the next start, if it is not there; an error leaves none, which is no loss."""
        if self._index is None or self._index.is_empty or self._is_index_saved:
            return
        write_sidecar(self._files.disk, self._stem, self.base_offset, self.facts, self._index, is_durable=False)
        self._is_index_saved = True

    def read_aborted(self) -> AbortedTransactions | None:
        """What the file says of transactions aborted here; None when there is none that fits."""
        if self._taken is None:
            return None
        return AbortedTransactions.read(self._files.disk, self._stem, self._taken)

    def take_aborted(self, aborted: AbortedTransactions) -> None:
        """They were found in the batches."""
        self.aborted, self._taken = aborted, None

    def save_aborted(self) -> None:
        """Leave them on disk for the next start, unless they are there."""
        if not self.has_aborts or self.aborted is None or (self._taken is not None and self._taken == self.facts):
            return
        self.aborted.write(self._files.disk, self._stem, self.facts)
        self._taken = self.facts

    def close(self) -> None:
        """Close the file and drop the index; both come back on use."""
        if self._handle is not None:
            self._files.forget(self._handle)
            self._handle = None

    def unlink(self) -> None:
        """Remove the files; readers of a map keep what they hold."""
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                self._files.disk.unlink(self._stem + suffix)


class _Content(NamedTuple):
    """A segment at one moment: appends go on while another thread reads."""

    view: memoryview
    size: int
    last: int  # the number of its last interval
    last_sum: int


class ShortFileError(StorageError):
    """Someone cut a segment that was whole."""


class ShortWriteError(Exception):
    """The disk took only a part."""

    def __init__(self, written: int, size: int) -> None:
        super().__init__(f"the disk took {written} of {size} bytes")


def _copy(file: File, offset: int, begin: int, max_bytes: int, end: int, min_one: bool) -> memoryview:
    """The read by pread: usually one call, more when large batches lie before the wanted one."""
    chunk = file.pread(min(end - begin, SMALL_READ), begin)
    position = 0
    while True:
        if len(chunk) - position < SPAN_SIZE:
            chunk = file.pread(min(end - begin - position, SMALL_READ), begin + position)
            begin, position = begin + position, 0
        _, last_offset, size = span_at(chunk, position)
        if last_offset >= offset:
            break
        position += size
        if begin + position >= end:
            return memoryview(b"")
    if size > max_bytes and not min_one:
        return memoryview(b"")
    wanted = min(max(max_bytes, size), end - begin - position)
    view = memoryview(chunk)[position : position + wanted]
    if len(view) < wanted:
        view = memoryview(file.pread(wanted, begin + position))
    return view[: last_boundary(view, 0, wanted, wanted)]


def _bring_in(file: File, begin: int, end: int) -> None:
    """Read [begin, end) for the sake of the page cache."""
    for position in range(begin, end, BRING_IN_STEP):
        file.pread(min(BRING_IN_STEP, end - position), position)


def _as_slice(view: memoryview) -> Slice:
    return Slice([view], len(view)) if len(view) else empty_slice()
