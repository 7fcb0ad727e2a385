"""Which partition each row of a record batch goes to: the one it names, or by its key as other clients choose it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowwater.client.driver import jitter
from lowwater.client.outgoing import OutgoingRows, SpreadBatch
from lowwater.ports import Ids
from lowwater.wire.kernels import partitioning
from lowwater.wire.kernels.partitioning import CRC32, MURMUR2, UNPLACED

# Rows without a key stay together in runs of at least this: many small batches cost more than they balance.
RUN_BYTES_MIN = 16 * 1024
_NULL, _EMPTY, _ANY = -1, 0, 1


class Way(NamedTuple):
    """Keys of at least `size_min` bytes (-1 is null) are hashed; rows with shorter ones are dealt out."""

    hashing: int
    size_min: int


# Without "random", rows that have no key all go to one partition.
WAYS: dict[str, Way | None] = {
    "murmur2_random": Way(MURMUR2, _EMPTY),
    "murmur2": Way(MURMUR2, _NULL),
    "consistent_random": Way(CRC32, _ANY),
    "consistent": Way(CRC32, _NULL),
    "random": None,
}


class Partitioner:
    def __init__(self, way: str, batch_bytes: int, ids: Ids) -> None:
        self._way = WAYS[way]
        self._batch_bytes = batch_bytes
        self._ids = ids

    def spread(self, rows: OutgoingRows, named: Any, partitions: int) -> tuple[list[SpreadBatch], Any]:
        """Rows in batches by partition, and those that name a partition which the topic does not have.

        `named` is what the rows say themselves, UNPLACED where they say nothing, or None when none says anything.
        """
        placed = np.full(rows.count, UNPLACED, np.int32) if named is None else named.astype(np.int32)
        absent = (placed >= partitions) | (placed < UNPLACED) if named is not None else None
        wrong = np.flatnonzero(absent) if absent is not None else np.empty(0, np.int64)
        placed[wrong] = UNPLACED
        if self._way is not None:
            partitioning.place(rows.rows, self._way.hashing, self._way.size_min, partitions, placed)
        partitioning.stick(rows.rows, self._begin_at(partitions), self._run_bytes(rows, partitions), partitions, placed)
        placed[wrong] = UNPLACED
        return rows.spread(placed, partitions, bytes_max=self._batch_bytes), wrong

    def _begin_at(self, partitions: int) -> int:
        return int(jitter(self._ids) * partitions)

    def _run_bytes(self, rows: OutgoingRows, partitions: int) -> int:
        """An equal share for each partition, in whole batches where there is so much."""
        sizes = rows.rows["value_size"]
        share = (int(sizes.sum(dtype=np.int64)) + rows.count) // partitions
        return max(min(share, self._batch_bytes), RUN_BYTES_MIN)
