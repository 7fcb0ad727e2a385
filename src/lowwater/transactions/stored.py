"""A transactional id as it is stored in `__transaction_state`."""

from __future__ import annotations

from itertools import groupby

from lowwater.errors import WireError
from lowwater.outcome import StateRecord
from lowwater.transactions.records import TransactionLogPartitions, TransactionLogValue, decode, encode
from lowwater.transactions.state import State, Transaction
from lowwater.types import TopicPartition

# The level of transaction.version from which on the log tells producer ids other than the current one.
TELLS_PRODUCER_IDS = 1


def to_record(transaction: Transaction, level: int) -> StateRecord:
    """`level` is that of `transaction.version`. What cannot be left out is written in the newer form at level 0 too."""
    if transaction.next_producer_id != -1:
        level = max(level, TELLS_PRODUCER_IDS)
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=_by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
    )
    if level >= TELLS_PRODUCER_IDS:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return encode(transaction.transactional_id, value, transaction_version=level)


def forgetting(transactional_id: str) -> StateRecord:
    return encode(transactional_id, None)


def from_record(record: StateRecord) -> tuple[str, Transaction | None] | None:
    """None for the value of an id that is forgotten; None altogether for a key of another kind."""
    read = decode(record)
    if read is None:
        return None
    transactional_id, value = read
    return transactional_id, None if value is None else _transaction(transactional_id, value)


def _by_topic(transaction: Transaction) -> list[TransactionLogPartitions] | None:
    if transaction.state is State.EMPTY:
        return None
    return [
        TransactionLogPartitions(topic=topic, partition_ids=[one.partition for one in some])
        for topic, some in groupby(sorted(transaction.partitions), lambda one: one.topic)
    ]


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    try:
        state = State(value.transaction_status)
    except ValueError:
        raise WireError(f"{transactional_id!r} is in state {value.transaction_status}, which nobody knows") from None
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(one.topic, index)
            for one in value.transaction_partitions or ()
            for index in one.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
