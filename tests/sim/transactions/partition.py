"""A partition's log in memory, by the rules of transactional logs: what is synced survives a power cut."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from lowwater.errors import ErrorCode

DATA, COMMIT, ABORT = "data", "commit", "abort"


class Entry(NamedTuple):
    """A batch, or a marker."""

    kind: str
    producer_id: int
    producer_epoch: int
    sequence: int
    values: tuple[str, ...]
    offset: int
    next_offset: int


@dataclass(slots=True)
class ProducerState:
    epoch: int = -1
    next_sequence: int = 0
    placed: dict[int, int] = field(default_factory=dict)  # offsets by sequence, to know a repetition
    open_since: int | None = None


class SimPartition:
    """`append` answers what a log answers; `committed` is what a read_committed reader sees."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.synced = 0
        self.is_cut = False  # a crash took something, and nobody was told yet
        self._producers: dict[int, ProducerState] = {}

    @property
    def end(self) -> int:
        return self.entries[-1].next_offset if self.entries else 0

    @property
    def last_stable(self) -> int:
        opened = [one.open_since for one in self._producers.values() if one.open_since is not None]
        return min(opened, default=self.end)

    def has_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        known = self._producers.get(producer_id)
        return known is not None and known.open_since is not None and known.epoch == producer_epoch

    def append(
        self, producer_id: int, producer_epoch: int, sequence: int, values: tuple[str, ...], *, in_transaction: bool
    ) -> tuple[ErrorCode, int]:
        """`sequence` is -1 for what the broker writes itself."""
        known = self._producers.get(producer_id, ProducerState())
        if known.epoch == producer_epoch and sequence in known.placed:
            return ErrorCode.NONE, known.placed[sequence]
        if producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if not in_transaction and not self.has_transaction(producer_id, producer_epoch):
            return ErrorCode.INVALID_TXN_STATE, -1
        expected = known.next_sequence if producer_epoch == known.epoch else 0
        if sequence not in (-1, expected):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return ErrorCode.NONE, self._add(DATA, producer_id, producer_epoch, sequence, values)

    def append_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        known = self._producers.get(producer_id)
        if known is None or producer_epoch >= known.epoch:
            self._add(COMMIT if commit else ABORT, producer_id, producer_epoch, -1, ())

    def _add(self, kind: str, producer_id: int, producer_epoch: int, sequence: int, values: tuple[str, ...]) -> int:
        base = self.end
        entry = Entry(kind, producer_id, producer_epoch, sequence, values, base, base + max(1, len(values)))
        self.entries.append(entry)
        self._replay(entry)
        return entry.offset

    def _replay(self, entry: Entry) -> None:
        known = self._producers.setdefault(entry.producer_id, ProducerState())
        if entry.producer_epoch != known.epoch:
            known.epoch, known.next_sequence = entry.producer_epoch, 0
            known.placed.clear()
        if entry.kind != DATA:
            known.open_since = None
            return
        if entry.sequence >= 0:
            known.placed[entry.sequence] = entry.offset
            known.next_sequence = entry.sequence + len(entry.values)
        if known.open_since is None:
            known.open_since = entry.offset

    def lose_power(self, draw: random.Random) -> None:
        """Some of what was not synced is gone, from the end."""
        kept = draw.randint(self.synced, len(self.entries))
        self.is_cut = kept < len(self.entries)
        del self.entries[kept:]

    def reopen(self) -> None:
        """As a start finds it."""
        self.synced = len(self.entries)
        self._producers.clear()
        for entry in self.entries:
            self._replay(entry)

    def committed(self, start: int = 0) -> list[tuple[int, str]]:
        """(offset, value) of what a read_committed reader gets in [start, last stable offset)."""
        fate: dict[int, bool] = {}
        visible: list[tuple[int, str]] = []
        upto = self.last_stable
        for entry in reversed(self.entries):
            if entry.next_offset <= start:
                break
            if entry.kind != DATA:
                fate[entry.producer_id] = entry.kind == COMMIT
            elif entry.offset < upto and fate.get(entry.producer_id):
                visible += [(entry.offset + n, value) for n, value in reversed(list(enumerate(entry.values)))]
        return visible[::-1]
