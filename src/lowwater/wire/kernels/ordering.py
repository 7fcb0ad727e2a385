"""Which rows go next: each run of rows is sorted once, when it comes; then the heads of all runs are merged."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from lowwater.wire.kernels.compiling import I8, I32, I64, TABLE, U8, compiled, copy_bytes, int_at, long_at, tiny_at

BY_TIMESTAMP, BY_PARTITION = range(2)
NO_CLOCK = -(1 << 63)  # of a partition of which nothing came yet
END_KEY = (1 << 63) - 1
NO_TIMESTAMP = -1

# Columns of a run: where its rows lie, by column, then which of them are still there.
(
    KEYS,
    ORDER,
    OFFSETS,
    TIMESTAMPS,
    TYPES,
    TAGS,
    KEY_AT,
    KEY_SIZE,
    VALUE_AT,
    VALUE_SIZE,
    HEADERS_AT,
    HEADER_COUNT,
    SIZES,
    HEAD,
    END,
    LEFT_BYTES,
) = range(16)
RUN_COLUMNS = 16


@compiled(types.void(types.int64, types.int64, I64, I64, I32, I32, I64, I64, I64, I64, I64, I64))
def stamp(
    order: int,
    created_ms: int,
    offsets: Any,
    timestamps: Any,
    tags: Any,
    sizes: Any,
    clocks: Any,
    ends: Any,
    keys: Any,
    rows_of: Any,
    bytes_of: Any,
    future_of: Any,
) -> None:
    """The key by which each row is ordered; the clock of its partition (by tag) goes on with it.

    A row without a timestamp has that of the clock. One that claims to be of the future, although it was there at the
    beginning, does not move it. By partition, keys never fall: no record overtakes another of its partition.
    """
    for row in range(offsets.shape[0]):
        tag = tags[row]
        timestamp = timestamps[row]
        clock = clocks[tag]
        rows_of[tag] += 1
        bytes_of[tag] += sizes[row]
        if timestamp > created_ms and offsets[row] < ends[tag]:
            future_of[tag] += 1
            keys[row] = timestamp
            if order == 1:
                clocks[tag] = max(clock, -1)
                keys[row] = clocks[tag]
            continue
        if timestamp == -1:
            timestamp = -1 if clock == -9223372036854775808 else clock
        clock = max(clock, timestamp)
        clocks[tag] = clock
        keys[row] = clock if order == 1 else timestamp


@numba.njit(nogil=True, inline="always")
def is_before(one: int, other: int, keys: Any, ranks: Any, offsets: Any) -> bool:
    """Whether the head of a run goes before that of another."""
    if keys[one] != keys[other]:
        return bool(keys[one] < keys[other])
    if ranks[one] != ranks[other]:
        return bool(ranks[one] < ranks[other])
    return bool(offsets[one] < offsets[other])


@numba.njit(nogil=True)
def sink(heap: Any, count: int, place: int, keys: Any, ranks: Any, offsets: Any) -> None:
    """Put the run at this place of the heap where it belongs, below it."""
    run = heap[place]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and is_before(heap[child + 1], heap[child], keys, ranks, offsets):
            child += 1
        if not is_before(heap[child], run, keys, ranks, offsets):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = run


@compiled(
    types.UniTuple(types.int64, 3)(
        TABLE, I64, types.int64, types.int64, types.int64, types.int64, I64,
        I64, I64, I64, I8, I32, I64, I32, I64, I32, I64, I32, I32,
    )
)  # fmt: skip
def merge(
    runs: Any,
    ranks: Any,
    mark_key: int,
    mark_rank: int,
    bytes_max: int,
    newest_key: int,
    left_rows: Any,
    keys: Any,
    offsets: Any,
    timestamps: Any,
    timestamp_types: Any,
    tags: Any,
    key_at: Any,
    key_size: Any,
    value_at: Any,
    value_size: Any,
    headers_at: Any,
    header_count: Any,
    sizes: Any,
) -> tuple[int, int, int]:
    """Take rows in order from the runs, up to the mark, as many as there is room for and `bytes_max` allows.

    Returns how many, how many of them are late (older than one that went before, now or earlier, which was stamped
    `newest_key`), and the newest key now. `ranks` (by tag) and offsets order rows of the same key.
    """
    run_count = runs.shape[0]
    head_keys = np.empty(run_count, np.int64)
    head_ranks = np.empty(run_count, np.int64)
    head_offsets = np.empty(run_count, np.int64)
    head_rows = np.empty(run_count, np.int64)
    heap = np.empty(run_count, np.int64)
    count = 0
    for run in range(run_count):
        if runs[run, 13] >= runs[run, 14]:
            continue
        row = long_at(runs[run, 1] + 8 * runs[run, 13])
        head_rows[run] = row
        head_keys[run] = long_at(runs[run, 0] + 8 * row)
        head_ranks[run] = ranks[int_at(runs[run, 5] + 4 * row)]
        head_offsets[run] = long_at(runs[run, 2] + 8 * row)
        heap[count] = run
        count += 1
    for place in range(count // 2 - 1, -1, -1):
        sink(heap, count, place, head_keys, head_ranks, head_offsets)
    taken = late = 0
    total = numba.int64(0)
    while count and taken < offsets.shape[0]:
        run = heap[0]
        key = head_keys[run]
        if key > mark_key or (key == mark_key and head_ranks[run] > mark_rank):
            break
        row = head_rows[run]
        size = int_at(runs[run, 12] + 4 * row)
        if taken and size > bytes_max - total:
            break
        total += size
        if key < newest_key:
            late += 1
        else:
            newest_key = key
        tag = int_at(runs[run, 5] + 4 * row)
        left_rows[tag] += 1
        keys[taken] = key
        offsets[taken] = head_offsets[run]
        timestamps[taken] = long_at(runs[run, 3] + 8 * row)
        timestamp_types[taken] = tiny_at(runs[run, 4] + row)
        tags[taken] = tag
        key_at[taken] = long_at(runs[run, 6] + 8 * row)
        key_size[taken] = int_at(runs[run, 7] + 4 * row)
        value_at[taken] = long_at(runs[run, 8] + 8 * row)
        value_size[taken] = int_at(runs[run, 9] + 4 * row)
        headers_at[taken] = long_at(runs[run, 10] + 8 * row)
        header_count[taken] = int_at(runs[run, 11] + 4 * row)
        sizes[taken] = size
        taken += 1
        runs[run, 15] -= size
        runs[run, 13] += 1
        if runs[run, 13] < runs[run, 14]:
            row = long_at(runs[run, 1] + 8 * runs[run, 13])
            head_rows[run] = row
            head_keys[run] = long_at(runs[run, 0] + 8 * row)
            head_ranks[run] = ranks[int_at(runs[run, 5] + 4 * row)]
            head_offsets[run] = long_at(runs[run, 2] + 8 * row)
        else:
            count -= 1
            heap[0] = heap[count]
        if count > 1:
            sink(heap, count, 0, head_keys, head_ranks, head_offsets)
    return taken, late, newest_key


@compiled(types.void(TABLE, I64))
def lowest_offsets(runs: Any, lowest: Any) -> None:
    """Lower each tag's offset to the first that is still in the runs."""
    for run in range(runs.shape[0]):
        for place in range(runs[run, 13], runs[run, 14]):
            row = long_at(runs[run, 1] + 8 * place)
            tag = int_at(runs[run, 5] + 4 * row)
            lowest[tag] = min(lowest[tag], long_at(runs[run, 2] + 8 * row))


@compiled(types.void(I64, I64, I64, I32, U8))
def repack(key_at: Any, value_at: Any, headers_at: Any, sizes: Any, data: Any) -> None:
    """Copy the bytes of these rows into a buffer of their own, and let their places be there."""
    target = data.ctypes.data
    for row in range(sizes.shape[0]):
        copy_bytes(target, key_at[row], sizes[row])
        moved = target - key_at[row]
        key_at[row] += moved
        value_at[row] += moved
        headers_at[row] += moved
        target += sizes[row]
