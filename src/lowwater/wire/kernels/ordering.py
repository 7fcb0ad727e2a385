"""Which rows go next: each run of rows is sorted once, when it comes; then the heads of all runs are merged."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from lowwater.wire.kernels.compiling import I64, TABLE, U8, compiled, copy_bytes, int_at, long_at
from lowwater.wire.kernels.rows import KEY, OFFSET, ROW_BYTES, ROWS, SIZE, TAG

BY_TIMESTAMP, BY_PARTITION = range(2)
NO_CLOCK = -(1 << 63)  # of a partition of which nothing came yet
END_KEY = (1 << 63) - 1
NO_TIMESTAMP = -1

# Columns of a run: where its rows lie and in which order, and which of them are still there.
ROWS_AT, ORDER_AT, HEAD, END, LEFT_BYTES = range(5)
RUN_COLUMNS = 5


@compiled(types.void(types.int64, types.int64, ROWS, I64, I64, I64, I64))
def stamp(order: int, created_ms: int, rows: Any, clocks: Any, ends: Any, rows_of: Any, future_of: Any) -> None:
    """The key by which each row is ordered; the clock of its partition (by tag) goes on with it.

    A row without a timestamp has that of the clock. One that claims to be of the future, although it was there at the
    beginning, does not move it. By partition, keys never fall: no record overtakes another of its partition.
    """
    for place in range(rows.shape[0]):
        row = rows[place]
        tag = row.tag
        timestamp = row.timestamp
        clock = clocks[tag]
        rows_of[tag] += 1
        if timestamp > created_ms and row.offset < ends[tag]:
            future_of[tag] += 1
            row.key = timestamp
            if order == 1:
                clocks[tag] = max(clock, -1)
                row.key = clocks[tag]
            continue
        if timestamp == -1:
            timestamp = -1 if clock == -9223372036854775808 else clock
        clock = max(clock, timestamp)
        clocks[tag] = clock
        row.key = clock if order == 1 else timestamp


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


@compiled(types.UniTuple(types.int64, 3)(TABLE, I64, types.int64, types.int64, types.int64, types.int64, I64, ROWS))
def merge(
    runs: Any,
    ranks: Any,
    mark_key: int,
    mark_rank: int,
    bytes_max: int,
    newest_key: int,
    left_rows: Any,
    rows: Any,
) -> tuple[int, int, int]:
    """Take rows in order from the runs, up to the mark, as many as there is room for and `bytes_max` allows.

    Returns how many, how many of them are late (older than one that went before, now or earlier, which was stamped
    `newest_key`), and the newest key now. `ranks` (by tag) and offsets order rows of the same key.
    """
    run_count = runs.shape[0]
    heads = np.empty(run_count, np.int64)
    keys = np.empty(run_count, np.int64)
    head_ranks = np.empty(run_count, np.int64)
    offsets = np.empty(run_count, np.int64)
    heap = np.empty(run_count, np.int64)
    count = 0
    for run in range(run_count):
        if runs[run, 2] >= runs[run, 3]:
            continue
        head = runs[run, 0] + ROW_BYTES * long_at(runs[run, 1] + 8 * runs[run, 2])
        heads[run] = head
        keys[run] = long_at(head + KEY)
        head_ranks[run] = ranks[int_at(head + TAG)]
        offsets[run] = long_at(head + OFFSET)
        heap[count] = run
        count += 1
    for place in range(count // 2 - 1, -1, -1):
        sink(heap, count, place, keys, head_ranks, offsets)
    target = rows.ctypes.data
    taken = late = 0
    total = numba.int64(0)
    while count and taken < rows.shape[0]:
        run = heap[0]
        key = keys[run]
        if key > mark_key or (key == mark_key and head_ranks[run] > mark_rank):
            break
        head = heads[run]
        size = int_at(head + SIZE)
        if taken and size > bytes_max - total:
            break
        total += size
        if key < newest_key:
            late += 1
        else:
            newest_key = key
        left_rows[int_at(head + TAG)] += 1
        copy_bytes(target + ROW_BYTES * taken, head, ROW_BYTES)
        taken += 1
        runs[run, 4] -= size
        runs[run, 2] += 1
        if runs[run, 2] < runs[run, 3]:
            head = runs[run, 0] + ROW_BYTES * long_at(runs[run, 1] + 8 * runs[run, 2])
            heads[run] = head
            keys[run] = long_at(head + KEY)
            head_ranks[run] = ranks[int_at(head + TAG)]
            offsets[run] = long_at(head + OFFSET)
        else:
            count -= 1
            heap[0] = heap[count]
        if count > 1:
            sink(heap, count, 0, keys, head_ranks, offsets)
    return taken, late, newest_key


@compiled(types.void(TABLE, I64))
def lowest_offsets(runs: Any, lowest: Any) -> None:
    """Lower each tag's offset to the first that is still in the runs."""
    for run in range(runs.shape[0]):
        for place in range(runs[run, 2], runs[run, 3]):
            row = runs[run, 0] + ROW_BYTES * long_at(runs[run, 1] + 8 * place)
            tag = int_at(row + TAG)
            lowest[tag] = min(lowest[tag], long_at(row + OFFSET))


@compiled(types.void(ROWS, U8))
def repack(rows: Any, data: Any) -> None:
    """Copy the bytes of these rows into a buffer of their own, and let their places be there."""
    target = data.ctypes.data
    for place in range(rows.shape[0]):
        copy_bytes(target, rows[place].key_at, rows[place].size)
        rows[place].key_at = target
        target += rows[place].size
