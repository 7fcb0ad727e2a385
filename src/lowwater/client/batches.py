"""The batches of one answer: checked, decompressed, and without what a reader is not given.

Whatever is wrong with a batch ends its partition there, with an error that says where; the others are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from lowwater.client.errors import ClientError, CorruptRecordsError, RecordFormatError
from lowwater.client.slabs import Slabs
from lowwater.client.slices import FetchedSlice
from lowwater.client.unpacking import Ratio, Unpacking
from lowwater.types import Buffer
from lowwater.wire import compression
from lowwater.wire.kernels import scanning, walking
from lowwater.wire.records import CODEC_MASK, CONTROL, CRC_START, HEADER_SIZE, RECORD_SIZE_MIN, TRANSACTIONAL

_BATCH_BYTES_GUESS = 4096
_DAMAGED = "read it again; if it stays so, the broker's copy is damaged, and reading can go on behind it"
_OLD = "a client of Kafka 0.11 or newer has to write these records anew"
_NO_OUTPUTS = np.empty((0, 2), np.int64)


class Answer:
    """What one Fetch brought, opened. Batches lie in the order of the slices, and so do the sections for `scan`.

    Kernels do what has to be done for every batch; whatever is not usual is seen to here, batch by batch.
    """

    def __init__(
        self,
        slices: Sequence[FetchedSlice],
        tags: Sequence[int],
        *,
        output_bytes_max: int,
        budget_bytes: int,
        slabs: Slabs | None = None,
        ratio: Ratio | None = None,
    ) -> None:
        """One batch gives at most `output_bytes_max`; when all together gave `budget_bytes`, the rest has to wait."""
        self._slices = slices
        self._tags = tags
        self._output_bytes_max = output_bytes_max
        self._budget = budget_bytes
        self._slabs = slabs or Slabs(kept_bytes_max=0)
        self._ratio = ratio or Ratio()
        self._memory = [pa.py_buffer(one.records) for one in slices]
        self._outputs: dict[int, Any] = {}  # by batch, what was decompressed
        self.errors: dict[int, ClientError] = {}
        self._is_all_good = True
        self._walk()
        self._look_into()

    # -- finding batches

    def _walk(self) -> None:
        fields = [
            (memory.address, memory.size, one.fetch_offset, tag, 0, 0, 0, 0)
            for memory, one, tag in zip(self._memory, self._slices, self._tags, strict=True)
        ]
        self._table = table = np.array(fields, np.int64).reshape(-1, walking.SLICE_COLUMNS)
        room = len(table) + sum(memory.size for memory in self._memory) // _BATCH_BYTES_GUESS
        found = room + 1
        while found > room:
            room = max(room, found)
            batches = np.empty((room, walking.BATCH_COLUMNS), np.int64)
            found, self._states = walking.walk(table, batches)
        self._batches = batches[:found]
        for place, fault in enumerate(table[:, walking.FAULT].tolist()):
            if fault:
                self._refuse(place, fault, int(table[place, walking.POSITION]))

    def _refuse(self, place: int, fault: int, offset: int) -> None:
        where = self._slices[place].partition._asdict()
        if fault in (walking.OLD_FORMAT, walking.UNKNOWN_FORMAT):
            advice = _OLD if fault == walking.OLD_FORMAT else ""
            self.errors[place] = RecordFormatError(walking.FAULTS[fault], offset=offset, advice=advice, **where)
        else:
            self.errors[place] = CorruptRecordsError(walking.FAULTS[fault], offset=offset, advice=_DAMAGED, **where)

    # -- looking into them

    def _look_into(self) -> None:
        """Checksums first: nothing else is believed of a batch before."""
        self._check_sums()
        for place, one in enumerate(self._slices):
            if one.aborted:
                self._leave_out_aborted(place, one.aborted)
        if self._states & walking.CLAIMS_TOO_MANY:
            for index in self._which(walking.WANTED | walking.CLAIMS_TOO_MANY):
                self._refuse_count(index, int(self._batches[index, walking.SIZE]) - HEADER_SIZE)
        if self._states & walking.COMPRESSED and (packed := self._which(walking.WANTED | walking.COMPRESSED)):
            self._decompress(packed)

    def _check_sums(self) -> None:
        views = [memoryview(one.records) for one in self._slices]
        sums = self._batches[:, : walking.CRC + 1].tolist()
        wrong = [index for index, (place, start, end, crc) in enumerate(sums) if crc32c(views[place][start:end]) != crc]
        for index in wrong:
            self._spoil(index, "the checksum of a batch is wrong")

    def _leave_out_aborted(self, place: int, aborted: Iterable[tuple[int, int]]) -> None:
        first, end = np.searchsorted(self._batches[:, walking.SLICE], (place, place + 1)).tolist()
        for index in _aborted(aborted, self._batches[first:end].tolist()):
            self._batches[first + index, walking.STATE] &= ~walking.WANTED

    def _which(self, state: int) -> list[int]:
        """The batches that are all of this, and count."""
        batches = self._batches
        good = np.arange(len(batches)) < self._table[batches[:, walking.SLICE], walking.GOOD_BEFORE]
        found: list[int] = np.flatnonzero(good & ((batches[:, walking.STATE] & state) == state)).tolist()
        return found

    def _refuse_count(self, index: int, size: int) -> None:
        self._spoil(index, f"a batch claims {self._batches[index, walking.RECORDS]} records in {size} bytes")

    def _decompress(self, compressed: list[int]) -> None:
        unpacking = Unpacking(
            self._slabs,
            [self._packed(index) for index in compressed],
            self._ratio,
            output_bytes_max=self._output_bytes_max,
            room_bytes_max=max(self._budget, 0),
        )
        for number, index in enumerate(compressed):
            place = int(self._batches[index, walking.SLICE])
            if index >= self._table[place, walking.GOOD_BEFORE]:
                continue
            if self._budget <= 0:
                # It comes again, when there is room, and with it what is wrong behind it.
                self._ends_before(index, place)
                self.errors.pop(place, None)
                continue
            try:
                self._unpacked(index, unpacking[number])
            except compression.CompressionError as error:
                self._spoil(index, f"a batch cannot be decompressed: {error}")

    def _packed(self, index: int) -> tuple[int, memoryview]:
        """The codec and the body of a batch."""
        place, start, end = self._batches[index, : walking.BEHIND + 1].tolist()
        body = memoryview(self._slices[place].records)[start - CRC_START + HEADER_SIZE : end]
        return int(self._batches[index, walking.ATTRIBUTES]) & CODEC_MASK, body

    def _unpacked(self, index: int, output: Buffer) -> None:
        self._budget -= len(output)
        if self._batches[index, walking.RECORDS] > len(output) // RECORD_SIZE_MIN:
            self._refuse_count(index, len(output))
        else:
            self._outputs[index] = pa.py_buffer(output)

    def _spoil(self, index: int, what: str) -> None:
        """Nothing of the slice counts from this batch on. The first fault of a slice is the one that is told."""
        place = int(self._batches[index, walking.SLICE])
        if index >= self._table[place, walking.GOOD_BEFORE]:
            return
        offset = max(int(self._batches[index, walking.BASE_OFFSET]), self._slices[place].fetch_offset)
        where = self._slices[place].partition._asdict()
        self._ends_before(index, place)
        self.errors[place] = CorruptRecordsError(what, offset=offset, advice=_DAMAGED, **where)

    def _ends_before(self, index: int, place: int) -> None:
        self._table[place, walking.GOOD_BEFORE] = index
        self._is_all_good = False

    # -- what comes of it

    def scan(self, room: Callable[[int], Any]) -> tuple[Any, int]:
        """All records that are wanted, by slice and offset, in `room` for so many rows; and how many they are."""
        sections, chosen, records = self._sections()
        rows, faults = room(records), np.zeros(len(sections), np.int32)
        count = scanning.scan(sections, faults, rows)
        if faults.any():
            for section in np.flatnonzero(faults).tolist():
                if (fault := int(faults[section])) != scanning.BEHIND_A_FAULT:
                    self._spoil(int(chosen[section]), f"a record cannot be read: {scanning.FAULTS[fault]}")
        return rows, count

    def _sections(self) -> tuple[Any, Any, int]:
        """For the kernel, which batch each is, and how many records they claim."""
        size = len(self._batches)
        sections, chosen = np.empty((size, scanning.SECTION_COLUMNS), np.int64), np.empty(size, np.int64)
        outputs = _NO_OUTPUTS
        if self._outputs:
            outputs = np.zeros((size, 2), np.int64)
            outputs[list(self._outputs)] = [(output.address, output.size) for output in self._outputs.values()]
        count, records = walking.find_sections(self._table, self._batches, outputs, sections, chosen)
        return sections[:count], chosen[:count], records

    def positions(self) -> list[int]:
        """By slice, the offset behind its last good batch, whether or not that held any rows."""
        if not self._is_all_good:
            walking.find_positions(self._table, self._batches)
        positions: list[int] = self._table[:, walking.POSITION].tolist()
        return positions

    def memory(self) -> tuple[list[Any], dict[int, int], bool]:
        """What has to stay while rows of the sections do: buffers, bytes by tag, and whether the answer is needed."""
        buffers: list[Any] = []
        sizes: dict[int, int] = {}
        for place, count in enumerate(self._table[:, walking.IN_PLACE].tolist()):
            if count:
                buffers.append(self._memory[place])
                _add(sizes, self._tags[place], len(self._slices[place].records))
        is_needed = bool(buffers)
        for index, output in self._outputs.items():
            buffers.append(output)
            _add(sizes, self._tags[int(self._batches[index, walking.SLICE])], output.size)
        return buffers, sizes, is_needed


def _aborted(aborted: Iterable[tuple[int, int]], batches: list[list[int]]) -> Iterator[int]:
    """Which of a partition's batches belong to these transactions: from their first offset up to their marker."""
    waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
    open_producers: set[int] = set()
    for index, batch in enumerate(batches):
        while waiting and waiting[-1][1] <= batch[walking.BASE_OFFSET] + batch[walking.LAST_DELTA]:
            open_producers.add(waiting.pop()[0])
        if batch[walking.ATTRIBUTES] & CONTROL:
            open_producers.discard(batch[walking.PRODUCER_ID])
        elif batch[walking.ATTRIBUTES] & TRANSACTIONAL and batch[walking.PRODUCER_ID] in open_producers:
            yield index


def _add(sizes: dict[int, int], tag: int, size: int) -> None:
    sizes[tag] = sizes.get(tag, 0) + size
