"""A cluster and a fetcher of ours, for tests that look at what comes out of them; and rows to be read."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.fetching.events import Event
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.network import Network
from lowwater.types import TopicPartition
from lowwater.wire.messages import DeleteRecordsRequest, DeleteTopicsRequest, ProduceRequest
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from lowwater.wire.messages.delete_topics import DeleteTopicState
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.records import HEADER_SIZE, BatchHeader, Record, build_batch, read_records

LIMIT_MS = 60_000
NOW_MS = 1_700_000_000_000
BY_NAME = (9, 12)

T = TypeVar("T")


class Client:
    """One client of the broker under test, in the thread of the test."""

    def __init__(self, bootstrap: str, **settings: Any) -> None:
        given = {"bootstrap.servers": bootstrap} | {name.replace("_", "."): value for name, value in settings.items()}
        config = ClientConfig(given)
        self.driver = BlockingDriver(config)
        self.network = Network(config, self.driver)
        self.cluster = Cluster(self.network)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.driver.run(coroutine, LIMIT_MS)

    def close(self) -> None:
        self.network.close()
        self.driver.close()

    # ---- what there is to read

    def write(self, one: TopicPartition, count: int, *, value: bytes = b"v", at_ms: int = NOW_MS) -> int:
        """One batch of so many records, a millisecond apart; its first offset."""
        records = [Record(at, at_ms + at, b"%d" % at, value) for at in range(count)]
        data = PartitionProduceData(index=one.partition, records=bytes(build_batch(records, base_offset=0)))
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=LIMIT_MS,
            topic_data=[TopicProduceData(name=one.topic, partition_data=[data])],
        )
        response = self.run(self._ask_leader(one, request, BY_NAME))
        [answer] = response.responses[0].partition_responses
        assert answer.error_code == 0
        offset: int = answer.base_offset
        return offset

    def delete_records(self, one: TopicPartition, before: int) -> None:
        partition = DeleteRecordsPartition(partition_index=one.partition, offset=before)
        topics = [DeleteRecordsTopic(name=one.topic, partitions=[partition])]
        response = self.run(self._ask_leader(one, DeleteRecordsRequest(topics=topics, timeout_ms=LIMIT_MS)))
        assert response.topics[0].partitions[0].error_code == 0

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=LIMIT_MS)
        [answer] = self.run(self._ask_any(request)).responses
        assert answer.error_code == 0

    async def _ask_leader(self, one: TopicPartition, request: Any, versions: tuple[int, int] | None = None) -> Any:
        [node] = await self.cluster.leaders([one])
        return await self.network.ask(node, request, versions=versions)

    async def _ask_any(self, request: Any) -> Any:
        return await self.network.ask_any(request)


@contextlib.contextmanager
def client(bootstrap: str, **settings: Any) -> Iterator[Client]:
    made = Client(bootstrap, **settings)
    try:
        yield made
    finally:
        made.close()


class Reading:
    """A fetcher, and what it gave: by partition the offsets of records, and everything that happened."""

    def __init__(self, client: Client, starts: Mapping[TopicPartition, int], **options: Any) -> None:
        self.client = client
        self.fetcher = Fetcher(client.cluster, **options)
        self.offsets: dict[TopicPartition, list[int]] = {one: [] for one in starts}
        self.values: dict[TopicPartition, list[bytes | None]] = {one: [] for one in starts}
        self.events: list[Event] = []
        self.fetcher.add(starts)

    def until(self, is_enough: Callable[[Reading], bool]) -> Reading:
        deadline = time.monotonic() + LIMIT_MS / 1000
        while not is_enough(self):
            assert time.monotonic() < deadline, f"after {LIMIT_MS} ms there are {self.offsets}, {self.events}"
            self.take(1_000)
        return self

    def take(self, timeout_ms: int) -> None:
        self.client.driver.wait(self.fetcher.fetched(), timeout_ms)
        for fetched in self.fetcher.take():
            for one, position in zip(fetched.slices, fetched.positions, strict=True):
                rows = list(_rows(bytes(one.records), one.fetch_offset, one.aborted))
                self.offsets[one.partition] += [row.offset for row in rows]
                self.values[one.partition] += [row.value for row in rows]
                assert position > one.fetch_offset
            self.events += fetched.events
            fetched.release()

    def until_rows(self, count: int) -> Reading:
        return self.until(lambda reading: sum(map(len, reading.offsets.values())) >= count)

    def until_events(self, count: int) -> Reading:
        return self.until(lambda reading: len(reading.events) >= count)

    def close(self) -> None:
        self.client.run(self.fetcher.aclose())


def _rows(records: bytes, fetch_offset: int, aborted: Any) -> Iterator[Record]:
    """Of one slice, without those that an abort took back, as the plainest of readers would find them."""
    waiting, undone = sorted(aborted, key=lambda each: each[1]), set()
    at = 0
    while len(records) - at >= HEADER_SIZE:
        header = BatchHeader.parse(records, at)
        batch = records[at : at + header.size]
        if len(batch) < header.size:
            return
        at += header.size
        while waiting and waiting[0][1] < header.next_offset:
            undone.add(waiting.pop(0)[0])
        if header.is_control:
            undone.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in undone):
            yield from (row for row in read_records(batch) if row.offset >= fetch_offset)
