"""What producers did, read from the batches."""

from __future__ import annotations

import contextlib
import logging

from lowwater.errors import WireError
from lowwater.log.aborted import AbortedTransaction, AbortedTransactions
from lowwater.log.batches import DamagedBatchError, headers
from lowwater.log.producers import Producers
from lowwater.log.segment import Segment
from lowwater.log.snapshots import newest_snapshot, read_snapshot
from lowwater.ports import Disk
from lowwater.wire.control import EndMarker, read_end_marker
from lowwater.wire.records import BatchHeader, crc_ok

logger = logging.getLogger(__name__)


def replay(
    producers: Producers, segments: list[Segment], start: int, end: int, now_ms: int
) -> list[AbortedTransaction]:
    """Add the batches in [start, end); return the transactions aborted there.

    Damage ends it: what cannot be read cannot be repeated either.
    """
    aborted: list[AbortedTransaction] = []
    for segment in segments:
        if segment.next_offset <= start or segment.base_offset >= end or not segment.size:
            continue
        view = segment.handle.mapped(segment.size)
        begin = segment.index.position_before(start - segment.base_offset) if start > segment.base_offset else 0
        with contextlib.suppress(DamagedBatchError):
            for position, header in headers(view, begin, segment.size):
                if header.producer_id < 0 or not start <= header.base_offset < end:
                    continue
                ended = _note(producers, segment, view[position : position + header.size], header, now_ms)
                if ended is not None:
                    aborted.append(ended)
    return aborted


def _note(
    producers: Producers, segment: Segment, batch: memoryview, header: BatchHeader, now_ms: int
) -> AbortedTransaction | None:
    if not header.is_control:
        producers.note(header, header.base_offset, header.max_timestamp, now_ms, header.has_log_append_time)
        return None
    try:
        marker = marker_in(batch, header)
    except WireError as error:
        logger.error("%s: the end of a transaction at offset %d: %s", segment.path, header.base_offset, error)
        producers.lose_end(header.producer_id)
        return None
    if marker is None:
        return None
    return producers.end(header, marker, header.base_offset, header.max_timestamp, now_ms)


def marker_in(batch: memoryview, header: BatchHeader) -> EndMarker | None:
    """What a stored control batch says; WireError when it is damaged."""
    if not crc_ok(batch, header):
        raise WireError("the batch does not match its CRC")
    return read_end_marker(batch, header)


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
