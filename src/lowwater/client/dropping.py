"""Which rows are put back when more is held than is allowed: those that are due last. They are fetched again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowwater.client.chunks import HELD_ROW_BYTES, Chunk
from lowwater.merge.mark import END_MS


class Dropped(NamedTuple):
    """Rows of a partition from an offset on, the first of them ordered by `key_ms`."""

    tag: int
    offset: int
    key_ms: int
    rows: int
    size: int
    future_rows: int


def due_last(
    chunks: Sequence[Chunk],
    tags: Sequence[int],
    gone_behind: Mapping[int, int],
    *,
    keep_bytes: int,
    ranks: Any,
    created_ms: int,
    ends: Any,
) -> list[Dropped]:
    """What to drop of these partitions, so that of all rows about `keep_bytes` stay. The row that is due first does.

    Of a partition rows go from one offset on, as they can be fetched again only so. Nothing goes of one of which a row
    behind that went to the caller: it would come twice.
    """
    rows = np.concatenate([chunk.left for chunk in chunks])
    sizes = rows["size"] + np.int64(HELD_ROW_BYTES)
    in_order = np.lexsort((rows["offset"], ranks[rows["tag"]], rows["key"]))
    kept = max(int(np.searchsorted(np.cumsum(sizes[in_order]), keep_bytes, "right")), 1)
    late = rows[in_order[kept:]]
    dropped = []
    for tag in np.intersect1d(late["tag"], tags).tolist():
        offset = int(late["offset"][late["tag"] == tag].min())
        if gone_behind.get(tag, 0) > offset:
            continue
        mine = (rows["tag"] == tag) & (rows["offset"] >= offset)
        future = mine & (rows["timestamp"] > created_ms) & (rows["offset"] < ends[tag])
        key_ms = int(rows["key"][mine].min())
        dropped.append(Dropped(tag, offset, key_ms, int(mine.sum()), int(sizes[mine].sum()), int(future.sum())))
    return dropped


def first_offsets(dropped: Sequence[Dropped], tag_count: int) -> Any:
    """By tag, the first offset that is dropped."""
    offsets = np.full(tag_count, END_MS)
    for each in dropped:
        offsets[each.tag] = each.offset
    return offsets
