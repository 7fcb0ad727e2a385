"""Two brokers, played by the test: they keep logs, check sequences as Kafka's do, and misbehave when told to."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from tests.unit.client.virtual import LATER, Asked, Line, VirtualDriver, network_of, versions_answer

from lowwater.client.cluster import Cluster
from lowwater.client.config import Address
from lowwater.client.flow import Flow
from lowwater.client.producing.core import Producing
from lowwater.client.producing.reports import Report
from lowwater.client.producing.rules import rules_of
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import InitProducerIdResponse, MetadataResponse, ProduceResponse
from lowwater.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from lowwater.wire.messages.produce import PartitionProduceResponse, TopicProduceResponse
from lowwater.wire.records import BatchHeader, Record, read_records

T = TypeVar("T")

NODES = {1: Address("a", 1), 2: Address("b", 2)}
TOPIC = "orders"
TOPIC_ID = b"orders' own id.."
KEPT = 5


@dataclass
class Writer:
    """What a partition remembers of a producer: its epoch, the next sequence, and its last batches."""

    epoch: int
    next_sequence: int = 0
    recent: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Log:
    records: list[Record] = field(default_factory=list)
    writers: dict[int, Writer] = field(default_factory=dict)

    def append(self, data: bytes) -> tuple[int, int]:
        """(error, base offset), with the checks that brokers make of an idempotent producer."""
        header = BatchHeader.parse(data)
        if header.producer_id >= 0:
            refused = self._check(header)
            if refused is not None:
                return refused
        offset = len(self.records)
        self.records += read_records(data)
        return 0, offset

    def _check(self, header: BatchHeader) -> tuple[int, int] | None:
        writer = self.writers.get(header.producer_id)
        if writer is None:
            writer = self.writers[header.producer_id] = Writer(header.producer_epoch, header.base_sequence)
        if header.producer_epoch < writer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch > writer.epoch:
            writer.epoch, writer.next_sequence, writer.recent = header.producer_epoch, 0, []
        for sequence, offset in writer.recent:
            if sequence == header.base_sequence:
                return 0, offset
        if header.base_sequence != writer.next_sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        writer.next_sequence = header.base_sequence + header.record_count
        writer.recent = [*writer.recent, (header.base_sequence, len(self.records))][-KEPT:]
        return None


Whim = Callable[[Asked], Any]
"""What to do with a request instead of serving it: an answer, LATER for none, or None to serve it."""


class Played:
    """`whims` are used up, one for each request of their API; `more` answers what is not known here."""

    def __init__(self, partitions: int = 1, **settings: Any) -> None:
        self.driver = VirtualDriver(self.answer)
        self.logs = {TopicPartition(TOPIC, each): Log() for each in range(partitions)}
        self.leaders = dict.fromkeys(self.logs, 1)
        self.topic_id = TOPIC_ID
        self.versions: dict[int, tuple[int, int]] | None = None
        self.whims: dict[str, list[Whim]] = {}
        self.more: dict[str, Whim] = {}
        self.silent: list[Line] = []
        self.producer_ids = iter(range(70, 1_000))
        self.network = network_of(self.driver, bootstrap_servers="a:1,b:2", **settings)
        self.core = Producing(Cluster(self.network), rules_of(self.network.config))

    # ---- the test's side

    def run(self, coroutine: Coroutine[Any, Any, T], within_ms: int = 300_000) -> T:
        """What becomes of it, while time passes."""
        flow = Flow(coroutine)
        for _ in range(within_ms // 10):
            if flow.done:
                return flow.result()
            self.driver.time.advance(10)
        raise AssertionError(f"not done after {within_ms} ms")

    def send(self, values: list[bytes], *, partition: int = 0, topic: str = TOPIC) -> Report:
        """Rows of one call, to one partition; they are taken when this returns."""
        columns = {"value": pa.array(values, pa.binary()), "partition": pa.array([partition] * len(values), pa.int32())}
        return self.send_batch(pa.RecordBatch.from_pydict(columns), topic)

    def send_batch(self, batch: Any, topic: str | None = TOPIC) -> Report:
        report = Report()
        self.core.expect(report)
        try:
            self.run(self.core.accept(topic, batch, report))
        finally:
            report.complete()
        return report

    def settle(self, report: Report) -> Report:
        return self.run(self._settled(report))

    async def _settled(self, report: Report) -> Report:
        return await report.settled

    def values(self, partition: int = 0) -> list[bytes | None]:
        return [record.value for record in self.logs[TopicPartition(TOPIC, partition)].records]

    def asked(self, name: str) -> list[Asked]:
        return self.driver.requests(name)

    def whim(self, api: str, *whims: Whim) -> None:
        self.whims.setdefault(api, []).extend(whims)

    # ---- the brokers' side

    def answer(self, asked: Asked) -> Any:
        name = asked.api.name
        if asked.line in self.silent:
            return LATER
        if self.whims.get(name):
            answer = self.whims[name].pop(0)(asked)
            if answer is not None:
                return answer
        if name in self.more:
            return self.more[name](asked)
        return {
            "ApiVersions": lambda _: versions_answer(self.versions),
            "Metadata": lambda _: self.metadata(),
            "InitProducerId": lambda _: self.identity(),
            "Produce": self.produce,
        }[name](asked)

    def metadata(self) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(
                partition_index=one.partition, leader_id=node, leader_epoch=1, replica_nodes=[1, 2], isr_nodes=[1, 2]
            )
            for one, node in self.leaders.items()
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node, host=at.host, port=at.port) for node, at in NODES.items()],
            topics=[MetadataResponseTopic(name=TOPIC, topic_id=self.topic_id, partitions=partitions)],
        )

    def identity(self) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=next(self.producer_ids), producer_epoch=0)

    def produce(self, asked: Asked) -> Any:
        return self.produced(asked, lambda one, data: self.append(asked, one, data))

    def append(self, asked: Asked, one: TopicPartition, data: bytes) -> tuple[int, int]:
        if NODES.get(self.leaders[one]) != asked.line.address:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        return self.logs[one].append(data)

    def produced(self, asked: Asked, serve: Callable[[TopicPartition, bytes], tuple[int, int]]) -> Any:
        """An answer with what `serve` says of each partition; none when none is wanted."""
        topics = []
        for topic in asked.request.topic_data:
            name = topic.name or {self.topic_id: TOPIC}[topic.topic_id]
            answers = []
            for each in topic.partition_data:
                code, offset = serve(TopicPartition(name, each.index), bytes(each.records))
                answers.append(PartitionProduceResponse(index=each.index, error_code=code, base_offset=offset))
            topics.append(TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=answers))
        return LATER if asked.request.acks == 0 else ProduceResponse(responses=topics)

    # ---- whims

    def refuse(self, code: ErrorCode) -> Whim:
        """Nothing is written."""
        return lambda asked: self.produced(asked, lambda one, data: (code, -1))

    def serve(self, asked: Asked) -> Any:
        return None

    def hang_up(self, asked: Asked) -> Any:
        """The connection breaks before the request is served."""
        self.driver.call_soon(asked.line.drop)
        return LATER

    def write_and_hang_up(self, asked: Asked) -> Any:
        """It is served, but nobody hears of it."""
        self.produce(asked)
        return self.hang_up(asked)

    def say_nothing(self, asked: Asked) -> Any:
        """Nor to anything behind it on this connection: answers keep their order."""
        self.silent.append(asked.line)
        return LATER


def rows(first: int, count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(first, first + count)]
