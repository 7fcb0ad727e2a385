"""Where the bytes of a column's values are, and the two walks of a kernel over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lowwater.spark.decoding.decoder import Decoded
from lowwater.spark.decoding.layout import Layout, Longs, Slots

Table = npt.NDArray[np.int64]
NULL_SIZE = -1
SAID = 1000  # a fault beside the kernels' own
# What a format gives: columns, slots, validity, whether they are filled -> its kernel over all rows.
Walk = Callable[[Table, Longs, npt.NDArray[np.uint8], bool], None]


@dataclass(slots=True)
class Rows:
    """Addresses and sizes of values, -1 for null; what is wrong with each row: fault, step, place. Holds the bytes."""

    places: Longs
    sizes: Longs
    faults: Table
    held: pa.Array
    said: list[str] = field(default_factory=list)  # reasons that were known before the kernel: fault SAID, by place
    arena: npt.NDArray[np.uint8] | None = None  # texts that had to be rewritten, if a format has such

    @classmethod
    def of(cls, values: pa.Array) -> Rows:
        _, ends_buffer, data = values.buffers()
        count, first = len(values), values.offset
        ends = (
            np.frombuffer(ends_buffer, np.int32, count + 1, first * 4).astype(np.int64)
            if count
            else np.zeros(1, np.int64)
        )
        sizes = np.diff(ends)
        if values.null_count:
            sizes[values.is_null().to_numpy(zero_copy_only=False)] = NULL_SIZE
        places = ends[:-1] + (data.address if data is not None else 0)
        return cls(places, sizes, np.zeros((count, 3), np.int64), values)

    @property
    def open(self) -> npt.NDArray[np.bool_]:
        """Rows that are neither null nor known to be bad."""
        is_open: npt.NDArray[np.bool_] = (self.sizes != NULL_SIZE) & (self.faults[:, 0] == 0)
        return is_open

    def refuse(self, rows: npt.NDArray[np.bool_], reason: str) -> None:
        """These rows are bad, for a reason that the kernel cannot know."""
        if rows.any():
            self.faults[rows, 0], self.faults[rows, 1] = SAID, len(self.said)
            self.said.append(reason)

    def skip(self, rows: npt.NDArray[np.bool_], count: int) -> None:
        """Leave out that many bytes at the beginning of these values."""
        self.places[rows] += count
        self.sizes[rows] -= count

    def byte(self, rows: npt.NDArray[np.bool_], place: int) -> npt.NDArray[np.uint8]:
        """The byte at a place of these values, which have to be long enough."""
        data = self.held.buffers()[2]
        if data is None or not rows.any():
            return np.zeros(0, np.uint8)
        found: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)[self.places[rows] - data.address + place]
        return found


def decode_rows(layout: Layout, rows: Rows, walk: Walk, explain: Callable[[int, int, int], str]) -> Decoded:
    """Judge and count, make room, fill. `explain` puts (fault, step, place) in words."""
    table = layout.table()
    walk(table, np.zeros(1, np.int64), np.zeros(1, np.uint8), False)
    slots = Slots(layout, table)
    walk(slots.table, slots.values, slots.valid, True)
    bad = np.flatnonzero(rows.faults[:, 0]).astype(np.int32)
    reasons = tuple(_reason(rows, explain, *(int(number) for number in rows.faults[row])) for row in bad)
    return Decoded(slots.array(), bad, reasons)


def _reason(rows: Rows, explain: Callable[[int, int, int], str], fault: int, step: int, place: int) -> str:
    return rows.said[step] if fault == SAID else explain(fault, step, place)
