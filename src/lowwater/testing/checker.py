"""Judges a history of sends and reads: was anything lost, doubled, mixed up or seen out of order?

Every send has a value of its own, so a value says who sent it, and ends ok (with its offset), failed (certainly
not written) or unknown. Consumers note what each poll gave. A last phase reads every partition from its start to
its end. Gaps between offsets are legal; what is not is reported by name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from lowwater.types import TopicPartition


class Outcome(Enum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class AnomalyKind(Enum):
    INCONSISTENT_OFFSETS = "inconsistent-offsets"
    LOST_WRITE = "lost-write"
    UNSEEN = "unseen"
    DUPLICATE = "duplicate"
    ABORTED_READ = "aborted-read"
    TORN_TRANSACTION = "torn-transaction"
    NONMONOTONIC_SEND = "nonmonotonic-send"
    POLL_SKIP = "poll-skip"
    NONMONOTONIC_POLL = "nonmonotonic-poll"


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: AnomalyKind
    partition: TopicPartition
    offset: int | None
    detail: str

    def __str__(self) -> str:
        return f"{self.kind.value} at {self.partition} offset {self.offset}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Send:
    """One value handed to a producer. `idempotent`: its retries may not double it. Sends of one `transaction` are seen
    all or none, and only if it committed: their outcome is that of the transaction."""

    producer: str
    partition: TopicPartition
    value: bytes
    outcome: Outcome
    offset: int | None = None
    idempotent: bool = True
    transaction: str | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll gave, in order; `sought` = the position set before it, None when it just went on."""

    consumer: str
    partition: TopicPartition
    records: tuple[tuple[int, bytes], ...]
    sought: int | None = None


@dataclass(frozen=True, slots=True)
class FinalRead:
    """A whole partition, from its log start to its log end."""

    log_start: int
    log_end: int
    records: tuple[tuple[int, bytes], ...]


@dataclass(slots=True)
class History:
    """Sends in the order of their producers' calls, polls in the order of their consumers'."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    final: dict[TopicPartition, FinalRead] = field(default_factory=dict)

    def acked(self) -> int:
        return sum(send.outcome is Outcome.OK for send in self.sends)


def check(history: History) -> list[Anomaly]:
    """Every anomaly of the history; an empty list means that nothing was lost and nothing mixed up."""
    seen = _Seen(history)
    return [
        *_inconsistent_offsets(history, seen),
        *_missing(history, seen),
        *_duplicates(history, seen),
        *_aborted_reads(history, seen),
        *_torn_transactions(history, seen),
        *_nonmonotonic_sends(history),
        *_polls(history, seen),
    ]


def tally(anomalies: Iterable[Anomaly]) -> dict[str, int]:
    """How often each kind occurred, kinds that did not occur included."""
    counts = Counter(anomaly.kind for anomaly in anomalies)
    return {kind.value: counts[kind] for kind in AnomalyKind}


class _Seen:
    """Everything any reader saw: values by offset, offsets by value, what stands in the end, how far reading went."""

    def __init__(self, history: History) -> None:
        self.values: dict[TopicPartition, dict[int, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        self.offsets: dict[tuple[TopicPartition, bytes], set[int]] = defaultdict(set)
        self.end: dict[TopicPartition, int] = defaultdict(int)
        self.standing: dict[TopicPartition, frozenset[tuple[int, bytes]]] = {}
        for poll in history.polls:
            self._add(poll.partition, poll.records)
        for partition, final in history.final.items():
            self._add(partition, final.records)
            self.end[partition] = max(self.end[partition], final.log_end)
            self.standing[partition] = frozenset(final.records)

    def _add(self, partition: TopicPartition, records: Iterable[tuple[int, bytes]]) -> None:
        for offset, value in records:
            self.values[partition][offset].add(value)
            self.offsets[partition, value].add(offset)
            self.end[partition] = max(self.end[partition], offset + 1)

    def has(self, send: Send) -> bool:
        """Whether the acked value stands at its offset in the end (without a last phase: was seen there)."""
        assert send.offset is not None
        if send.partition in self.standing:
            return (send.offset, send.value) in self.standing[send.partition]
        return send.offset in self.offsets.get((send.partition, send.value), ())


def _acked(history: History) -> Iterator[tuple[Send, int]]:
    for send in history.sends:
        if send.outcome is Outcome.OK and send.offset is not None:
            yield send, send.offset


def _inconsistent_offsets(history: History, seen: _Seen) -> Iterator[Anomaly]:
    claims: dict[tuple[TopicPartition, int], set[bytes]] = defaultdict(set)
    for partition, by_offset in seen.values.items():
        for offset, values in by_offset.items():
            claims[partition, offset] |= values
    for send, offset in _acked(history):
        claims[send.partition, offset].add(send.value)
    for (partition, offset), values in claims.items():
        if len(values) > 1:
            yield Anomaly(AnomalyKind.INCONSISTENT_OFFSETS, partition, offset, f"values {sorted(map(_short, values))}")


def _missing(history: History, seen: _Seen) -> Iterator[Anomaly]:
    for send, offset in _acked(history):
        final = history.final.get(send.partition)
        if seen.has(send) or (final is not None and offset < final.log_start):
            continue
        reached = offset < seen.end[send.partition]
        kind = AnomalyKind.LOST_WRITE if reached else AnomalyKind.UNSEEN
        yield Anomaly(kind, send.partition, offset, f"{send.producer} was acked {_short(send.value)}")


def _duplicates(history: History, seen: _Seen) -> Iterator[Anomaly]:
    for send in history.sends:
        offsets = seen.offsets.get((send.partition, send.value), set())
        if send.idempotent and len(offsets) > 1:
            detail = f"{_short(send.value)} stands at {sorted(offsets)}"
            yield Anomaly(AnomalyKind.DUPLICATE, send.partition, min(offsets), detail)


def _aborted_reads(history: History, seen: _Seen) -> Iterator[Anomaly]:
    for send in history.sends:
        offsets = seen.offsets.get((send.partition, send.value), set())
        if send.outcome is Outcome.FAILED and offsets:
            detail = f"{_short(send.value)} had failed for {send.producer}"
            yield Anomaly(AnomalyKind.ABORTED_READ, send.partition, min(offsets), detail)
        elif gone := _gone_again(history, seen, send, offsets):
            detail = f"{_short(send.value)} of {send.transaction} was read and is gone"
            yield Anomaly(AnomalyKind.ABORTED_READ, send.partition, min(gone), detail)


def _gone_again(history: History, seen: _Seen, send: Send, offsets: set[int]) -> set[int]:
    """Where a transaction's value was read that the last phase did not find there: it was never committed."""
    final = history.final.get(send.partition)
    if send.transaction is None or final is None:
        return set()
    standing = seen.standing[send.partition]
    return {offset for offset in offsets if offset >= final.log_start and (offset, send.value) not in standing}


