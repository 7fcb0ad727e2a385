"""Confluent's frame: a zero byte, the schema's id in four, and for Protobuf the way to the message; then the value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lowwater.spark.decoding.layout import Longs
from lowwater.spark.decoding.rows import Rows

FRAME_BYTES = 5
PATH_MAX = 16
NOT_FRAMED = "the value does not begin with a schema registry's frame (a zero byte and a schema id)"
BAD_PATH = "the way to the Protobuf message behind the schema id cannot be read"


def take_ids(rows: Rows) -> Longs:
    """The schema ids of the rows, whose frames are then behind; rows without a frame are refused."""
    rows.refuse(rows.open & (rows.sizes < FRAME_BYTES), NOT_FRAMED)
    _refuse_among(rows, rows.open, rows.byte(rows.open, 0) != 0, NOT_FRAMED)
    framed = rows.open
    ids = np.zeros(len(rows.sizes), np.int64)
    for place in range(1, FRAME_BYTES):
        ids[framed] = ids[framed] << 8 | rows.byte(framed, place)
    rows.skip(framed, FRAME_BYTES)
    return ids


def take_paths(rows: Rows) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.bool_]]]:
    """Each way to a message and the rows that take it, which are then behind it. A lone zero leads to the first."""
    counts = _take_byte(rows)
    for count in np.unique(counts[rows.open]).tolist():
        mine = rows.open & (counts == count)
        if count == 0:
            yield (0,), mine
        elif count & 1 or count >> 1 > PATH_MAX:
            rows.refuse(mine, BAD_PATH)
        else:
            yield from _paths(rows, mine, count >> 1)


def _paths(
    rows: Rows, mine: npt.NDArray[np.bool_], length: int
) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.bool_]]]:
    """Places are zigzag varints; those above 63, which would take two bytes, are not understood."""
    steps = np.zeros((len(rows.sizes), length), np.int64)
    for place in range(length):
        steps[:, place] = _take_byte(rows, mine)
        rows.refuse(mine & rows.open & (steps[:, place] & 0x81 != 0), BAD_PATH)
    for path in np.unique(steps[mine & rows.open], axis=0).tolist():
        yield tuple(step >> 1 for step in path), mine & rows.open & (steps == path).all(axis=1)


def _take_byte(rows: Rows, among: npt.NDArray[np.bool_] | None = None) -> Longs:
    """The next byte of these rows, which is then behind; rows without one are refused."""
    wanted = rows.open if among is None else rows.open & among
    rows.refuse(wanted & (rows.sizes < 1), BAD_PATH)
    wanted &= rows.open
    found = np.zeros(len(rows.sizes), np.int64)
    found[wanted] = rows.byte(wanted, 0)
    rows.skip(wanted, 1)
    return found


def _refuse_among(rows: Rows, some: npt.NDArray[np.bool_], bad: npt.NDArray[np.bool_], reason: str) -> None:
    refused = some.copy()
    refused[some] = bad
    rows.refuse(refused, reason)
