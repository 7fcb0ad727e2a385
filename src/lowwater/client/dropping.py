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
    in_order = _in_order(rows, sizes, ranks, keep_bytes)
    kept = max(int(np.searchsorted(np.cumsum(sizes[in_order]), keep_bytes, "right")), 1)
    late = rows[in_order[kept:]]
    offsets = np.full(len(ranks), END_MS)
    np.minimum.at(offsets, late["tag"], late["offset"])
    may_go = np.zeros(len(ranks), bool)
    may_go[list(tags)] = True
    for tag, behind in gone_behind.items():
        may_go[tag] &= behind <= offsets[tag]
    offsets[~may_go] = END_MS
    return _described(rows, sizes, offsets, created_ms, ends)


def _in_order(rows: Any, sizes: Any, ranks: Any, keep_bytes: int) -> Any:
    """Places of rows in the order in which they go; of those of the same time only where `keep_bytes` are over."""
    keys = rows["key"]
    in_order = np.argsort(keys, kind="stable")  # of runs that are in order, which is much faster than of any rows
    at = min(int(np.searchsorted(np.cumsum(sizes[in_order]), keep_bytes, "right")), len(rows) - 1)
    first, end = (
        np.searchsorted(keys[in_order], keys[in_order[at]], "left"),
        np.searchsorted(keys[in_order], keys[in_order[at]], "right"),
    )
    tied = in_order[first:end]
    in_order[first:end] = tied[np.lexsort((rows["offset"][tied], ranks[rows["tag"][tied]]))]
    return in_order


def _described(rows: Any, sizes: Any, offsets: Any, created_ms: int, ends: Any) -> list[Dropped]:
    """What goes when of each tag rows from these offsets on go."""
    going = rows["offset"] >= offsets[rows["tag"]]
    gone = rows[going]
    tags, count = gone["tag"], len(offsets)
    keys = np.full(count, END_MS)
    np.minimum.at(keys, tags, gone["key"])
    claims = (gone["timestamp"] > created_ms) & (gone["offset"] < ends[tags])
    row_counts, future_counts = np.bincount(tags, minlength=count), np.bincount(tags[claims], minlength=count)
    byte_counts = np.bincount(tags, sizes[going], count)
    return [
        Dropped(
            tag, int(offsets[tag]), int(keys[tag]), int(row_counts[tag]), int(byte_counts[tag]), int(future_counts[tag])
        )
        for tag in np.flatnonzero(row_counts).tolist()
    ]


def first_offsets(dropped: Sequence[Dropped], tag_count: int) -> Any:
    """By tag, the first offset that is dropped."""
    offsets = np.full(tag_count, END_MS)
    for each in dropped:
        offsets[each.tag] = each.offset
    return offsets
