"""Records of a Fetch answer as Python values, without Arrow: for a few of them, or where the extra is not installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lowwater.client.errors import CorruptRecordsError, RecordFormatError
from lowwater.client.slices import FetchedSlice
from lowwater.wire.compression import CompressionError
from lowwater.wire.records import (
    HEADER_SIZE,
    MAGIC_POSITION,
    BatchHeader,
    CorruptBatch,
    crc_ok,
    is_plausible,
    read_records,
    read_times,
)

CREATE_TIME, LOG_APPEND_TIME = 0, 1
_MAGIC = 2


class Row(NamedTuple):
    """`timestamp_ms` is -1 where there is none; header names are as they came, undecodable bytes escaped."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def rows_of(one: FetchedSlice) -> Iterator[Row]:
    """Its rows from `fetch_offset` on, without control records and what was aborted.

    CorruptRecordsError or RecordFormatError, behind the rows before it, for a batch that cannot be read.
    """
    topic, partition = one.partition
    aborted = _Aborted(one.aborted)
    for batch, header in _batches(one):
        if aborted.has(header) or header.is_control or header.last_offset < one.fetch_offset:
            continue
        stamped = LOG_APPEND_TIME if header.has_log_append_time else CREATE_TIME
        try:
            if not crc_ok(batch, header):
                raise CorruptBatch("the checksum of a batch is wrong")
            for offset, timestamp_ms, key, value, headers in read_records(batch):
                if offset >= one.fetch_offset:
                    yield Row(topic, partition, offset, timestamp_ms, stamped, key, value, headers)
        except (CorruptBatch, CompressionError) as error:
            where = max(header.base_offset, one.fetch_offset)
            raise CorruptRecordsError(str(error), topic=topic, partition=partition, offset=where) from error


def times_of(one: FetchedSlice) -> Iterator[tuple[int, int]]:
    """(offset, timestamp) of the same rows, batch by batch as they are asked for, and without keys and values."""
    topic, partition = one.partition
    aborted = _Aborted(one.aborted)
    for batch, header in _batches(one):
        if aborted.has(header) or header.is_control or header.last_offset < one.fetch_offset:
            continue
        try:
            if not crc_ok(batch, header):
                raise CorruptBatch("the checksum of a batch is wrong")
            for offset, timestamp_ms in read_times(batch):
                if offset >= one.fetch_offset:
                    yield offset, timestamp_ms
        except (CorruptBatch, CompressionError) as error:
            where = max(header.base_offset, one.fetch_offset)
            raise CorruptRecordsError(str(error), topic=topic, partition=partition, offset=where) from error


def behind(one: FetchedSlice) -> int:
    """The offset behind its last whole batch, from where to fetch on; `fetch_offset` when it has none."""
    position = one.fetch_offset
    for _, header in _batches(one):
        position = max(position, header.next_offset)
    return position


def _batches(one: FetchedSlice) -> Iterator[tuple[memoryview, BatchHeader]]:
    data = memoryview(one.records)
    position, offset = 0, one.fetch_offset
    # The last batch may be cut off: it comes whole with the next Fetch.
    while len(data) - position >= HEADER_SIZE:
        if data[position + MAGIC_POSITION] != _MAGIC:
            what = f"records are stored in format {data[position + MAGIC_POSITION]}, which is not read here"
            raise RecordFormatError(what, topic=one.partition.topic, partition=one.partition.partition, offset=offset)
        header = BatchHeader.parse(data, position)
        if not is_plausible(header):
            what = "the header of a batch contradicts itself"
            raise CorruptRecordsError(what, topic=one.partition.topic, partition=one.partition.partition, offset=offset)
        if position + header.size > len(data):
            return
        yield data[position : position + header.size], header
        position, offset = position + header.size, header.next_offset


class _Aborted:
    """Which batches of a partition are part of aborted transactions: from their first offset up to their marker."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
        self._open: set[int] = set()

    def has(self, header: BatchHeader) -> bool:
        """To be asked of every batch in order."""
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            self._open.add(self._waiting.pop()[0])
        if header.is_control:
            self._open.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._open
