"""Sorted rows in files, and how they come together again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

_PLACE = "place"
Run: TypeAlias = Iterable[tuple[Any, Any]]


class SpilledRun:
    """Batches in order of their places, in a file without a name: it is gone when this process is, however it ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="lowwater-")  # noqa: SIM115  it is closed with this
        self._writer: Any = None

    def write(self, batch: Any, places: Any) -> None:
        whole = batch.append_column(_PLACE, pa.array(places))
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, whole.schema)
        self._writer.write_batch(whole)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        for whole in pa.ipc.open_stream(self._file):
            places = whole.column(_PLACE).to_numpy()
            yield whole.drop_columns([_PLACE]), places

    def close(self) -> None:
        self._file.close()


class _Head:
    """The first batch of a run that has not gone yet."""

    def __init__(self, run: Run) -> None:
        self._batches = iter(run)
        self.batch: Any = None
        self.places: Any = np.empty(0, np.int64)
        self.is_there = True
        self.advance()

    def advance(self) -> None:
        while self.is_there and not len(self.places):
            found = next(self._batches, None)
            if found is None:
                self.is_there = False
            else:
                self.batch, self.places = found

    def take(self, count: int) -> tuple[Any, Any]:
        taken = self.batch.slice(0, count), self.places[:count]
        self.batch, self.places = self.batch.slice(count), self.places[count:]
        self.advance()
        return taken


def merged(runs: Sequence[Run]) -> Iterator[list[tuple[Any, Any]]]:
    """Pieces of the runs, in groups: each group has all rows that lie before those of the next.

    Of rows with the same place those of the run before go first.
    """
    heads = [_Head(run) for run in runs]
    while any(head.is_there for head in heads):
        # The run whose batch ends first goes up to there. More of that very place may follow in it, so that the runs
        # behind it wait with theirs.
        last, number = min((int(head.places[-1]), number) for number, head in enumerate(heads) if head.is_there)
        counts = [
            int(np.searchsorted(head.places, last, side="right" if place <= number else "left")) if head.is_there else 0
            for place, head in enumerate(heads)
        ]
        yield [head.take(count) for head, count in zip(heads, counts, strict=True) if count]