def _torn_transactions(history: History, seen: _Seen) -> Iterator[Anomaly]:
    parts: dict[str, list[Send]] = defaultdict(list)
    for send in history.sends:
        final = history.final.get(send.partition)
        if send.transaction is not None and final is not None and final.log_start == 0:
            parts[send.transaction].append(send)
    for transaction, sends in parts.items():
        missing = [send for send in sends if (send.partition, send.value) not in seen.offsets]
        if 0 < len(missing) < len(sends):
            detail = f"{transaction}: {len(missing)} of {len(sends)} are missing, as {_short(missing[0].value)}"
            yield Anomaly(AnomalyKind.TORN_TRANSACTION, missing[0].partition, None, detail)


def _nonmonotonic_sends(history: History) -> Iterator[Anomaly]:
    last: dict[tuple[str, TopicPartition], int] = {}
    for send, offset in _acked(history):
        before = last.get((send.producer, send.partition), -1)
        if offset <= before:
            detail = f"{send.producer} had been acked {before} before"
            yield Anomaly(AnomalyKind.NONMONOTONIC_SEND, send.partition, offset, detail)
        last[send.producer, send.partition] = max(before, offset)


def _polls(history: History, seen: _Seen) -> Iterator[Anomaly]:
    known = {partition: sorted(by_offset) for partition, by_offset in seen.values.items()}
    positions: dict[tuple[str, TopicPartition], int] = {}
    for poll in history.polls:
        key = (poll.consumer, poll.partition)
        if poll.sought is not None:
            positions[key] = poll.sought
        for offset, _ in poll.records:
            position = positions.get(key, offset)
            if offset < position:
                detail = f"{poll.consumer} stood at {position}"
                yield Anomaly(AnomalyKind.NONMONOTONIC_POLL, poll.partition, offset, detail)
            elif skipped := _between(known[poll.partition], position, offset):
                detail = f"{poll.consumer} went from {position} past {skipped} records"
                yield Anomaly(AnomalyKind.POLL_SKIP, poll.partition, offset, detail)
            positions[key] = offset + 1


def _between(offsets: list[int], start: int, end: int) -> int:
    """How many of the sorted offsets lie in [start, end)."""
    return bisect_left(offsets, end) - bisect_left(offsets, start)


def _short(value: bytes) -> str:
    return value[:40].decode("utf-8", "backslashreplace")
