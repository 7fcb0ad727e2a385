"""Produce v3-13: append one batch per partition and answer at the durability asked for.

acks 0 wants no reply, 1 is written, all (-1) is fsynced; what is part of a transaction is always fsynced. v11 knows
TRANSACTION_ABORTABLE; v12 adds its partitions to the transaction itself; v13 names topics by id. v0-2 are advertised,
not served: older librdkafka turns compression off when it does not see them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from lowwater.broker.partition import Partition
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.writers import Refusals, Writer, told_to_produce
from lowwater.errors import ApiError, ErrorCode, WireError
from lowwater.log.admission import RefusedRecordsError
from lowwater.log.partition_log import Appended, PartitionLog
from lowwater.pending import Pending, run
from lowwater.types import TopicPartition
from lowwater.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from lowwater.wire.records import MAGIC_POSITION, TRANSACTIONAL

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

TOPIC_IDS_SINCE = 13
ADDS_PARTITIONS_SINCE = 12
ABORTABLE_SINCE = 11
ZSTD_SINCE = 7
NO_REPLY, WRITTEN, DURABLE = 0, 1, -1
_MAGIC = 2
ATTRIBUTES_LOW_BYTE = 22
PRODUCER_AT, HEADER_SIZE = 43, 61
_PRODUCER = struct.Struct(">qh")
# As in Kafka: who calls itself so may write to internal topics, at its own risk.
ADMIN_CLIENT_ID = "__admin_client"
# A producer whose state was deleted with its records can tell so by the log start.
TELLING_LOG_START = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_TIMESTAMP,
)


@handles(ProduceRequest, pipelines=True)
def produce(
    broker: Broker, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Pending[ProduceResponse | None] | None:
    job = ProduceJob(broker, request, context)
    job.append_all()
    broker.appended()
    return run(_later(broker, job)) if job.late else _answer(broker, job)


async def _later(broker: Broker, job: ProduceJob) -> ProduceResponse | None:
    await job.append_late()
    broker.appended()
    answer = _answer(broker, job)
    return await answer if isinstance(answer, Pending) else answer


def _answer(broker: Broker, job: ProduceJob) -> ProduceResponse | Pending[ProduceResponse | None] | None:
    if job.acks == NO_REPLY:
        if job.failed:
            # The client cannot be told otherwise that its records were not taken.
            raise WireError(f"a Produce with acks=0 failed: {job.failed}")
        return None
    if not job.unflushed:
        return job.response
    answer: Pending[ProduceResponse | None] = Pending()
    broker.commits.flushed(job.unflushed).on_done(lambda done: answer.resolve(job.settled(done.result())))
    return answer


class LateBatch(NamedTuple):
    """A batch that may not be written before the coordinator was asked, and the place of its answer."""

    topic: str | bytes
    partition: int
    batch: bytearray
    answers: list[PartitionProduceResponse]
    position: int


class ProduceJob:
    """One Produce request: every partition is appended or refused by itself."""

    __slots__ = (
        "_broker",
        "_by_id",
        "_may_write_internal",
        "_now_ms",
        "_request",
        "_version",
        "_waiting",
        "_writer",
        "_zstd_allowed",
        "acks",
        "failed",
        "late",
        "response",
        "unflushed",
    )

    def __init__(self, broker: Broker, request: ProduceRequest, context: RequestContext) -> None:
        self._broker = broker
        self._request = request
        self._version = context.api_version
        self._by_id = context.api_version >= TOPIC_IDS_SINCE
        self._zstd_allowed = context.api_version >= ZSTD_SINCE
        self._may_write_internal = context.client_id == ADMIN_CLIENT_ID
        self._now_ms = broker.clock.now_ms()
        self._writer: Writer | None = None
        self.acks = request.acks
        self.late: list[LateBatch] = []
        self.response = ProduceResponse(responses=[])
        self.unflushed: list[tuple[PartitionLog, int]] = []
        self._waiting: list[tuple[PartitionLog, PartitionProduceResponse]] = []
        self.failed: ApiError | None = None

    def append_all(self) -> None:
        """Everything but what the transaction coordinator has to be asked about."""
        for topic in self._request.topic_data:
            key = topic.topic_id if self._by_id else topic.name
            answers: list[PartitionProduceResponse] = []
            for data in topic.partition_data:
                answers.append(self._append(key, data, answers))
            self.response.responses.append(
                TopicProduceResponse(topic_id=topic.topic_id, partition_responses=answers)
                if self._by_id
                else TopicProduceResponse(name=topic.name, partition_responses=answers)
            )

    def _append(
        self, topic: str | bytes, data: PartitionProduceData, answers: list[PartitionProduceResponse]
    ) -> PartitionProduceResponse:
        partition = None
        try:
            partition = self._broker.partition(topic, data.index)
            self._check_acks()
            if partition.is_internal and not self._may_write_internal:
                raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic is the broker's own")
            if data.records is None or not len(data.records):
                raise ApiError(ErrorCode.INVALID_RECORD, "a Produce must hold one record batch per partition")
            if _is_transactional(data.records):
                if self._must_ask(partition, data.records):
                    # The request's bytes do not outlive this call.
                    self.late.append(LateBatch(topic, data.index, bytearray(data.records), answers, len(answers)))
                    return PartitionProduceResponse(index=data.index, base_offset=-1)
                return self._accepted(partition, self._append_in_transaction(partition, data.records), DURABLE)
            appended = partition.append(data.records, self._now_ms, zstd_allowed=self._zstd_allowed)
        except ApiError as error:
            self.failed = error
            return _refusal(data.index, error, partition)
        return self._accepted(partition, appended, self.acks)

    def _accepted(self, partition: Partition, appended: Appended, acks: int) -> PartitionProduceResponse:
        answer = PartitionProduceResponse(
            index=partition.index,
            error_code=0,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start,
        )
        if self._broker.waits_for_flush(acks):
            self.unflushed.append((partition.log, appended.last_offset + 1))
            self._waiting.append((partition.log, answer))
        return answer

    # -- transactions

    def _must_ask(self, partition: Partition, batch: memoryview) -> bool:
        """Whether this batch may begin its producer's transaction in the partition, or stands behind one that may."""
        if self._request.transactional_id is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the request has no transactional id")
        if len(batch) < HEADER_SIZE:
            return False  # it is refused for that
        producer_id, producer_epoch = _PRODUCER.unpack_from(batch, PRODUCER_AT)
        writer = Writer(self._request.transactional_id, producer_id, producer_epoch)
        if self._writer not in (None, writer):
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "a request holds batches of one producer only")
        self._writer = writer
        is_behind = self._broker.transactions.turns.is_busy(producer_id)
        return is_behind or not partition.has_transaction(producer_id, producer_epoch)

    def _append_in_transaction(self, partition: Partition, batch: memoryview, *, admitted: bool = False) -> Appended:
        return partition.append(
            batch,
            self._now_ms,
            zstd_allowed=self._zstd_allowed,
            in_transaction=admitted,
            epoch_bumped=self._version >= ADDS_PARTITIONS_SINCE,
        )

    async def append_late(self) -> None:
        """What is left, when the coordinator allows it, in the order in which requests of this producer came."""
        assert self._writer is not None
        turns, producer_id = self._broker.transactions.turns, self._writer.producer_id
        await turns.take(producer_id)
        try:
            places = [self._place_of(late) for late in self.late]
            refusals = await self._refusals(self._writer, [place for place in places if place is not None])
            self._now_ms = self._broker.clock.now_ms()
            for late, place in zip(self.late, places, strict=True):
                late.answers[late.position] = self._append_one_late(late, place, refusals)
        finally:
            turns.end(producer_id)

    async def _refusals(self, writer: Writer, places: list[TopicPartition]) -> Refusals:
        """Asked again behind every wait, so that a zombie writes nothing."""
        if not places:
            return {}
        try:
            return await self._broker.transactions.admit(writer, places, adds=self._version >= ADDS_PARTITIONS_SINCE)
        except ApiError as error:
            return dict.fromkeys(places, error.code)

    def _place_of(self, late: LateBatch) -> TopicPartition | None:
        try:
            return self._broker.partition(late.topic, late.partition).log.topic_partition
        except ApiError:
            return None  # deleted while it stood in line

    def _append_one_late(
        self, late: LateBatch, place: TopicPartition | None, refusals: Refusals
    ) -> PartitionProduceResponse:
        partition = None
        try:
            if place is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted")
            if place in refusals:
                raise ApiError(self._told(refusals[place]), f"{place} is not written to: {refusals[place].name}")
            partition = self._broker.partition(late.topic, late.partition)
            appended = self._append_in_transaction(partition, memoryview(late.batch), admitted=True)
        except ApiError as error:
            self.failed = error
            return _refusal(late.partition, error, partition)
        return self._accepted(partition, appended, DURABLE)

    def _told(self, code: ErrorCode) -> ErrorCode:
        return told_to_produce(
            code, knows_abortable=self._version >= ABORTABLE_SINCE, adds=self._version >= ADDS_PARTITIONS_SINCE
        )

    def _check_acks(self) -> None:
        """`min.insync.replicas` is not looked at: it never asks for more replicas than a topic has, and that is one."""
        if self.acks not in (NO_REPLY, WRITTEN, DURABLE):
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is 0, 1 or -1 (all), not {self.acks}")

    def settled(self, failures: dict[PartitionLog, BaseException]) -> ProduceResponse:
        """The response after the flush: a log whose fsync failed answers so, although it was written."""
        for log, answer in self._waiting:
            if log in failures:
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                answer.base_offset = -1
                answer.error_message = str(failures[log])
        return self.response


def _is_transactional(batch: memoryview) -> bool:
    """Where the attributes stand, older formats have a part of a timestamp, or of a key."""
    if len(batch) <= ATTRIBUTES_LOW_BYTE or batch[MAGIC_POSITION] != _MAGIC:
        return False
    return bool(batch[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL)


def _refusal(index: int, error: ApiError, partition: Partition | None) -> PartitionProduceResponse:
    """A client that is told which records are at fault fails those alone with that reason."""
    indexes = error.indexes if isinstance(error, RefusedRecordsError) else ()
    log_start = -1
    if partition is not None and (indexes or error.code in TELLING_LOG_START):
        log_start = partition.log.log_start
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=log_start,
        record_errors=[BatchIndexAndErrorMessage(batch_index=one) for one in indexes],
        error_message=error.detail or None,
    )
