"""The next value of a transactional id, after each event of `table.NEXT`. Who may cause it was checked before."""

from __future__ import annotations

from dataclasses import replace

from lowwater.transactions.state import PRODUCER_EPOCH_MAX, State, Transaction
from lowwater.transactions.table import ABORT, ADD, COMMIT, FENCE, INIT, NEXT, WRITTEN
from lowwater.types import TopicPartition

MOVES_ON = 2
"""From this `transaction.version` on every end moves the producer to its next epoch."""


def created(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=0,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        started_ms=-1,
        updated_ms=now_ms,
        previous_producer_id=producer_id,
    )


def initialised(known: Transaction, producer_id: int, producer_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
    """A producer begins, with this identity."""
    return replace(
        known,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        state=NEXT[known.state, INIT],
        partitions=frozenset(),
        started_ms=-1,
        updated_ms=now_ms,
        previous_producer_id=known.producer_id,
    )


def added(known: Transaction, partitions: frozenset[TopicPartition], client_version: int, now_ms: int) -> Transaction:
    """The first partitions open the transaction."""
    return replace(
        known,
        state=NEXT[known.state, ADD],
        partitions=known.partitions | partitions,
        started_ms=known.started_ms if known.state is State.ONGOING else now_ms,
        updated_ms=now_ms,
        previous_producer_id=known.producer_id,
        client_version=client_version,
    )


def ended(known: Transaction, commit: bool, client_version: int, next_producer_id: int, now_ms: int) -> Transaction:
    """By its client. `next_producer_id` is -1 as long as this one has epochs left."""
    moves_on = client_version >= MOVES_ON
    return replace(
        known,
        producer_epoch=min(known.producer_epoch + 1, PRODUCER_EPOCH_MAX) if moves_on else known.producer_epoch,
        state=NEXT[known.state, COMMIT if commit else ABORT],
        started_ms=known.started_ms if known.state is State.ONGOING else now_ms,
        updated_ms=now_ms,
        previous_producer_id=known.producer_id,
        next_producer_id=next_producer_id,
        client_version=client_version,
    )


def fenced(known: Transaction, level: int, now_ms: int) -> Transaction:
    """Aborted by the coordinator, with an epoch that its producer does not have."""
    return replace(
        known,
        producer_epoch=min(known.producer_epoch + 1, PRODUCER_EPOCH_MAX),
        state=NEXT[known.state, FENCE],
        updated_ms=now_ms,
        previous_producer_id=known.producer_id,
        next_producer_id=-1,
        client_version=level if level >= MOVES_ON else 0,
    )


def completed(known: Transaction, now_ms: int) -> Transaction:
    """Its markers are written."""
    rotates = known.next_producer_id != -1
    return replace(
        known,
        producer_id=known.next_producer_id if rotates else known.producer_id,
        producer_epoch=0 if rotates else known.producer_epoch,
        state=NEXT[known.state, WRITTEN],
        partitions=frozenset(),
        updated_ms=now_ms,
        previous_producer_id=known.producer_id,
        next_producer_id=-1,
    )
