"""All logs in one file: after a clean stop the whole truth, after any other stop what was durable at that time."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from lowwater.log.atomic_file import read_sealed, replace_file, sealed
from lowwater.log.marks import LogKey
from lowwater.log.segment import Segment
from lowwater.log.sidecar import SegmentFacts
from lowwater.ports import Disk

CHECKPOINT_KIND = b"LWC1"
CLEAN_KIND = b"LWM1"

_FILE = struct.Struct(">16sII")
_KEY = struct.Struct(">16siI")
_LOG = struct.Struct(">qqqqqIIIB")
_SEGMENT = struct.Struct(">qqqqqqqqBq")
_EPOCH = struct.Struct(">iq")
_NO_SUM = -1
_SEALED, _HAS_ABORTS = 1, 2


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    base_offset: int
    created_ms: int
    facts: SegmentFacts
    is_sealed: bool
    whole_sum: int | None  # instead of an index, of a small segment

    @classmethod
    def of(cls, segment: Segment) -> SegmentEntry:
        return cls(segment.base_offset, segment.created_ms, segment.facts, segment.is_sealed, segment.whole_sum)

    def encode(self) -> bytes:
        whole_sum = _NO_SUM if self.whole_sum is None else self.whole_sum
        flags = _SEALED * self.is_sealed | _HAS_ABORTS * self.facts.has_aborts
        return _SEGMENT.pack(self.base_offset, self.created_ms, *self.facts[:6], flags, whole_sum)

    @classmethod
    def decode(cls, fields: tuple[int, ...]) -> SegmentEntry:
        base_offset, created_ms, *numbers, flags, whole_sum = fields
        facts = SegmentFacts._make((*numbers, bool(flags & _HAS_ABORTS)))
        known_sum = None if whole_sum == _NO_SUM else whole_sum
        return cls(base_offset, created_ms, facts, bool(flags & _SEALED), known_sum)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One log. `producers` is the state before `log_end`, or None when not all of it was durable."""

    log_start: int
    log_end: int
    flushed_end: int
    resume_at: int
    clean_until: int
    segments: list[SegmentEntry]
    epochs: list[tuple[int, int]]
    producers: bytes | None

    def encode(self) -> bytes:
        parts = [
            _LOG.pack(
                self.log_start,
                self.log_end,
                self.flushed_end,
                self.resume_at,
                self.clean_until,
                len(self.segments),
                len(self.epochs),
                len(self.producers or b""),
                self.producers is not None,
            )
        ]
        parts += [one.encode() for one in self.segments]
        parts += [_EPOCH.pack(*one) for one in self.epochs]
        parts.append(self.producers or b"")
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> LogEntry:
        """`data` comes from `encode`, under the checksum of the file."""
        log_start, log_end, flushed_end, resume_at, clean_until, *counts = _LOG.unpack_from(data)
        segments, epochs, producers, has_producers = counts
        position = _LOG.size
        middle = position + segments * _SEGMENT.size
        end = middle + epochs * _EPOCH.size
        return cls(
            log_start,
            log_end,
            flushed_end,
            resume_at,
            clean_until,
            [SegmentEntry.decode(fields) for fields in _SEGMENT.iter_unpack(data[position:middle])],
            [(epoch, start) for epoch, start in _EPOCH.iter_unpack(data[middle:end])],
            data[end : end + producers] if has_producers else None,
        )


EMPTY_ENTRY = LogEntry(0, 0, 0, 0, 0, [], [], None)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Encoded entries by log; decoded one by one when they are needed."""

    name: bytes  # random: ties the clean marker to this very checkpoint
    boot_count: int
    logs: dict[LogKey, bytes]


def write_checkpoint(disk: Disk, path: str, checkpoint: Checkpoint) -> None:
    """Durable on return."""
    replace_file(disk, path, sealed(CHECKPOINT_KIND, b"".join(_parts(checkpoint))))


def _parts(checkpoint: Checkpoint) -> Iterator[bytes]:
    yield _FILE.pack(checkpoint.name, checkpoint.boot_count, len(checkpoint.logs))
    for (topic_id, partition), entry in checkpoint.logs.items():
        yield _KEY.pack(topic_id, partition, len(entry))
        yield entry


def read_checkpoint(disk: Disk, path: str) -> Checkpoint | None:
    """None when it is missing or damaged."""
    data = read_sealed(disk, path, CHECKPOINT_KIND)
    if data is None:
        return None
    name, boot_count, count = _FILE.unpack_from(data)
    logs: dict[LogKey, bytes] = {}
    position = _FILE.size
    for _ in range(count):
        topic_id, partition, size = _KEY.unpack_from(data, position)
        position += _KEY.size
        logs[topic_id, partition] = data[position : position + size]
        position += size
    return Checkpoint(name, boot_count, logs)


def write_clean_marker(disk: Disk, path: str, checkpoint: Checkpoint) -> None:
    replace_file(disk, path, sealed(CLEAN_KIND, checkpoint.name))


def take_clean_marker(disk: Disk, path: str, checkpoint: Checkpoint | None) -> bool:
    """Whether the last stop was clean. The marker is removed; that is durable after a sync of its directory."""
    if not disk.exists(path):
        return False
    name = read_sealed(disk, path, CLEAN_KIND)
    disk.unlink(path)
    return checkpoint is not None and name == checkpoint.name
