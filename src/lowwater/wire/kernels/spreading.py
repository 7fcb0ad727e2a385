"""Rows of a whole table into batches of many partitions, in one go: rows are read in the order they lie in memory."""

# mypy: disable-error-code="no-untyped-call, call-arg, return-value"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from lowwater.wire.kernels.compiling import I32, compiled, inner, put_byte
from lowwater.wire.kernels.encoding import (
    OUTGOING_HEADERS,
    OUTGOING_ROWS,
    field_size,
    headers_size,
    varint_size,
    write_field,
    write_headers,
    write_varint,
)
from lowwater.wire.kernels.partitioning import UNPLACED

PLANNED_BATCH = np.dtype(
    [
        ("partition", np.int64),
        ("rows", np.int64),
        ("size", np.int64),  # of its records
        ("base_timestamp", np.int64),
        ("newest", np.int64),
        ("at", np.int64),  # where its next record is written
    ],
    align=True,
)
PLANNED_BATCHES = numba.from_dtype(PLANNED_BATCH)[::1]


@inner
def record_size(row: Any, headers: Any, timestamp_delta: int, offset_delta: int) -> int:
    """Bytes of a record behind its own length."""
    count = row.end_header - row.first_header
    size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(count)
    size += field_size(row.key_size) + field_size(row.value_size)
    return size + headers_size(headers, row.first_header, row.end_header) if count else size


@compiled(types.int64(OUTGOING_ROWS, OUTGOING_HEADERS, I32, types.int64, I32, PLANNED_BATCHES, I32, I32))
def plan(
    rows: Any, headers: Any, placed: Any, bytes_max: int, filling: Any, batches: Any, batch_of: Any, sizes: Any
) -> int:
    """Which batch each row goes to, and how large it is there; how many batches there are.

    `filling` is by partition the batch that is being filled, -1 at first. A batch has at most `bytes_max` of records,
    or one record.
    """
    count = 0
    for number in range(placed.shape[0]):
        partition = placed[number]
        if partition == UNPLACED:
            batch_of[number] = UNPLACED
            continue
        row = rows[number]
        at = filling[partition]
        size = whole = 0
        if at >= 0:
            size = record_size(row, headers, row.timestamp - batches[at].base_timestamp, batches[at].rows)
            whole = size + varint_size(size)
        if at < 0 or whole > bytes_max - batches[at].size:
            at = filling[partition] = count
            count += 1
            batches[at].partition, batches[at].rows, batches[at].size = partition, 0, 0
            batches[at].base_timestamp = batches[at].newest = row.timestamp
            size = record_size(row, headers, 0, 0)
            whole = size + varint_size(size)
        batches[at].rows += 1
        batches[at].size += whole
        batches[at].newest = max(batches[at].newest, row.timestamp)
        batch_of[number], sizes[number] = at, size
    return count


@compiled(types.void(OUTGOING_ROWS, OUTGOING_HEADERS, I32, I32, PLANNED_BATCHES))
def write(rows: Any, headers: Any, batch_of: Any, sizes: Any, batches: Any) -> None:
    """Write every row as a record at its batch's `at`, as `plan` measured it. `rows` of a batch counts up from 0."""
    for number in range(batch_of.shape[0]):
        if batch_of[number] == UNPLACED:
            continue
        row, batch = rows[number], batch_of[number]
        at = write_varint(batches[batch].at, sizes[number])
        put_byte(at, numba.uint8(0))
        at = write_varint(at + 1, row.timestamp - batches[batch].base_timestamp)
        at = write_varint(at, batches[batch].rows)
        at = write_field(at, row.key_at, row.key_size)
        at = write_field(at, row.value_at, row.value_size)
        if row.first_header == row.end_header:
            put_byte(at, numba.uint8(0))
            at += 1
        else:
            at = write_headers(at, headers, row.first_header, row.end_header)
        batches[batch].rows += 1
        batches[batch].at = at
