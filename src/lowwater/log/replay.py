"""What producers did, read from the batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from lowwater.errors import WireError
from lowwater.log.aborted import AbortedTransaction, AbortedTransactions
from lowwater.log.batches import DamagedBatchError, headers
from lowwater.log.producers import Producers
from lowwater.log.segment import Segment
from lowwater.log.snapshots import newest_snapshot, read_snapshot
from lowwater.ports import Disk
from lowwater.wire.control import EndMarker, read_end_marker
from lowwater.wire.records import NO_PRODUCER_ID, BatchHeader, crc_ok

logger = logging.getLogger(__name__)


def replay(
    producers: Producers, segments: list[Segment], start: int, end: int, now_ms: int
) -> list[AbortedTransaction]:
    """Add the batches in [start, end); return the transactions aborted there.

    Damage ends it for a segment: what cannot be read cannot be repeated either.
    """
    aborted: list[AbortedTransaction] = []
    for segment in segments:
        if segment.next_offset <= start or segment.base_offset >= end or not segment.size:
            continue
        try:
            for batch, header in _batches(segment, start, end):
                ended = _note(producers, batch, header, now_ms)
                if ended is not None:
                    aborted.append(ended)
        except DamagedBatchError as error:
            _lose_ends(producers, segment.path, error)
    return aborted


def _batches(segment: Segment, start: int, end: int) -> Iterator[tuple[memoryview, BatchHeader]]:
    view = segment.handle.mapped(segment.size)
    begin = segment.index.position_before(start - segment.base_offset) if start > segment.base_offset else 0
    for position, header in headers(view, begin, segment.size):
        if start <= header.base_offset < end:
            yield view[position : position + header.size], header


def _note(producers: Producers, batch: memoryview, header: BatchHeader, now_ms: int) -> AbortedTransaction | None:
    if producers.first_open >= 0 and not crc_ok(batch, header):
        _lose_ends(producers, f"offset {header.base_offset}", WireError("the batch does not match its CRC"))
    elif header.is_control and header.producer_id != NO_PRODUCER_ID:
        marker = marker_in(batch, header)
        if marker is not None:
            return producers.end(header, marker, header.base_offset, header.max_timestamp, now_ms)
    elif header.producer_id >= 0:
        producers.note(header, header.base_offset, header.max_timestamp, now_ms, header.has_log_append_time)
    return None


def _lose_ends(producers: Producers, where: str, error: Exception) -> None:
    """What is damaged may have been a marker."""
    if producers.first_open >= 0:
        logger.error("%s: %s; how transactions from offset %d on ended is unknown", where, error, producers.first_open)
        producers.lose_ends()


def marker_in(batch: memoryview, header: BatchHeader) -> EndMarker | None:
    """What a stored control batch says; None when it is of another kind, or damaged."""
    try:
        return read_end_marker(batch, header) if crc_ok(batch, header) else None
    except WireError:
        return None


def find_aborted(disk: Disk, directory: str, segments: list[Segment], segment: Segment) -> None:
    """Find the transactions that were aborted in `segment`, one of `segments`."""
    producers = state_before(disk, directory, segments, segment.base_offset, 0)
    aborted = replay(producers, [segment], segment.base_offset, segment.next_offset, 0)
    segment.take_aborted(AbortedTransactions(aborted))


def state_before(disk: Disk, directory: str, segments: list[Segment], offset: int, now_ms: int) -> Producers:
    """Each segment begins with a snapshot. One that is lost is made from an older one and the batches since."""
    found = read_snapshot(disk, directory, offset)
    if found is not None:
        return found
    begin, producers = newest_snapshot(disk, directory, offset)
    replay(producers, segments, begin, offset, now_ms)
    return producers
