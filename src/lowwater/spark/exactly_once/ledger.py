"""The sinks' ledger: a compacted topic, one key for each sink. Read and written without kernels, which take a second to
load: for each micro-batch Spark starts two processes that need it.
"""

from __future__ import annotations

import logging

from lowwater.client.admin.configs import describe_configs
from lowwater.client.admin.topic_changes import NewTopic, create_topics
from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.coordinator import TRANSACTION, NodeOf
from lowwater.client.errors import (
    AuthorizationError,
    BrokerError,
    ClientError,
    FencedError,
    TransactionError,
    broker_error,
)
from lowwater.client.network import COORDINATING
from lowwater.client.offsets import EARLIEST, LATEST, list_offsets_many
from lowwater.client.producing.ending import Prepared
from lowwater.client.producing.transaction_requests import add_partitions, added_codes
from lowwater.client.producing.transactions import PRODUCE_VERSIONS
from lowwater.errors import ErrorCode
from lowwater.spark.exactly_once.errors import LedgerError, SinkTakenError
from lowwater.spark.exactly_once.fencing import Levels, end_one, patiently
from lowwater.spark.exactly_once.ledger_log import LedgerLog
from lowwater.spark.exactly_once.state import Fence, SinkState, Transaction, to_value
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest, ProduceRequest
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.records import TRANSACTIONAL, Record, build_batch
from lowwater.wire.schema import ZERO_UUID

NAME = "__lowwater_sinks"
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1024 * 1024),  # what is in the last segment is not compacted, and has to be read
    "min.cleanable.dirty.ratio": "0.1",
}
TAIL_OFFSETS = 400
"""A sink that is in use has its last record among these; else all are read."""
_PIECE_BYTES = 1024 * 1024
_FETCH_VERSIONS, _FETCH_BY_NAME = (4, 18), (4, 12)
_PRODUCE_BY_NAME = 12
_log = logging.getLogger("lowwater.spark")


