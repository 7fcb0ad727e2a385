"""How transactions ended, from the ledger alone: what a log must say of them after a crash."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.sim.batches import Batch
from tests.sim.ledger import PartitionLedger

_KIND = struct.Struct(">hh")
COMMIT = 1


def is_commit(marker: Batch) -> bool:
    [record] = marker.records
    assert record.key is not None
    return bool(_KIND.unpack(record.key)[1] == COMMIT)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The batches that had been written up to the last one that survived, also those deleted or compacted since."""

    batches: list[Batch]

    @classmethod
    def of(cls, ledger: PartitionLedger, last_offset: int) -> Timeline:
        return cls([one.batch for one in ledger.promised if one.batch.base_offset <= last_offset])

    def marker_after(self, batch: Batch) -> Batch | None:
        """What ended the transaction of that batch."""
        later = (one for one in self.batches if one.is_control and one.base_offset > batch.base_offset)
        return next((one for one in later if one.producer_id == batch.producer_id), None)

    def counts(self, batch: Batch) -> bool:
        """Whether a reader of committed records gets that batch."""
        if batch.is_control:
            return False
        if not batch.is_transactional:
            return True
        marker = self.marker_after(batch)
        return marker is not None and is_commit(marker)

    def is_aborted(self, batch: Batch) -> bool:
        marker = self.marker_after(batch) if batch.is_transactional and not batch.is_control else None
        return marker is not None and not is_commit(marker)

    def open(self) -> dict[int, Batch]:
        """The first batch of each open transaction, by producer."""
        found: dict[int, Batch] = {}
        for batch in self.batches:
            if batch.is_control:
                found.pop(batch.producer_id, None)
            elif batch.is_transactional:
                found.setdefault(batch.producer_id, batch)
        return found
