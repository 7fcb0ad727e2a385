"""Produce v3-13: append one batch per partition and answer at the durability asked for.

acks 0 wants no reply, 1 is written, all (-1) is fsynced. v13 names topics by id. v0-2 are advertised, not served: older
librdkafka turns compression off when it does not see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.partition import Partition
from lowwater.broker.pending import Pending
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode, WireError
from lowwater.log.admission import RefusedRecordsError
from lowwater.log.partition_log import PartitionLog
from lowwater.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from lowwater.wire.records import TRANSACTIONAL

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

TOPIC_IDS_SINCE = 13
ZSTD_SINCE = 7
NO_REPLY, WRITTEN, DURABLE = 0, 1, -1
ATTRIBUTES_LOW_BYTE = 22
# As in Kafka: who calls itself so may write to internal topics, at its own risk.
ADMIN_CLIENT_ID = "__admin_client"
# A producer whose state was deleted with its records can tell so by the log start.
TELLING_LOG_START = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TIMESTAMP,
)


@handles(ProduceRequest, pipelines=True)
def produce(
    broker: Broker, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Pending[ProduceResponse | None] | None:
    job = ProduceJob(broker, request, context)
    job.append_all()
    broker.appended()
    if request.acks == NO_REPLY:
        if job.failed:
            # The client cannot be told otherwise that its records were not taken.
            raise WireError(f"a Produce with acks=0 failed: {job.failed}")
        return None
    if not job.unflushed:
        return job.response
    answer: Pending[ProduceResponse | None] = Pending()
    broker.commits.flushed(job.unflushed).on_done(lambda done: answer.resolve(job.settled(done.result())))
    return answer


class ProduceJob:
    """One Produce request: every partition is appended or refused by itself."""

    __slots__ = (
        "_acks",
        "_broker",
        "_by_id",
        "_may_write_internal",
        "_now_ms",
        "_request",
        "_waiting",
        "_zstd_allowed",
        "failed",
        "response",
        "unflushed",
    )

    def __init__(self, broker: Broker, request: ProduceRequest, context: RequestContext) -> None:
        self._broker = broker
        self._request = request
        self._acks = request.acks
        self._by_id = context.api_version >= TOPIC_IDS_SINCE
        self._zstd_allowed = context.api_version >= ZSTD_SINCE
        self._may_write_internal = context.client_id == ADMIN_CLIENT_ID
        self._now_ms = broker.clock.now_ms()
        self.response = ProduceResponse(responses=[])
        self.unflushed: list[tuple[PartitionLog, int]] = []
        self._waiting: list[tuple[PartitionLog, PartitionProduceResponse]] = []
        self.failed: ApiError | None = None

    def append_all(self) -> None:
        for topic in self._request.topic_data:
            key = topic.topic_id if self._by_id else topic.name
            answers = [self._append(key, data) for data in topic.partition_data]
            self.response.responses.append(
                TopicProduceResponse(topic_id=topic.topic_id, partition_responses=answers)
                if self._by_id
                else TopicProduceResponse(name=topic.name, partition_responses=answers)
            )

    def _append(self, topic: str | bytes, data: PartitionProduceData) -> PartitionProduceResponse:
        partition = None
        try:
            partition = self._broker.partition(topic, data.index)
            self._check_acks()
            if partition.is_internal and not self._may_write_internal:
                raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic is the broker's own")
            if data.records is None or not len(data.records):
                raise ApiError(ErrorCode.INVALID_RECORD, "a Produce must hold one record batch per partition")
            if self._request.transactional_id is None and _is_transactional(data.records):
                raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the request has no transactional id")
            appended = partition.append(data.records, self._now_ms, zstd_allowed=self._zstd_allowed)
        except ApiError as error:
            self.failed = error
            return _refusal(data.index, error, partition)
        answer = PartitionProduceResponse(
            index=data.index,
            error_code=0,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start,
        )
        if self._broker.waits_for_flush(self._acks):
            self.unflushed.append((partition.log, appended.last_offset + 1))
            self._waiting.append((partition.log, answer))
        return answer

    def _check_acks(self) -> None:
        """`min.insync.replicas` is not looked at: it never asks for more replicas than a topic has, and that is one."""
        if self._acks not in (NO_REPLY, WRITTEN, DURABLE):
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is 0, 1 or -1 (all), not {self._acks}")

    def settled(self, failures: dict[PartitionLog, BaseException]) -> ProduceResponse:
        """The response after the flush: a log whose fsync failed answers so, although it was written."""
        for log, answer in self._waiting:
            if log in failures:
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                answer.base_offset = -1
                answer.error_message = str(failures[log])
        return self.response


def _is_transactional(batch: memoryview) -> bool:
    return len(batch) > ATTRIBUTES_LOW_BYTE and bool(batch[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL)


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
