"""Rows of a slice between their arrival and their turn, in memory, and beyond that in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lowwater.spark.ordering.keys import END
from lowwater.spark.ordering.partitions import Partitions
from lowwater.spark.ordering.spilling import Run, SpilledRun, merged

ROWS_MAX = 10_000
BATCH_BYTES = 8 * 1024 * 1024
_ROWS_MIN = 2_000  # on average: smaller batches cost more than a copy
_BY_PLACE = ("topic", "partition")


class Piece(NamedTuple):
    """Rows in order of their places."""

    batch: Any
    places: Any

    @property
    def size(self) -> int:
        return int(self.batch.nbytes + self.places.nbytes)

    def split(self, count: int) -> tuple[Piece, Piece]:
        return (
            Piece(self.batch.slice(0, count), self.places[:count]),
            Piece(self.batch.slice(count), self.places[count:]),
        )


class Sorting:
    """Takes batches as the client reads them, and gives those rows in order whose turn has come.

    When more is held than may be, all of it goes to a file; from then on nothing is given before everything came.
    """

    def __init__(self, partitions: Partitions, columns: Sequence[str], *, held_bytes_max: int) -> None:
        self._partitions = partitions
        self._columns = tuple(columns)
        self._held_columns = tuple(dict.fromkeys((*(one for one in columns if one not in _BY_PLACE), "offset")))
        self._held_bytes_max = held_bytes_max
        self._pieces: list[Piece] = []
        self._runs: list[SpilledRun] = []
        self.held_bytes = 0
        self.spilled = 0
        """How often."""

    # -- arriving

    def add(self, batch: Any) -> None:
        """Rows that are not of the slice are left out."""
        places, chosen = self._partitions.keyed(batch)
        if len(places):
            self._hold(_sorted(self._held(batch), places, chosen))
        if self.held_bytes > self._held_bytes_max:
            self._spill()

    def _held(self, batch: Any) -> Any:
        columns = [_plain(batch.column(name)) for name in self._held_columns]
        return pa.RecordBatch.from_arrays(columns, names=list(self._held_columns))

    def _hold(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self.held_bytes += piece.size

    # -- leaving

    def due_rows(self, mark: int) -> int:
        """How many could go by this mark."""
        if self._runs:
            return 0
        return sum(_count(piece, mark) for piece in self._pieces)

    def due(self, mark: int) -> Iterator[Any]:
        """Rows up to this place, in order. None that comes later has one before it."""
        gone, rest = _parted(self._pieces, mark)
        self._pieces = rest
        # What is left of a piece keeps all of its memory.
        self.held_bytes = sum(piece.size for piece in rest)
        yield from map(self._shown, in_order(gone))

    def rest(self) -> Iterator[Any]:
        """Everything else: no more will come."""
        if not self._runs:
            yield from self.due(END)
            return
        pieces, self._pieces = self._pieces, []
        self.held_bytes = 0
        runs: list[Run] = [*self._runs, in_order(pieces)]
        for gone in merged(runs):
            yield from map(self._shown, in_order([Piece(*each) for each in gone]))

    def _shown(self, piece: Piece) -> Any:
        """As the client would give it."""
        found = self._partitions.columns(piece.places) if {*_BY_PLACE}.intersection(self._columns) else {}
        columns = [found[name] if name in found else _timed(name, piece.batch) for name in self._columns]
        return pa.RecordBatch.from_arrays(columns, names=list(self._columns))

    # -- beyond memory

    def _spill(self) -> None:
        pieces, self._pieces = self._pieces, []
        self.held_bytes = 0
        run = SpilledRun()
        self._runs.append(run)
        self.spilled += 1
        for batch, places in in_order(pieces):
            run.write(batch, places)

    def close(self) -> None:
        for run in self._runs:
            run.close()
        self._runs, self._pieces = [], []


def in_order(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The rows of all pieces; of rows with the same place those of the piece before go first."""
    if not pieces:
        return
    if _is_one_run(pieces):
        for piece in pieces:
            yield from _whole(piece)
        return
    together = pa.concat_batches([piece.batch for piece in pieces])
    places = np.concatenate([piece.places for piece in pieces])
    order = np.argsort(places, kind="stable")
    step = _step(together)
    for first in range(0, len(order), step):
        chosen = order[first : first + step]
        yield Piece(together.take(pa.array(chosen)), places[chosen])


def _parted(pieces: Sequence[Piece], mark: int) -> tuple[list[Piece], list[Piece]]:
    """What goes, and what stays. Of pieces that follow each other each goes as it is, once all of it may."""
    if _is_one_run(pieces):
        count = sum(int(piece.places[-1]) <= mark for piece in pieces)
        return list(pieces[:count]), list(pieces[count:])
    parts = [piece.split(_count(piece, mark)) for piece in pieces]
    return [goes for goes, _ in parts if len(goes.places)], [stays for _, stays in parts if len(stays.places)]


def _whole(piece: Piece) -> Iterator[Piece]:
    """As batches that begin where their memory does: those who take them need not know of others."""
    count, step = len(piece.places), _step(piece.batch)
    if count <= step and not piece.batch.column(0).offset:
        yield piece
        return
    for first in range(0, count, step):
        chosen = pa.array(np.arange(first, min(first + step, count)))
        yield Piece(piece.batch.take(chosen), piece.places[first : first + step])


def _is_one_run(pieces: Sequence[Piece]) -> bool:
    """Whether each follows the one before, and they are not so small that it is better to put them together."""
    is_coarse = (len(pieces) - 1) * _ROWS_MIN <= sum(len(piece.places) for piece in pieces)
    return is_coarse and all(one.places[-1] <= other.places[0] for one, other in pairwise(pieces))


def _step(batch: Any) -> int:
    """How many rows of it are a batch."""
    return min(ROWS_MAX, max(BATCH_BYTES * int(batch.num_rows) // max(int(batch.nbytes), 1), 1))


def _sorted(batch: Any, places: Any, chosen: Any) -> Piece:
    is_in_order = bool(np.all(places[1:] >= places[:-1]))
    if is_in_order and chosen is None:
        return Piece(batch, places)
    if is_in_order and len(chosen) == chosen[-1] - chosen[0] + 1:
        return Piece(batch.slice(int(chosen[0]), len(chosen)), places)
    order = np.argsort(places, kind="stable")
    return Piece(batch.take(pa.array(order if chosen is None else chosen[order])), places[order])


def _count(piece: Piece, mark: int) -> int:
    return int(np.searchsorted(piece.places, mark, side="right"))


def _plain(column: Any) -> Any:
    """Times as numbers: what stands under a null would not be kept."""
    if not pa.types.is_timestamp(column.type):
        return column
    return pa.Array.from_buffers(pa.int64(), len(column), [None, column.buffers()[1]], 0)


def _timed(name: str, batch: Any) -> Any:
    column = batch.column(name)
    return column.view(pa.timestamp("ms", tz="UTC")) if name == "timestamp" else column
