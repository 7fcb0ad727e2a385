"""The batches of one answer: checked, decompressed, and without what a reader is not given.

Whatever is wrong with a batch ends its partition there, with an error that says where; the others are not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from crc32c import crc32c

from lowwater.client.errors import ClientError, CorruptRecordsError, RecordFormatError
from lowwater.client.slabs import Slabs
from lowwater.client.slices import FetchedSlice
from lowwater.client.unpacking import Unpacking
from lowwater.types import Buffer
from lowwater.wire import compression
from lowwater.wire.kernels import scanning, walking
from lowwater.wire.records import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    RECORD_SIZE_MIN,
    TRANSACTIONAL,
)

_BATCH_BYTES_GUESS = 4096
_ALL = 1 << 62
_DAMAGED = "read it again; if it stays so, the broker's copy is damaged, and reading can go on behind it"
_OLD = "a client of Kafka 0.11 or newer has to write these records anew"


class Answer:
    """What one Fetch brought, opened. Batches lie in the order of the slices, and so do the sections for `scan`."""

    def __init__(
        self,
        slices: Sequence[FetchedSlice],
        tags: Sequence[int],
        *,
        output_bytes_max: int,
        budget_bytes: int,
        slabs: Slabs | None = None,
    ) -> None:
        """One batch gives at most `output_bytes_max`; when all together gave `budget_bytes`, the rest has to wait."""
        self._slices = slices
        self._tags = np.array(tags, np.int64)
        self._fetch_offsets = np.array([one.fetch_offset for one in slices], np.int64)
        self._output_bytes_max = output_bytes_max
        self._budget = budget_bytes
        self._slabs = slabs or Slabs(kept_bytes_max=0)
        self._arrays = [_as_array(one.records) for one in slices]
        self._addresses = [_address(array) for array in self._arrays]
        self._outputs: dict[int, Any] = {}  # by batch, what was decompressed
        self._good_before = np.full(len(slices), _ALL, np.int64)  # by slice, its first batch that does not count
        self.errors: dict[int, ClientError] = {}
        self._batches = self._walk()
        self._is_wanted = self._find_wanted()
        self._look_into()

    # -- finding batches

    def _walk(self) -> Any:
        table = np.empty((len(self._slices), 2), np.int64)
        table[:, walking.SLICE_ADDRESS] = self._addresses
        table[:, walking.SLICE_SIZE] = [len(one.records) for one in self._slices]
        room = len(table) + int(table[:, walking.SLICE_SIZE].sum()) // _BATCH_BYTES_GUESS
        found = room + 1
        while found > room:
            room = max(room, found)
            batches = np.empty((room, walking.BATCH_COLUMNS), np.int64)
            positions = self._fetch_offsets.copy()
            faults = np.zeros(len(table), np.int32)
            found = walking.walk(table, batches, positions, faults)
        for place in np.flatnonzero(faults).tolist():
            self._refuse(place, int(faults[place]), int(positions[place]))
        return batches[:found]

    def _refuse(self, place: int, fault: int, offset: int) -> None:
        where = self._slices[place].partition._asdict()
        if fault in (walking.OLD_FORMAT, walking.UNKNOWN_FORMAT):
            advice = _OLD if fault == walking.OLD_FORMAT else ""
            self.errors[place] = RecordFormatError(walking.FAULTS[fault], offset=offset, advice=advice, **where)
        else:
            self.errors[place] = CorruptRecordsError(walking.FAULTS[fault], offset=offset, advice=_DAMAGED, **where)

    def _find_wanted(self) -> Any:
        """Which batches may hold rows: no control batches, nothing that was aborted, nothing that was read before."""
        batches = self._batches
        places = batches[:, walking.SLICE]
        wanted = (batches[:, walking.ATTRIBUTES] & CONTROL) == 0
        wanted &= batches[:, walking.BASE_OFFSET] + batches[:, walking.LAST_DELTA] >= self._fetch_offsets[places]
        wanted &= batches[:, walking.RECORDS] > 0
        for place, one in enumerate(self._slices):
            if one.aborted:
                first, end = np.searchsorted(places, (place, place + 1)).tolist()
                wanted[[first + index for index in _aborted(one.aborted, batches[first:end].tolist())]] = False
        return wanted

    # -- looking into them

    def _look_into(self) -> None:
        """Checksums first: nothing else is believed of a batch before."""
        self._check_sums()
        self._check_counts()
        compressed = np.flatnonzero(self._is_wanted & self._good() & self._is_compressed()).tolist()
        if compressed:
            self._decompress(compressed)

    def _check_sums(self) -> None:
        views = [memoryview(one.records) for one in self._slices]
        batches = self._batches
        places = batches[:, walking.SLICE]
        starts = batches[:, walking.ADDRESS] - np.array(self._addresses, np.int64)[places]
        ends = starts + batches[:, walking.SIZE]
        rows = zip(places.tolist(), (starts + CRC_START).tolist(), ends.tolist(), strict=True)
        sums = np.array([crc32c(views[place][start:end]) for place, start, end in rows], np.int64)
        for index in np.flatnonzero(sums != batches[:, walking.CRC]).tolist():
            self._spoil(index, "the checksum of a batch is wrong")

    def _check_counts(self) -> None:
        """Room is made for as many records as a batch claims, so it must not claim more than can be in it."""
        sizes = self._batches[:, walking.SIZE] - HEADER_SIZE
        claims_too_many = self._batches[:, walking.RECORDS] > sizes // RECORD_SIZE_MIN
        for index in np.flatnonzero(claims_too_many & ~self._is_compressed() & self._is_wanted).tolist():
            self._refuse_count(index, int(sizes[index]))

    def _refuse_count(self, index: int, size: int) -> None:
        self._spoil(index, f"a batch claims {self._batches[index, walking.RECORDS]} records in {size} bytes")

    def _is_compressed(self) -> Any:
        return (self._batches[:, walking.ATTRIBUTES] & CODEC_MASK) != 0

    def _decompress(self, compressed: list[int]) -> None:
        unpacking = Unpacking(
            self._slabs,
            [self._packed(*batch) for batch in self._batches[compressed].tolist()],
            output_bytes_max=self._output_bytes_max,
            room_bytes_max=max(self._budget, 0),
        )
        for number, index in enumerate(compressed):
            place = int(self._batches[index, walking.SLICE])
            if index >= self._good_before[place]:
                continue
            if self._budget <= 0:
                # It comes again, when there is room, and with it what is wrong behind it.
                self._good_before[place] = index
                self.errors.pop(place, None)
                continue
            try:
                self._unpacked(index, unpacking[number])
            except compression.CompressionError as error:
                self._spoil(index, f"a batch cannot be decompressed: {error}")

    def _packed(self, place: int, address: int, size: int, *fields: int) -> tuple[int, memoryview]:
        """The codec and the body of a batch."""
        start = address - self._addresses[place]
        body = memoryview(self._slices[place].records)[start + HEADER_SIZE : start + size]
        return fields[walking.ATTRIBUTES - walking.BASE_OFFSET] & CODEC_MASK, body

    def _unpacked(self, index: int, output: Buffer) -> None:
        self._budget -= len(output)
        if self._batches[index, walking.RECORDS] > len(output) // RECORD_SIZE_MIN:
            self._refuse_count(index, len(output))
        else:
            self._outputs[index] = _as_array(output)

    def _spoil(self, index: int, what: str) -> None:
        """Nothing of the slice counts from this batch on. The first fault of a slice is the one that is told."""
        place = int(self._batches[index, walking.SLICE])
        if index >= self._good_before[place]:
            return
        offset = max(int(self._batches[index, walking.BASE_OFFSET]), self._slices[place].fetch_offset)
        where = self._slices[place].partition._asdict()
        self._good_before[place] = index
        self.errors[place] = CorruptRecordsError(what, offset=offset, advice=_DAMAGED, **where)

    # -- what comes of it

    def _good(self) -> Any:
        return np.arange(len(self._batches)) < self._good_before[self._batches[:, walking.SLICE]]

    def sections(self) -> tuple[Any, Any]:
        """For `scan`, and which batch each is."""
        chosen = np.flatnonzero(self._is_wanted & self._good())
        batches = self._batches[chosen]
        attributes = batches[:, walking.ATTRIBUTES]
        places = batches[:, walking.SLICE]
        sections = np.empty((len(chosen), scanning.SECTION_COLUMNS), np.int64)
        sections[:, scanning.ADDRESS] = batches[:, walking.ADDRESS] + HEADER_SIZE
        sections[:, scanning.SIZE] = batches[:, walking.SIZE] - HEADER_SIZE
        sections[:, scanning.BASE_OFFSET] = batches[:, walking.BASE_OFFSET]
        sections[:, scanning.BASE_TIMESTAMP] = batches[:, walking.BASE_TIMESTAMP]
        append_time = np.where(
            attributes & LOG_APPEND_TIME, batches[:, walking.MAX_TIMESTAMP], scanning.KEEP_CREATE_TIME
        )
        sections[:, scanning.APPEND_TIMESTAMP] = append_time
        sections[:, scanning.RECORDS] = batches[:, walking.RECORDS]
        sections[:, scanning.LAST_DELTA] = batches[:, walking.LAST_DELTA]
        sections[:, scanning.FIRST_WANTED] = self._fetch_offsets[places]
        sections[:, scanning.TAG] = self._tags[places]
        for row in np.flatnonzero(attributes & CODEC_MASK).tolist():
            output = self._outputs[int(chosen[row])]
            sections[row, : scanning.SIZE + 1] = _address(output), len(output)
        return sections, chosen

    def spoil(self, index: int, fault: int) -> None:
        """`scan` found this batch not to be right."""
        self._spoil(index, f"a record cannot be read: {scanning.FAULTS[fault]}")

    def positions(self) -> list[int]:
        """By slice, the offset behind its last good batch, whether or not that held any rows."""
        positions = self._fetch_offsets.copy()
        good = self._batches[self._good()]
        behind = good[:, walking.BASE_OFFSET] + good[:, walking.LAST_DELTA] + 1
        np.maximum.at(positions, good[:, walking.SLICE], behind)
        return list(map(int, positions))

    def memory(self, section_batches: Any) -> tuple[list[Any], dict[int, int], bool]:
        """What has to stay while rows of these batches do: arrays, bytes by tag, and whether the answer is needed."""
        in_place = section_batches[~self._is_compressed()[section_batches]]
        places = sorted({*self._batches[in_place, walking.SLICE].tolist()})
        arrays = [self._arrays[place] for place in places]
        sizes: dict[int, int] = {}
        for place in places:
            _add(sizes, int(self._tags[place]), len(self._arrays[place]))
        for index, output in self._outputs.items():
            _add(sizes, int(self._tags[self._batches[index, walking.SLICE]]), len(output))
        return arrays + list(self._outputs.values()), sizes, bool(places)


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


def _as_array(buffer: Buffer) -> Any:
    return np.frombuffer(buffer, np.uint8) if len(buffer) else np.zeros(1, np.uint8)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
