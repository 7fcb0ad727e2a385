"""Control batches: one record that no consumer is given, which says how a producer's transaction ended."""

from __future__ import annotations

import struct
from typing import NamedTuple

from lowwater.types import Buffer
from lowwater.wire.records import CONTROL, TRANSACTIONAL, BatchHeader, CorruptBatch, Record, build_batch, read_records

ABORT, COMMIT = 0, 1

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class EndMarker(NamedTuple):
    """How a transaction ended, and in which epoch of its coordinator that was said."""

    commit: bool
    coordinator_epoch: int


def build_end_marker(
    producer_id: int, producer_epoch: int, commit: bool, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """The control batch that ends this producer's transaction."""
    key = _KEY.pack(_VERSION, COMMIT if commit else ABORT)
    return build_batch(
        [Record(0, timestamp, key, _VALUE.pack(_VERSION, coordinator_epoch))],
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def read_end_marker(batch: Buffer, header: BatchHeader) -> EndMarker | None:
    """What the control batch says; None when it is of another kind, or holds nothing any more."""
    if not header.is_control or not header.record_count:
        return None
    record = next(read_records(batch))
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptBatch(f"a control record without a kind at {record.offset}")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptBatch(f"a control record of version {version} at {record.offset}")
    if kind not in (ABORT, COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptBatch(f"the end of a transaction without a coordinator epoch at {record.offset}")
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndMarker(kind == COMMIT, coordinator_epoch)
