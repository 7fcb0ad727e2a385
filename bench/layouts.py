"""Topics for readers: how records lie over partitions and time, and how they come into a broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench import frames, replay
from bench.subjects import Subject
from lowwater.client.outgoing import OutgoingRows
from lowwater.wire import compression

BALANCED, SKEWED, DISJOINT = "balanced", "skewed 8:4:2:1", "disjoint in time"
KEY_BYTES = 10
BATCH_BYTES = 100_000
SLICE_ROWS = 500_000
_WEIGHTS = (8, 4, 2, 1)
_LETTERS = np.frombuffer(b"0123456789abcdef", np.uint8)
WORDS, WORD_BYTES = 1024, 8


@dataclass(frozen=True, slots=True)
class Layout:
    """`records` of `record_bytes` (key and value) over `partitions`, one a millisecond."""

    records: int
    record_bytes: int = 100
    partitions: int = 4
    shape: str = BALANCED
    codec: int = compression.NONE

    def __str__(self) -> str:
        size = f"{self.record_bytes} B" if self.record_bytes < 1000 else f"{self.record_bytes // 1000} KB"
        codec = ", lz4" if self.codec == compression.LZ4 else ""
        return f"{size}, {self.partitions} partitions, {self.shape}{codec}"

    def partition_of(self, rows: Any) -> Any:
        """The partition of each row, by its place in time."""
        if self.shape == BALANCED:
            return rows % self.partitions
        if self.shape == DISJOINT:
            return rows * self.partitions // self.records
        shares = np.repeat(np.arange(self.partitions), [_WEIGHTS[one % 4] for one in range(self.partitions)])
        return np.random.default_rng(1).permutation(shares)[rows % len(shares)]


def fill(subject: Subject, topic: str, layout: Layout) -> None:
    """Write the records, which all are of the past."""
    first_ms = time.time_ns() // 1_000_000 - layout.records - 60_000
    for first in range(0, layout.records, SLICE_ROWS):
        rows = np.arange(first, min(first + SLICE_ROWS, layout.records))
        prebuilt = list(_requests(topic, layout, rows, first_ms))
        replay.produce(subject.port, prebuilt, len(prebuilt))


def _requests(topic: str, layout: Layout, rows: Any, first_ms: int) -> Iterator[frames.ProduceFrame]:
    outgoing = OutgoingRows(table(len(rows), layout.record_bytes, rows + first_ms), now_ms=0)
    partition_of = layout.partition_of(rows)
    for partition in range(layout.partitions):
        chosen, first = np.flatnonzero(partition_of == partition), 0
        while first < len(chosen):
            batch = outgoing.encode(chosen, first, bytes_max=BATCH_BYTES, codec=layout.codec)
            yield frames.produce(topic, partition, bytes(batch.data), batch.rows, acks=1)
            first += batch.rows


def table(records: int, record_bytes: int, timestamps: Any) -> Any:
    """Keys that count, values of words out of a vocabulary: lz4 makes a half of them, as of much that is sent."""
    chance, size = np.random.default_rng(records), records * (record_bytes - KEY_BYTES)
    words = _LETTERS[chance.integers(0, len(_LETTERS), (WORDS, WORD_BYTES), np.uint8)]
    values = words[chance.integers(0, WORDS, -(-size // WORD_BYTES))].ravel()[:size]
    keys = np.char.mod(f"%0{KEY_BYTES}d", np.arange(records)).astype(f"S{KEY_BYTES}")
    return pa.RecordBatch.from_pydict(
        {
            "key": _binary(keys.view(np.uint8), KEY_BYTES),
            "value": _binary(values, record_bytes - KEY_BYTES),
            "timestamp": pa.array(timestamps, pa.timestamp("ms", "UTC")),
        }
    )


def _binary(data: Any, width: int) -> Any:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(width), len(data) // width, buffers).cast(pa.binary())
