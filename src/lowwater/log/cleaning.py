"""What compaction leaves of a batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from lowwater.log.aborted import AbortedTransaction
from lowwater.log.outcomes import Outcomes
from lowwater.types import Buffer
from lowwater.wire.record_scan import ScannedRecord, scan
from lowwater.wire.records import (
    CODEC_MASK,
    HAS_DELETE_HORIZON,
    NO_TIMESTAMP,
    BatchHeader,
    build_batch,
    encode_batch,
    read_records,
)

_KEY_AS_IS_MAX = 32


@dataclass(frozen=True, slots=True)
class Rules:
    now_ms: int
    delete_retention_ms: int
    # Last offsets of batches that live producers may still repeat, and of the last batch when nothing follows it:
    # such a batch stays, without records if need be.
    keep_batches: frozenset[int]
    # (producer id, epoch) of live producers of which nothing but markers is known: those stay.
    keep_markers: frozenset[tuple[int, int]] = frozenset()


class Cleaner:
    """Decides record by record, from the last offset of each key below `known_until`. Batches come in their order."""

    def __init__(self, rules: Rules, latest: dict[bytes, int], known_until: int, outcomes: Outcomes) -> None:
        self._rules = rules
        self._latest = latest
        self._known_until = known_until
        self._outcomes = outcomes
        # Aborted transactions of which a marker and, before this compaction, batches were left.
        self._aborted: list[AbortedTransaction] = []

    def take_aborted(self) -> list[AbortedTransaction]:
        """Those since the last call: the transaction index of the segment just cleaned."""
        taken, self._aborted = self._aborted, []
        return taken

    def clean(self, batch: memoryview, header: BatchHeader) -> Buffer | None:
        """The batch as it stays: the same bytes, fewer records, no records, or None. Offsets never change."""
        if header.is_control:
            return self._clean_marker(batch, header)
        self._outcomes.pass_batch(header)
        if header.base_offset >= self._known_until:
            return batch
        if not header.record_count:
            return batch if header.last_offset in self._rules.keep_batches else None
        if self._outcomes.is_aborted(header):
            return _emptied(header) if header.last_offset in self._rules.keep_batches else None
        data, records = scan(batch, header)
        kept = [record for record in records if self._stays(record, header)]
        if not kept:
            return _emptied(header) if header.last_offset in self._rules.keep_batches else None
        if header.delete_horizon_ms is None and not all(record.has_value for record in kept):
            return self._with_horizon(batch, header, {record.offset_delta for record in kept})
        if len(kept) == len(records):
            return batch
        return _reduced(header, data, kept)

    def _clean_marker(self, batch: memoryview, header: BatchHeader) -> Buffer | None:
        """A marker stays until the batches of its transaction are gone, and then as long as a tombstone does."""
        if self._outcomes.pass_marker(header):
            aborted = self._outcomes.aborted_at(header)
            if aborted is not None:
                self._aborted.append(aborted)
            return batch
        if header.base_offset >= self._known_until or header.last_offset in self._rules.keep_batches:
            return batch
        if not header.record_count:
            return None  # Kafka empties markers that it keeps for their producers
        if header.delete_horizon_ms is None:
            return self._with_horizon(batch, header, {0})
        is_live = (header.producer_id, header.producer_epoch) in self._rules.keep_markers
        return batch if is_live or self._rules.now_ms < header.delete_horizon_ms else None

    def _stays(self, record: ScannedRecord, header: BatchHeader) -> bool:
        offset = header.base_offset + record.offset_delta
        if offset >= self._known_until:
            return True
        if record.key is None:
            return False
        if self._latest.get(key_of(record.key), offset) > offset:
            return False
        horizon = header.delete_horizon_ms
        return record.has_value or horizon is None or self._rules.now_ms < horizon

    def _with_horizon(self, batch: memoryview, header: BatchHeader, kept: set[int]) -> Buffer:
        """The first compaction that sees a tombstone says until when it stays, in place of the base timestamp."""
        records = [one for one in read_records(batch) if one.offset - header.base_offset in kept]
        return build_batch(
            records,
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            codec=header.codec,
            attributes=header.attributes & ~CODEC_MASK | HAS_DELETE_HORIZON,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            base_timestamp=self._rules.now_ms + self._rules.delete_retention_ms,
            max_timestamp=header.max_timestamp if header.has_log_append_time else None,
        )


def key_of(key: bytes) -> bytes:
    """Long keys are remembered by a digest."""
    return key if len(key) <= _KEY_AS_IS_MAX else b"#" + hashlib.blake2b(key, digest_size=_KEY_AS_IS_MAX).digest()


def _reduced(header: BatchHeader, data: bytes, kept: Sequence[ScannedRecord]) -> Buffer:
    """Records are copied as they are: their deltas count from a base that stays."""
    body = b"".join(data[record.start : record.end] for record in kept)
    latest = header.max_timestamp
    if not header.has_log_append_time:
        latest = header.base_timestamp + max(record.timestamp_delta for record in kept)
    return encode_batch(header._replace(max_timestamp=latest, record_count=len(kept)), body)


def _emptied(header: BatchHeader) -> Buffer:
    attributes = header.attributes & ~(CODEC_MASK | HAS_DELETE_HORIZON)
    empty = header._replace(
        attributes=attributes, base_timestamp=NO_TIMESTAMP, max_timestamp=NO_TIMESTAMP, record_count=0
    )
    return encode_batch(empty, b"")