class Ledger:
    """Of one sink, in one process."""

    def __init__(self, cluster: Cluster, topic: str, sink: str) -> None:
        self._cluster = cluster
        self._where = TopicPartition(topic, 0)
        self._sink = sink
        self._sequences: dict[Fence, int] = {}

    # ---- making it

    async def ensure(self) -> None:
        """Made when it is not there. LedgerError says what to do when it cannot be, or would forget."""
        topic = self._where.topic
        if not await self._cluster.present([topic]):
            await self._make()
        # What is checked is what somebody else may have made, or a broker by itself.
        try:
            entries = (await describe_configs(self._cluster, [topic])).checked()
        except AuthorizationError as error:
            _log.warning("whether the topic %s is compacted cannot be checked: %s", topic, error)
            return
        policy = next(iter(entries.values()))["cleanup.policy"].value or ""
        if policy.replace(" ", "") != "compact":
            raise LedgerError(
                f"the topic {topic} keeps what sinks have committed and must not forget it, but its cleanup.policy is "
                f"{policy}: set it to compact"
            )

    async def _make(self) -> None:
        topic = self._where.topic
        try:
            (await create_topics(self._cluster, [NewTopic(topic, partitions=1, config=CONFIG)])).checked()
        except BrokerError as error:
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                return
            raise LedgerError(
                f"exactlyOnce needs the topic {topic}, which is not there and cannot be created ({error.what}); have "
                f"it created with one partition and cleanup.policy=compact, or name another one by sinkLedger"
            ) from error

    # ---- reading it

    async def read(self) -> SinkState:
        """Once the sink is taken."""
        if not await self._cluster.present([self._where.topic]):
            await self.ensure()
        first, end = await self._bounds()
        for start in dict.fromkeys((max(first, end - TAIL_OFFSETS), first)):
            log = await self._read_into(LedgerLog(self._sink), start, end)
            if log.has_record:
                break
        log.check_settled(self._where.topic)
        if not log.has_record:
            await self.ensure()  # a sink's first time
        return log.state()

    async def read_all(self) -> dict[str, SinkState]:
        """Every sink's, as far as it is decided; none when there is no ledger."""
        if not await self._cluster.present([self._where.topic]):
            return {}
        return (await self._read_into(LedgerLog(), *await self._bounds())).states()

    async def _bounds(self) -> tuple[int, int]:
        asked = [{self._where: EARLIEST}, {self._where: LATEST}]
        first, end = await list_offsets_many(self._cluster, asked, isolation="read_uncommitted")
        return first[self._where].offset, end[self._where].offset

    async def _read_into(self, log: LedgerLog, start: int, end: int) -> LedgerLog:
        log.next_offset = start
        while log.next_offset < end:
            before = log.next_offset
            await self._cluster.retry.run(lambda left_ms: self._fetch(log, end, left_ms))
            if log.next_offset == before:
                break  # compaction took all up to the end
        return log

    async def _fetch(self, log: LedgerLog, end: int, left_ms: float) -> None:
        node = await self._leader(left_ms)
        topic_id = self._topic_id()
        wanted = FetchPartition(
            partition=self._where.partition,
            current_leader_epoch=self._cluster.epoch(self._where),
            fetch_offset=log.next_offset,
            partition_max_bytes=_PIECE_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_PIECE_BYTES,
            isolation_level=0,
            topics=[FetchTopic(topic=self._where.topic, topic_id=topic_id, partitions=[wanted])],
        )
        versions = _FETCH_BY_NAME if topic_id == ZERO_UUID else _FETCH_VERSIONS
        leased = await self._cluster.network.ask(node, request, versions=versions, timeout_ms=left_ms)
        try:
            self._raise(leased.response.error_code)
            [data] = [data for topic in leased.response.responses for data in topic.partitions]
            self._raise(data.error_code)
            before = log.next_offset
            if data.records:
                log.feed(data.records)
            if log.next_offset == before and data.high_watermark < end:
                # A new leader does not know yet how far others had it, and says that there is nothing more.
                self._raise(ErrorCode.OFFSET_NOT_AVAILABLE)
        finally:
            leased.release()

    # ---- writing it

    async def write(self, fence: Fence, levels: Levels, state: SinkState) -> Fence:
        """In a transaction of the sink's own; who we are after it. SinkTakenError: somebody has taken it meanwhile."""
        own = Transaction(self._sink, *fence)
        coordinator = NodeOf(self._cluster, self._sink, TRANSACTION)
        per_transaction = await levels.of(await coordinator.node())
        try:
            if not per_transaction:
                await self._cluster.retry.run(lambda left_ms: self._add(coordinator, own, left_ms))
            batch = self._batch(fence, to_value(state))
            await self._cluster.retry.run(lambda left_ms: self._produce(batch, per_transaction, left_ms))
            return await end_one(self._cluster, levels, own, commit=True)
        except (FencedError, TransactionError) as error:
            raise SinkTakenError(self._sink, error) from error

    async def _add(self, coordinator: NodeOf, own: Transaction, left_ms: float) -> None:
        request = add_partitions(Prepared(*own), [self._where])

        async def attempt() -> None:
            answer = await coordinator.ask(
                request,
                versions=(0, 3),
                timeout_ms=coordinator.limit_ms(left_ms),
                lane=COORDINATING,
                code=lambda answer: next(iter(added_codes(answer).values()), 0),
            )
            self._raise(added_codes(answer)[self._where])

        await patiently(self._cluster, attempt)

    def _batch(self, fence: Fence, value: bytes) -> bytearray:
        sequence = self._sequences.get(fence, 0)
        self._sequences[fence] = sequence + 1
        record = Record(0, self._cluster.network.driver.now_ms(), self._sink.encode(), value)
        return build_batch(
            [record],
            attributes=TRANSACTIONAL,
            producer_id=fence.producer_id,
            producer_epoch=fence.epoch,
            base_sequence=sequence,
        )

    async def _produce(self, batch: bytearray, per_transaction: bool, left_ms: float) -> None:
        await patiently(self._cluster, lambda: self._produce_once(batch, per_transaction, left_ms))

    async def _produce_once(self, batch: bytearray, per_transaction: bool, left_ms: float) -> None:
        node = await self._leader(left_ms)
        topic_id = self._topic_id()
        data = TopicProduceData(
            name=self._where.topic,
            topic_id=topic_id,
            partition_data=[PartitionProduceData(index=self._where.partition, records=memoryview(batch))],
        )
        limit_ms = min(left_ms, self._cluster.network.config.int("request.timeout.ms"))
        request = ProduceRequest(transactional_id=self._sink, acks=-1, timeout_ms=int(limit_ms), topic_data=[data])
        lowest, highest = PRODUCE_VERSIONS[per_transaction]
        if topic_id == ZERO_UUID:
            highest = min(highest, _PRODUCE_BY_NAME)
        answer = await self._cluster.network.ask(node, request, versions=(lowest, highest), timeout_ms=limit_ms)
        [placed] = [each for topic in answer.responses for each in topic.partition_responses]
        if placed.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._raise(placed.error_code)

    # ---- where it is

    async def _leader(self, left_ms: float) -> int:
        [node] = await self._cluster.leaders([self._where], left_ms)
        return node

    def _topic_id(self) -> bytes:
        topic = self._cluster.known(self._where.topic)
        return ZERO_UUID if topic is None else topic.id

    def _raise(self, code: int) -> None:
        if not code:
            return
        error: ClientError = broker_error(code, topic=self._where.topic, partition=self._where.partition)
        if code in OUTDATED:
            self._cluster.outdate([self._where.topic])
            error.retriable = True
        raise error
