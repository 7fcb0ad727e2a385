"""What a shard is asked, with quirks of old versions by name, and what it replies when it does not refuse.

Which code an old client is told for PRODUCER_FENCED is a matter of the handlers. A request that names no transactional
id is not asked at all: it is refused with INVALID_REQUEST before.
"""

from __future__ import annotations

from typing import NamedTuple

from lowwater.transactions.state import Transaction
from lowwater.types import TopicPartition

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


class InitProducer(NamedTuple):
    """InitProducerId with a transactional id; the reply is a `ProducerIdentity`.

    `producer_id` and `producer_epoch` are those the producer thinks it has, -1 when it begins. `spare_producer_id` is
    an id that nobody has, None unless `needs_producer_id` said that one may be needed.
    """

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    spare_producer_id: int | None = None


class AddPartitions(NamedTuple):
    """AddPartitionsToTxn, AddOffsetsToTxn, or a Produce that adds its partition itself; the reply is None.

    `transaction_version`: 2 when this client ends its transactions by moving on to the next epoch.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    transaction_version: int


class VerifyPartitions(NamedTuple):
    """AddPartitionsToTxn with verify_only: are these in the transaction? The reply is a dict of ErrorCode by partition.

    It is `TransactionShard.holds`, put as a question that is answered when what it saw is durable.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


class EndTransaction(NamedTuple):
    """EndTxn; the reply is the `ProducerIdentity` of the next transaction, given when the end is decided for good.

    `transaction_version`: 2 when it moves the producer on to its next epoch. `spare_producer_id` as in `InitProducer`.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    transaction_version: int
    spare_producer_id: int | None = None


class MarkersWritten(NamedTuple):
    """The answer to `Markers`: they are durable in every partition. Nobody waits for a reply."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class DescribeTransaction(NamedTuple):
    """DescribeTransactions of one id; the reply is its `Transaction`."""

    transactional_id: str


class ListTransactions(NamedTuple):
    """ListTransactions; the reply is a `TransactionList`. Empty filters, no pattern and a duration below 0 pass all."""

    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    longer_than_ms: int = -1
    pattern: str | None = None


class ProducerIdentity(NamedTuple):
    """With what a producer goes on."""

    producer_id: int
    producer_epoch: int


class TransactionList(NamedTuple):
    """What passed all filters, and the filters for states that nobody knows."""

    transactions: tuple[Transaction, ...]
    unknown_states: tuple[str, ...]
