"""Which rows go next: each run of rows is sorted once, when it comes; then the heads of all runs are merged."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return, return-value"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from lowwater.wire.kernels.compiling import I64, TABLE, U8, compiled, copy_bytes, inner, int_at, long_at, prefetch
from lowwater.wire.kernels.rows import KEY, OFFSET, ROW_BYTES, ROWS, SIZE, TAG

BY_TIMESTAMP, BY_PARTITION, BY_ARRIVAL = range(3)
NO_CLOCK = -(1 << 63)  # of a partition of which nothing came yet
END_KEY = (1 << 63) - 1
NO_TIMESTAMP = -1
_AHEAD = 8  # rows of a run lie apart, and which run is next shows when the key of its head is there

# Columns of a run: where its rows lie and in which order, and which of them are still there.
ROWS_AT, ORDER_AT, HEAD, END, LEFT_BYTES = range(5)
RUN_COLUMNS = 5


@compiled(types.UniTuple(types.int64, 2)(types.int64, types.int64, types.int64, ROWS, I64, I64, I64, I64, I64))
def stamp(
    order: int,
    created_ms: int,
    arrival: int,
    rows: Any,
    clocks: Any,
    ends: Any,
    rows_of: Any,
    future_of: Any,
    keys: Any,
) -> tuple[int, int]:
    """The key by which each row is ordered; the clock of its partition (by tag) goes on with it.

    A row without a timestamp has that of the clock. One that claims to be of the future, although it was there at the
    beginning, does not move it. By partition, keys never fall: no record overtakes another of its partition. By
    arrival, rows of an answer have its number. Returns the bytes of all rows, and how often keys fall.
    """
    size = falls = 0
    before = NO_CLOCK
    for place in range(rows.shape[0]):
        row = rows[place]
        tag, timestamp = row.tag, row.timestamp
        clock = clocks[tag]
        if timestamp > created_ms and row.offset < ends[tag]:
            future_of[tag] += 1
            if order == BY_PARTITION:
                timestamp = clock = max(clock, NO_TIMESTAMP)
        else:
            if timestamp == NO_TIMESTAMP and clock != NO_CLOCK:
                timestamp = clock
            clock = max(clock, timestamp)
            if order == BY_PARTITION:
                timestamp = clock
        key = arrival if order == BY_ARRIVAL else timestamp
        clocks[tag] = clock
        row.key = keys[place] = key
        rows_of[tag] += 1
        size += row.size
        falls += key < before
        before = key
    return size, falls


# The first row of a run that is still there.
RUN_HEAD: Any = numba.from_dtype(
    np.dtype([("at", np.int64), ("key", np.int64), ("rank", np.int64), ("offset", np.int64)], align=True)
)


@numba.njit(nogil=True, inline="always")
def find_head(heads: Any, run: int, runs: Any, ranks: Any, mark_key: int, mark_rank: int) -> bool:
    """Note the head of a run; whether it has one that the mark covers."""
    if runs[run, HEAD] >= runs[run, END]:
        return False
    at = runs[run, ROWS_AT] + ROW_BYTES * long_at(runs[run, ORDER_AT] + 8 * runs[run, HEAD])
    key, rank = long_at(at + KEY), ranks[int_at(at + TAG)]
    heads[run].at = at
    heads[run].key = key
    heads[run].rank = rank
    heads[run].offset = long_at(at + OFFSET)
    return bool(key < mark_key or (key == mark_key and rank <= mark_rank))


@numba.njit(nogil=True, inline="always")
def call_near(runs: Any, run: int) -> None:
    """A row of the run that will soon be its head."""
    soon = min(runs[run, HEAD] + _AHEAD, runs[run, END] - 1)
    prefetch(runs[run, ROWS_AT] + ROW_BYTES * long_at(runs[run, ORDER_AT] + 8 * soon))


@numba.njit(nogil=True, inline="always")
def is_before(one: int, other: int, heads: Any) -> bool:
    """Whether the head of a run goes before that of another."""
    if heads[one].key != heads[other].key:
        return bool(heads[one].key < heads[other].key)
    if heads[one].rank != heads[other].rank:
        return bool(heads[one].rank < heads[other].rank)
    return bool(heads[one].offset < heads[other].offset)


@inner
def sink(heap: Any, count: int, place: int, heads: Any) -> None:
    """Put the run at this place of the heap where it belongs, below it."""
    run = heap[place]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and is_before(heap[child + 1], heap[child], heads):
            child += 1
        if not is_before(heap[child], run, heads):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = run


@inner
def heap_up(heap: Any, heads: Any, runs: Any, ranks: Any, mark_key: int, mark_rank: int) -> int:
    """A heap of all runs of which something may go; how many they are."""
    count: Any = numba.int64(0)  # not a literal, for which callees would be compiled once more
    for run in range(runs.shape[0]):
        if find_head(heads, run, runs, ranks, mark_key, mark_rank):
            heap[count] = run
            count += 1
    for place in range(count // 2 - 1, -1, -1):
        sink(heap, count, place, heads)
    return count


@compiled(types.UniTuple(types.int64, 4)(TABLE, I64, types.int64, types.int64, types.int64, types.int64, I64, ROWS))
def merge(
    runs: Any, ranks: Any, mark_key: int, mark_rank: int, bytes_max: int, newest_key: int, left_rows: Any, rows: Any
) -> tuple[int, int, int, int]:
    """Take rows in order from the runs, up to the mark, as many as there is room for and `bytes_max` allows.

    Returns how many, their bytes, how many of them are late (older than one that went before, now or earlier, which was
    stamped `newest_key`), and the newest key now. `ranks` (by tag) and offsets order rows of the same key.
    """
    heads = np.empty(runs.shape[0], RUN_HEAD)
    heap = np.empty(runs.shape[0], np.int64)
    count = heap_up(heap, heads, runs, ranks, mark_key, mark_rank)
    target = rows.ctypes.data
    taken = late = 0
    total = numba.int64(0)
    while count and taken < rows.shape[0]:
        run = heap[0]
        at, key = heads[run].at, heads[run].key
        size = int_at(at + SIZE)
        if taken and size > bytes_max - total:
            break
        total += size
        late += key < newest_key
        newest_key = max(key, newest_key)
        left_rows[int_at(at + TAG)] += 1
        copy_bytes(target + ROW_BYTES * taken, at, ROW_BYTES)
        taken += 1
        runs[run, LEFT_BYTES] -= size
        runs[run, HEAD] += 1
        call_near(runs, run)
        if not find_head(heads, run, runs, ranks, mark_key, mark_rank):
            count -= 1
            heap[0] = heap[count]
        if count > 1:
            sink(heap, count, numba.int64(0), heads)
    return taken, total, late, newest_key


@compiled(types.void(TABLE, I64))
def lowest_offsets(runs: Any, lowest: Any) -> None:
    """Lower each tag's offset to the first that is still in the runs."""
    for run in range(runs.shape[0]):
        for place in range(runs[run, HEAD], runs[run, END]):
            row = runs[run, ROWS_AT] + ROW_BYTES * long_at(runs[run, ORDER_AT] + 8 * place)
            tag = int_at(row + TAG)
            lowest[tag] = min(lowest[tag], long_at(row + OFFSET))


@compiled(types.void(I64, I64))
def gone_behind(run: Any, behind: Any) -> None:
    """Raise each tag's offset to the one behind the last of its rows that went."""
    for place in range(run[HEAD]):
        row = run[ROWS_AT] + ROW_BYTES * long_at(run[ORDER_AT] + 8 * place)
        tag = int_at(row + TAG)
        behind[tag] = max(behind[tag], long_at(row + OFFSET) + 1)


@compiled(types.void(ROWS, U8))
def repack(rows: Any, data: Any) -> None:
    """Copy the bytes of these rows into a buffer of their own, and let their places be there."""
    target = data.ctypes.data
    for place in range(rows.shape[0]):
        copy_bytes(target, rows[place].key_at, rows[place].size)
        rows[place].key_at = target
        target += rows[place].size
