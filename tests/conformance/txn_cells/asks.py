"""Requests about a transaction in short forms; who asks is an actor, whose producer id and epoch the cast knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol

from tests.conformance.asking import NO_SESSION, batch_of

from lowwater.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from lowwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from lowwater.wire.messages.describe_producers import TopicRequest
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from lowwater.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from lowwater.wire.records import TRANSACTIONAL

MISSING_TOPIC = "missing"
UNCOMMITTED, COMMITTED = 0, 1
BATCHED_SINCE = 4
KEYS_SINCE = 4
TRANSACTION_CLIENT = 1
MANY_BYTES = 1 << 20


class Cast(Protocol):
    """What a run has come to know."""

    transactional_id: str
    topic: str
    group: str
    coordinator_epoch: int

    def producer_id(self, actor: str) -> int: ...

    def epoch(self, actor: str) -> int: ...

    def next_sequence(self, producer_id: int, epoch: int, partition: int) -> int: ...

    def topic_id(self, topic: str) -> bytes: ...


@dataclass(frozen=True)
class Ask:
    """`v`: asked in this version alone. The producer is the actor's own, its epoch moved by `epoch_by`.

    An `id` with a plus is another one of the same run.
    """

    actor: str = "A"
    _: KW_ONLY
    v: int | None = None
    id: str | None = None
    producer_of: str | None = None
    epoch_by: int = 0
    topic: str | None = None
    request_type: ClassVar[type[Any]]
    touches_logs: ClassVar[bool] = False

    def request(self, cast: Cast, version: int) -> Any: ...  # each kind of request has its own

    def transactional_id(self, cast: Cast) -> str:
        if self.id is None:
            return cast.transactional_id
        return cast.transactional_id + self.id if self.id.startswith("+") else self.id

    def producer(self, cast: Cast) -> tuple[int, int]:
        return cast.producer_id(self.producer_of or self.actor), cast.epoch(self.actor) + self.epoch_by

    def topic_name(self, cast: Cast) -> str:
        return self.topic or cast.topic


@dataclass(frozen=True)
class Init(Ask):
    """`knows`: the producer id and epoch are sent along, as by a producer that goes on after an error."""

    _: KW_ONLY
    timeout_ms: int = 60_000
    knows: bool = False
    request_type = InitProducerIdRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = self.producer(cast) if self.knows else (-1, -1)
        return InitProducerIdRequest(
            transactional_id=self.transactional_id(cast),
            transaction_timeout_ms=self.timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )


@dataclass(frozen=True)
class InitPlain(Ask):
    """An idempotent producer without transactions."""

    request_type = InitProducerIdRequest

    def request(self, cast: Cast, version: int) -> Any:
        return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


@dataclass(frozen=True)
class Add(Ask):
    """Partitions are added, or only looked for (`verify`, since v4)."""

    _: KW_ONLY
    partitions: Sequence[int] = (0,)
    more: Sequence[str] = ()
    verify: bool = False
    request_type = AddPartitionsToTxnRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = self.producer(cast)
        names = (self.topic_name(cast), *self.more)
        topics = [AddPartitionsToTxnTopic(name=name, partitions=list(self.partitions)) for name in names]
        if version < BATCHED_SINCE:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id(cast),
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id(cast),
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=self.verify,
            topics=topics,
        )
        return AddPartitionsToTxnRequest(transactions=[transaction])


@dataclass(frozen=True)
class AddMany(Ask):
    """For this id and others of the run at once (since v4); `verify` is for the last alone."""

    _: KW_ONLY
    others: Sequence[tuple[str, str]] = ()
    verify: bool = False
    request_type = AddPartitionsToTxnRequest

    def request(self, cast: Cast, version: int) -> Any:
        asked = [Add(self.actor), *(Add(actor, id=id) for actor, id in self.others)]
        transactions = [each.request(cast, version).transactions[0] for each in asked]
        transactions[-1].verify_only = self.verify
        return AddPartitionsToTxnRequest(transactions=transactions)


@dataclass(frozen=True)
class AddOffsets(Ask):
    _: KW_ONLY
    group: str | None = None
    request_type = AddOffsetsToTxnRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = self.producer(cast)
        return AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id(cast),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=cast.group if self.group is None else self.group,
        )


@dataclass(frozen=True)
class CommitOffset(Ask):
    _: KW_ONLY
    offset: int = 7
    request_type = TxnOffsetCommitRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = self.producer(cast)
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=self.offset, committed_metadata="n")
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id(cast),
            group_id=cast.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic_name(cast), partitions=[part])],
        )


@dataclass(frozen=True)
class ReadOffset(Ask):
    """What the group has committed; `stable`: unless a transaction is about to change it."""

    _: KW_ONLY
    stable: bool = False
    request_type = OffsetFetchRequest

    def request(self, cast: Cast, version: int) -> Any:
        topics = [OffsetFetchRequestTopics(name=cast.topic, partition_indexes=[0])]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=cast.group, topics=topics)], require_stable=self.stable
        )


@dataclass(frozen=True)
class End(Ask):
    _: KW_ONLY
    commit: bool = True
    request_type = EndTxnRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = self.producer(cast)
        return EndTxnRequest(
            transactional_id=self.transactional_id(cast),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self.commit,
        )


@dataclass(frozen=True)
class Write(Ask):
    """One record, `transactional` or not; with the name of the transaction in the request unless that is `unnamed`."""

    _: KW_ONLY
    partition: int = 0
    transactional: bool = True
    unnamed: bool = False
    sequence: int | None = None
    timestamp: int | None = None
    request_type = ProduceRequest
    touches_logs = True

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = self.producer(cast)
        sequence = cast.next_sequence(producer_id, epoch, self.partition) if self.sequence is None else self.sequence
        batch = batch_of(
            b"of " + self.actor.encode(),
            timestamp=self.timestamp,
            attributes=TRANSACTIONAL if self.transactional else 0,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        topic = self.topic_name(cast)
        data = PartitionProduceData(index=self.partition, records=memoryview(batch))
        return ProduceRequest(
            transactional_id=self.transactional_id(cast) if self.transactional and not self.unnamed else None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, topic_id=cast.topic_id(topic), partition_data=[data])],
        )


@dataclass(frozen=True)
class WriteBoth(Ask):
    """One record to each of two partitions; the second may be `outside` of the transaction, or of nobody."""

    _: KW_ONLY
    second_partition: int = 1
    outside: bool = False
    of_nobody: bool = False
    request_type = ProduceRequest
    touches_logs = True

    def request(self, cast: Cast, version: int) -> Any:
        first = Write(self.actor).request(cast, version)
        producer_of = "nobody" if self.of_nobody else None
        second = Write(
            self.actor, partition=self.second_partition, transactional=not self.outside, producer_of=producer_of
        ).request(cast, version)
        first.topic_data[0].partition_data += second.topic_data[0].partition_data
        return first


@dataclass(frozen=True)
class Mark(Ask):
    """A marker, as coordinators write them, and administrators who abort a hanging transaction.

    Its coordinator's epoch is that of the broker's own, moved by `coordinator_by`.
    """

    _: KW_ONLY
    commit: bool = False
    partition: int = 0
    coordinator_by: int = 0
    transaction_version: int = 0
    request_type = WriteTxnMarkersRequest
    touches_logs = True

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = self.producer(cast)
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=self.commit,
            topics=[WritableTxnMarkerTopic(name=self.topic_name(cast), partition_indexes=[self.partition])],
            coordinator_epoch=cast.coordinator_epoch + self.coordinator_by,
            transaction_version=self.transaction_version,
        )
        return WriteTxnMarkersRequest(markers=[marker])


@dataclass(frozen=True)
class Read(Ask):
    """A Fetch of what is there."""

    _: KW_ONLY
    isolation: int = COMMITTED
    offset: int = 0
    partition: int = 0
    request_type = FetchRequest
    touches_logs = True

    def request(self, cast: Cast, version: int) -> Any:
        session_id, session_epoch = NO_SESSION
        part = FetchPartition(partition=self.partition, fetch_offset=self.offset, partition_max_bytes=MANY_BYTES)
        topic = FetchTopic(topic=cast.topic, topic_id=cast.topic_id(cast.topic), partitions=[part])
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=self.isolation,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[topic],
        )


@dataclass(frozen=True)
class Bound(Ask):
    """ListOffsets by a time, or -1 for the end, -2 the start, -3 the largest timestamp."""

    _: KW_ONLY
    isolation: int = COMMITTED
    timestamp: int = -1
    partition: int = 0
    request_type = ListOffsetsRequest
    touches_logs = True

    def request(self, cast: Cast, version: int) -> Any:
        part = ListOffsetsPartition(partition_index=self.partition, timestamp=self.timestamp)
        topic = ListOffsetsTopic(name=cast.topic, partitions=[part])
        return ListOffsetsRequest(isolation_level=self.isolation, topics=[topic])


@dataclass(frozen=True)
class Producers(Ask):
    _: KW_ONLY
    partition: int = 0
    request_type = DescribeProducersRequest
    touches_logs = True

    def request(self, cast: Cast, version: int) -> Any:
        topic = TopicRequest(name=self.topic_name(cast), partition_indexes=[self.partition])
        return DescribeProducersRequest(topics=[topic])


@dataclass(frozen=True)
class Describe(Ask):
    """Asked until the transaction is not about to end: that lasts as long as it lasts."""

    request_type = DescribeTransactionsRequest

    def request(self, cast: Cast, version: int) -> Any:
        return DescribeTransactionsRequest(transactional_ids=[self.transactional_id(cast)])


@dataclass(frozen=True)
class DescribeMany(Ask):
    _: KW_ONLY
    ids: Sequence[str] = ()
    request_type = DescribeTransactionsRequest

    def request(self, cast: Cast, version: int) -> Any:
        named = [cast.transactional_id + each for each in self.ids]
        return DescribeTransactionsRequest(transactional_ids=named)


@dataclass(frozen=True)
class Until(Describe):
    """On the way to a state: wait for it."""

    _: KW_ONLY
    state: str = ""


@dataclass(frozen=True)
class Listed(Ask):
    """Answers are cut down to the id of the run: others are about. `{id}` in the pattern stands for it."""

    _: KW_ONLY
    states: Sequence[str] = ()
    producers: Sequence[str] = ()
    longer_than_ms: int = -1
    pattern: str | None = None
    request_type = ListTransactionsRequest

    def request(self, cast: Cast, version: int) -> Any:
        pattern = None if self.pattern is None else self.pattern.replace("{id}", cast.transactional_id)
        return ListTransactionsRequest(
            state_filters=list(self.states),
            producer_id_filters=[cast.producer_id(actor) for actor in self.producers],
            duration_filter=self.longer_than_ms,
            transactional_id_pattern=pattern,
        )


@dataclass(frozen=True)
class Find(Ask):
    request_type = FindCoordinatorRequest

    def request(self, cast: Cast, version: int) -> Any:
        name = self.transactional_id(cast)
        if version < KEYS_SINCE:
            return FindCoordinatorRequest(key=name, key_type=TRANSACTION_CLIENT)
        return FindCoordinatorRequest(coordinator_keys=[name], key_type=TRANSACTION_CLIENT)
