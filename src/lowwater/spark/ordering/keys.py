"""By what rows of a slice are ordered, and which of them are in it."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return"

from __future__ import annotations

from typing import Any

from numba import types

from lowwater.wire.kernels.compiling import I32, I64, U8, compiled

NO_CLOCK = -(1 << 63)  # of a partition of which nothing came yet
END = (1 << 63) - 1
_READ: Any = types.Array(types.int64, 1, "C", readonly=True)
_FOUND: Any = types.UniTuple(types.int64, 2)


@compiled(
    _FOUND(I32, _READ, _READ, I64, I64, I64, I64, I64, types.int64, types.int64, types.int64, types.int64, I64, U8)
)
def find_keys(
    tags: Any,
    offsets: Any,
    timestamps: Any,
    clocks: Any,
    start_keys: Any,
    start_offsets: Any,
    end_keys: Any,
    end_offsets: Any,
    out_of_order_ms: int,
    floor_ms: int,
    cap_ms: int,
    late_before_ms: int,
    keys: Any,
    kept: Any,
) -> tuple[int, int]:
    """The key of each row, and whether it is kept: by tag, from (start key, offset) to before (end key, offset).

    Rows of a partition come by offset. `clocks`, by tag, are their newest timestamps so far, and go on with them.
    Returns how many rows are kept, and how many of those are late.
    """
    count = late = 0
    for place in range(tags.shape[0]):
        tag, offset = tags[place], offsets[place]
        timestamp = min(timestamps[place], cap_ms)
        clock = max(clocks[tag], timestamp)
        clocks[tag] = clock
        # What is due at the latest; not below what numbers can say.
        due = max(clock, NO_CLOCK + out_of_order_ms) - out_of_order_ms
        key = max(timestamp, due, floor_ms)
        keys[place] = key
        is_behind = key > start_keys[tag] or (key == start_keys[tag] and offset >= start_offsets[tag])
        is_before = key < end_keys[tag] or (key == end_keys[tag] and offset < end_offsets[tag])
        kept[place] = is_behind and is_before
        if kept[place]:
            count += 1
            late += timestamp < due or timestamp < late_before_ms
    return count, late
