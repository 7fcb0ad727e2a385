"""The reader's own flow on virtual time, fed by a broker that answers each Fetch when and with what a test says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.reader.logs import PRODUCER_ID, StagedLog, named
from tests.unit.client.virtual import APIS, LATER, Asked, VirtualDriver, network_of, versions_answer

from lowwater.client.cluster import Cluster
from lowwater.client.flow import Flow
from lowwater.client.reading import Options, Reading
from lowwater.client.wanted import wanted
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchResponse, ListOffsetsResponse, MetadataResponse
from lowwater.wire.messages.fetch import AbortedTransaction, FetchableTopicResponse, PartitionData
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from lowwater.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FETCH = 1
LATEST, EARLIEST = -1, -2


class Stage:
    """One broker that leads everything."""

    def __init__(self, logs: Mapping[TopicPartition, StagedLog], **settings: Any) -> None:
        self.logs = dict(logs)
        self.driver = VirtualDriver(self._answer)
        self.cluster = Cluster(network_of(self.driver, **settings))
        self.waiting: list[Asked] = []
        self.reading: Reading | None = None

    def open(self, *, start: Any = "earliest", stop: Any = None, **options: Any) -> Reading:
        """A reader of all topics, as far as it comes without any Fetch being answered."""
        topics = sorted({one.topic for one in self.logs})
        self.reading = Reading(self.cluster, wanted(topics, start=start, stop=stop), Options(**options))
        self.run(self.reading.begin())
        return self.reading

    def run(self, coroutine: Any) -> None:
        """As far as it comes without time passing, which has to be to its end."""
        flow = Flow(coroutine)
        self.driver.time.settle()
        flow.result()

    def close(self) -> None:
        assert self.reading is not None
        flow = Flow(self.reading.close())
        self.driver.time.settle()
        flow.cancel()

    # ---- answering

    def _answer(self, asked: Asked) -> Any:
        match asked.api.name:
            case "ApiVersions":
                known = {key: (api.version_min, api.version_max) for key, api in APIS.items()}
                return versions_answer(known | {FETCH: (4, 12)})
            case "Metadata":
                return self._metadata()
            case "ListOffsets":
                return self._offsets(asked.request)
        assert asked.api.name == "Fetch"
        self.waiting.append(asked)
        return LATER

    def _metadata(self) -> MetadataResponse:
        topics: dict[str, list[MetadataResponsePartition]] = {}
        for one in self.logs:
            topics.setdefault(one.topic, []).append(
                MetadataResponsePartition(
                    partition_index=one.partition, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
                )
            )
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="a", port=1)],
            topics=[MetadataResponseTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )

    def _offsets(self, request: Any) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=self._offset(TopicPartition(topic.name, each.partition_index), each.timestamp),
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _offset(self, one: TopicPartition, at: int) -> int:
        assert at in (LATEST, EARLIEST), "stages know no times"
        return self.logs[one].end if at == LATEST else self.logs[one].start

    # ---- what a test says

    def asked(self) -> dict[TopicPartition, int]:
        """Partitions that are being fetched, and from where."""
        self.waiting = [asked for asked in self.waiting if asked.line.is_open]
        return {
            TopicPartition(topic.topic, each.partition): each.fetch_offset
            for asked in self.waiting
            for topic in asked.request.topics
            for each in topic.partitions
        }

    def fetch(self, counts: Mapping[TopicPartition, int]) -> None:
        """Answer with so many batches of these; others that were asked for in the same request get none."""
        asked_for = self.asked()
        missing = [one for one in counts if one not in asked_for]
        assert not missing, f"{missing} is not being fetched; what is: {list(asked_for)}"
        for asked in list(self.waiting):
            partitions = {
                TopicPartition(topic.topic, each.partition): each.fetch_offset
                for topic in asked.request.topics
                for each in topic.partitions
            }
            chosen = {one: counts[one] for one in partitions if one in counts}
            if chosen:
                self.waiting.remove(asked)
                asked.answer(self._fetched(partitions, chosen))
        self.driver.time.settle()

    def expire(self) -> None:
        """Fetches that wait at the broker come back with nothing."""
        for asked in [asked for asked in self.waiting if asked.request.max_wait_ms]:
            self.waiting.remove(asked)
            asked.answer(FetchResponse(responses=[]))
        self.driver.time.settle()

    def _fetched(self, partitions: Mapping[TopicPartition, int], counts: Mapping[TopicPartition, int]) -> FetchResponse:
        topics: dict[str, list[PartitionData]] = {}
        for one, offset in partitions.items():
            topics.setdefault(one.topic, []).append(self._data(one, offset, counts.get(one, 0)))
        return FetchResponse(
            responses=[FetchableTopicResponse(topic=name, partitions=parts) for name, parts in topics.items()]
        )

    def _data(self, one: TopicPartition, offset: int, count: int) -> PartitionData:
        log = self.logs[one]
        aborted = [
            AbortedTransaction(producer_id=PRODUCER_ID, first_offset=first)
            for first, marker in log.aborted
            if marker >= offset
        ]
        return PartitionData(
            partition_index=one.partition,
            high_watermark=log.end,
            last_stable_offset=log.end,
            log_start_offset=log.start,
            aborted_transactions=aborted,
            records=[log.read(offset, count)],
        )

    def poll(self) -> Any:
        """One poll that waits for nothing: a batch, or None."""
        assert self.reading is not None
        self.run(self.reading.poll(0))
        return self.reading.take()

    def drain(self) -> list[str]:
        """Polls until nothing more comes: the rows by name."""
        rows: list[str] = []
        while (batch := self.poll()) is not None:
            rows += names(batch)
        return rows


def names(batch: Any) -> list[str]:
    if batch is None:
        return []
    times = batch.column("timestamp").cast("int64").to_pylist()
    topics, partitions = batch.column("topic").to_pylist(), batch.column("partition").to_pylist()
    return [named(TopicPartition(*place), time) for *place, time in zip(topics, partitions, times, strict=True)]
