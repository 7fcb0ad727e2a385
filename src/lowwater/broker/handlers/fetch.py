"""Fetch v4-18: stored bytes of many partitions, at once or when enough has arrived.

v7 adds sessions; v12 the check for diverging epochs; v13 names topics by id. Batches leave as they are stored.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lowwater.broker.fetch_sessions import FetchPlan, TopicKey, Wanted
from lowwater.broker.partition import Partition
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.partition_log import PartitionLog, Slice
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

TOPIC_IDS_SINCE = 13
READ_COMMITTED = 1


@handles(FetchRequest)
def fetch(broker: Broker, request: FetchRequest, context: RequestContext) -> FetchResponse | Pending[FetchResponse]:
    by_id = context.api_version >= TOPIC_IDS_SINCE
    try:
        plan = broker.fetch_sessions.plan(
            request.session_id,
            request.session_epoch,
            _wanted(request, by_id),
            _forgotten(request, by_id),
            uses_topic_ids=by_id,
            now_ms=broker.clock.monotonic_ms(),
        )
    except ApiError as error:
        return FetchResponse(error_code=error.code, session_id=0, responses=[])
    job = FetchJob(broker, request, plan)
    if request.replica_id >= 0 or (request.replica_state is not None and request.replica_state.replica_id >= 0):
        return job.refuse_all(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    job.read()
    if job.is_enough():
        return job.answer()
    return job.park(request.max_wait_ms)


def _wanted(request: FetchRequest, by_id: bool) -> list[Wanted]:
    return [
        Wanted(
            topic.topic_id if by_id else topic.topic,
            one.partition,
            one.fetch_offset,
            one.partition_max_bytes,
            one.current_leader_epoch,
            one.last_fetched_epoch,
        )
        for topic in request.topics
        for one in topic.partitions
    ]


def _forgotten(request: FetchRequest, by_id: bool) -> list[tuple[TopicKey, int]]:
    return [
        (topic.topic_id if by_id else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


class FetchJob:
    """One Fetch under way: reads, parks when that is too little, answers exactly once."""

    __slots__ = (
        "_answers",
        "_broker",
        "_cold",
        "_failed",
        "_is_full",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_missing",
        "_parked_in",
        "_pending",
        "_plan",
        "_retry_due",
        "_size",
        "_timer",
        "committed_only",
    )

    def __init__(self, broker: Broker, request: FetchRequest, plan: FetchPlan) -> None:
        self._broker = broker
        self._plan = plan
        self.committed_only = request.isolation_level == READ_COMMITTED
        self._max_bytes = min(request.max_bytes, broker.fetch_bytes_max)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._max_wait_ms = request.max_wait_ms
        self._pending: Pending[FetchResponse] = Pending()
        self._parked_in: list[Partition] = []
        self._timer: Timer | None = None
        self._retry_due = False
        self._missing = 0
        self._reset()

    def _reset(self) -> None:
        self._answers: list[tuple[Wanted, PartitionData]] = []
        self._cold: list[tuple[PartitionData, Slice]] = []
        self._size = 0
        self._failed = False
        self._is_full = False

    # ---- reading

    def read(self) -> None:
        """Read every wanted partition once, within the limits of the request."""
        self._reset()
        for wanted in self._plan.wanted:
            if self._is_full and self._plan.incremental:
                break  # those behind it come first the next time, with what is to be told of them
            try:
                data = self._read_one(wanted)
            except ApiError as error:
                self._failed = True
                data = PartitionData(
                    partition_index=wanted.partition, error_code=error.code, high_watermark=-1, records=b""
                )
            except StorageError:
                self._failed = True
                data = PartitionData(
                    partition_index=wanted.partition,
                    error_code=ErrorCode.KAFKA_STORAGE_ERROR,
                    high_watermark=-1,
                    records=b"",
                )
            if data is not None:
                self._answers.append((wanted, data))

    def _read_one(self, wanted: Wanted) -> PartitionData | None:
        """The answer for one partition; None when its session has nothing new to tell."""
        partition = self._broker.partition(wanted.topic, wanted.partition)
        log = partition.log
        if wanted.current_leader_epoch >= 0:
            partition.check_leader_epoch(wanted.current_leader_epoch)
        if wanted.last_fetched_epoch >= 0 and (diverging := self._diverging(partition, wanted)) is not None:
            self._failed = True
            return PartitionData(
                partition_index=wanted.partition,
                high_watermark=log.log_end,
                last_stable_offset=log.last_stable,
                log_start_offset=log.log_start,
                diverging_epoch=diverging,
                records=b"",
            )
        part = self._records(partition, wanted)
        if part is None and self._plan.incremental and not wanted.has_news(log.log_end, log.log_start):
            return None
        data = PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.log_end,
            last_stable_offset=log.last_stable,
            log_start_offset=log.log_start,
            aborted_transactions=self._aborted(log, wanted, part) if self.committed_only else None,
            records=part.buffers if part is not None and part.cached else b"",
        )
        if part is not None and not part.cached:
            self._cold.append((data, part))
        return data

    def _records(self, partition: Partition, wanted: Wanted) -> Slice | None:
        """What can be sent of this partition, or None; bytes of it may still be on disk."""
        log = partition.log
        upto = log.last_stable if self.committed_only else log.log_end
        nothing_yet = self._size == 0
        left = self._max_bytes - self._size
        limit = min(wanted.max_bytes, left)
        if not nothing_yet and (self._is_full or limit <= 0):
            # No room for its records, but an offset out of range is told all the same.
            log.read(wanted.fetch_offset, 0, upto=log.log_start, min_one=False)
            return None
        part = log.read(wanted.fetch_offset, max(limit, 0), upto=upto, min_one=nothing_yet)
        if not part.size:
            # Batches leave whole. To look in all the others for one that fits costs more than another request.
            self._is_full = not nothing_yet and limit < wanted.max_bytes and wanted.fetch_offset < upto
            return None
        self._size += part.size
        self._is_full = self._size >= self._max_bytes
        return part

    @staticmethod
    def _aborted(log: PartitionLog, wanted: Wanted, part: Slice | None) -> list[AbortedTransaction]:
        """What the client has to leave out of these records. Asked now: compaction may take it with them."""
        if part is None:
            return []
        aborted = log.aborted_in_read(wanted.fetch_offset, part.size)
        return [AbortedTransaction(producer_id=one, first_offset=first) for one, first in aborted]

    @staticmethod
    def _diverging(partition: Partition, wanted: Wanted) -> EpochEndOffset | None:
        """Where the client's history leaves ours, if it does (KIP-595)."""
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if end_offset < 0:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"there was no leader epoch {wanted.last_fetched_epoch}")
        if epoch >= wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
            return None
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)

    def refuse_all(self, code: ErrorCode) -> FetchResponse:
        self._answers = [
            (wanted, PartitionData(partition_index=wanted.partition, error_code=code, high_watermark=-1, records=b""))
            for wanted in self._plan.wanted
        ]
        return self._response()

    # ---- waiting

    def is_enough(self) -> bool:
        has_all = self._size >= self._min_bytes or self._is_full or not self._plan.wanted
        return self._failed or has_all or self._max_wait_ms <= 0

    def park(self, max_wait_ms: int) -> Pending[FetchResponse]:
        """Wait until the wanted partitions grow by what is missing, or the time is up."""
        self._timer = self._broker.scheduler.call_later(max_wait_ms, self._time_is_up)
        self._register()
        self._pending.on_abandon = self._let_go
        return self._pending

    def _let_go(self) -> None:
        """The client is gone."""
        self._unregister()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _register(self) -> None:
        self._missing = self._min_bytes - self._size
        for wanted in self._plan.wanted:
            partition = self._broker.partition(wanted.topic, wanted.partition)
            partition.waiting_fetches.add(self)
            self._parked_in.append(partition)

    def _unregister(self) -> None:
        for partition in self._parked_in:
            partition.waiting_fetches.discard(self)
        self._parked_in.clear()

    def grew(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0 and not self._retry_due:
            self._retry_due = True
            # Not at once: the appends of this turn are answered together.
            self._broker.scheduler.call_soon(self._retry)

    def _retry(self) -> None:
        if self._pending.done or not self._parked_in:
            return
        self._retry_due = False
        self._unregister()
        self.read()
        if self.is_enough():
            self._finish()
        else:
            self._register()

    def _time_is_up(self) -> None:
        self._timer = None
        if not self._parked_in:
            return
        self._unregister()
        self.read()
        self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        answer = self.answer()
        if isinstance(answer, Pending):
            answer.on_done(lambda done: self._pending.resolve(done.result()))
        else:
            self._pending.resolve(answer)

    # ---- answering

    def answer(self) -> FetchResponse | Pending[FetchResponse]:
        """The response; pending while pages come from disk, which would block everyone else."""
        if not self._cold:
            return self._response()
        answer: Pending[FetchResponse] = Pending()
        cold = [part for _, part in self._cold]

        def warmed(done: Pending[list[StorageError | None]]) -> None:
            self._take_warmed(done.result())
            answer.resolve(self._response())

        self._broker.offload_read(lambda: [_warm(part) for part in cold]).on_done(warmed)
        return answer

    def _take_warmed(self, failures: list[StorageError | None]) -> None:
        for (data, part), failure in zip(self._cold, failures, strict=True):
            if failure is None:
                data.records = part.buffers or b""
                continue
            logger.error("a fetch failed: %s", failure)
            data.error_code, data.high_watermark = ErrorCode.KAFKA_STORAGE_ERROR, -1

    def _response(self) -> FetchResponse:
        responses: list[FetchableTopicResponse] = []
        last_topic: TopicKey | None = None
        for wanted, data in self._answers:
            if wanted.topic != last_topic or not responses:
                responses.append(_topic_response(wanted.topic))
                last_topic = wanted.topic
            responses[-1].partitions.append(data)
            self._remember(wanted, data)
        return FetchResponse(session_id=self._plan.session_id, responses=responses)

    def _remember(self, wanted: Wanted, data: PartitionData) -> None:
        session = self._plan.session
        if session is None:
            return
        wanted.sent_high_watermark = data.high_watermark
        wanted.sent_log_start = data.log_start_offset
        if data.records:
            session.serve_last(wanted)


def _topic_response(topic: TopicKey) -> FetchableTopicResponse:
    if isinstance(topic, str):
        return FetchableTopicResponse(topic=topic, partitions=[])
    return FetchableTopicResponse(topic_id=topic, partitions=[])


def _warm(part: Slice) -> StorageError | None:
    try:
        part.warm()
    except StorageError as error:
        return error
    return None
