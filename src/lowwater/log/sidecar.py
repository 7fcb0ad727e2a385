"""The files beside a `.log`: Kafka's two indexes, and `.sums`, which vouches for all three.

None of them is synced and none is needed: what is missing or damaged is rebuilt from the batches.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from crc32c import crc32c

from lowwater.errors import StorageError
from lowwater.log.atomic_file import read_sealed, sealed
from lowwater.log.index import SegmentIndex
from lowwater.ports import Disk

SUMS_KIND = b"LWS1"
INDEX_SUFFIX, TIME_INDEX_SUFFIX, SUMS_SUFFIX = ".index", ".timeindex", ".sums"
SIDECAR_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, SUMS_SUFFIX)
_SUMS = struct.Struct(">qqqqqqBIIIII")
_DURABLE, _HAS_ABORTS = 1, 2


class SegmentFacts(NamedTuple):
    """What must be known of a segment without reading it."""

    size: int
    next_offset: int
    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int
    modified_ms: int
    has_aborts: bool = False  # whether a transaction was aborted in it


@dataclass(frozen=True, slots=True)
class Sidecar:
    facts: SegmentFacts
    is_durable: bool  # the log was synced before this was written
    index: SegmentIndex


def write_sidecar(
    disk: Disk,
    stem: str,
    base_offset: int,
    facts: SegmentFacts,
    index: SegmentIndex,
    *,
    is_durable: bool,
    sync: bool = False,
) -> None:
    """`stem` is the path without its suffix."""
    offset_file = index.offset_file()
    time_file = index.time_file(facts.max_timestamp, facts.max_timestamp_offset - base_offset)
    interval_sums = index.entries.sums
    counts = (crc32c(offset_file), crc32c(time_file), index.chain, index.unindexed_bytes, len(interval_sums))
    flags = _DURABLE * is_durable | _HAS_ABORTS * facts.has_aborts
    sums = _SUMS.pack(*facts[:6], flags, *counts) + interval_sums.tobytes()
    for suffix, content in zip(SIDECAR_SUFFIXES, (offset_file, time_file, sealed(SUMS_KIND, sums)), strict=True):
        _write(disk, stem + suffix, content, sync=sync)


def read_sidecar(disk: Disk, stem: str) -> Sidecar | None:
    """None when a part is missing or does not fit the others."""
    sums = read_sealed(disk, stem + SUMS_SUFFIX, SUMS_KIND)
    if sums is None or len(sums) < _SUMS.size:
        return None
    *_, offset_crc, time_crc, chain, unindexed_bytes, count = _SUMS.unpack_from(sums)
    try:
        offset_file, time_file = disk.read(stem + INDEX_SUFFIX), disk.read(stem + TIME_INDEX_SUFFIX)
    except OSError:
        return None
    if crc32c(offset_file) != offset_crc or crc32c(time_file) != time_crc or len(offset_file) != 8 * count:
        return None
    index = SegmentIndex.from_files(offset_file, time_file, sums[_SUMS.size :])
    index.chain = chain
    index.unindexed_bytes = unindexed_bytes
    index.doubt_everything()
    return Sidecar(*_facts_in(sums), index)


def durable_facts(disk: Disk, stem: str) -> SegmentFacts | None:
    """What `.sums` says of a log that was synced before it; None when there is no such file."""
    sums = read_sealed(disk, stem + SUMS_SUFFIX, SUMS_KIND)
    if sums is None or len(sums) < _SUMS.size:
        return None
    facts, is_durable = _facts_in(sums)
    return facts if is_durable else None


def _facts_in(sums: bytes) -> tuple[SegmentFacts, bool]:
    *facts, flags, _, _, _, _, _ = _SUMS.unpack_from(sums)
    return SegmentFacts._make((*facts, bool(flags & _HAS_ABORTS))), bool(flags & _DURABLE)


def _write(disk: Disk, path: str, content: bytes, *, sync: bool) -> None:
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        if file.pwrite(content, 0) != len(content):
            raise StorageError(f"{path} cannot be written: no space left", retriable=True)
        if sync:
            file.sync()
    finally:
        file.close()
