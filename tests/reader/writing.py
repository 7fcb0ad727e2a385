"""Writing what scenarios say to a real broker, batch by batch, and what else they do to its topics."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Producer
from tests.reader.logs import NO_TIME

from lowwater import Admin, NewTopic, TopicPartition
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import broker_error
from lowwater.client.network import Network
from lowwater.client.offsets import LATEST, list_offsets
from lowwater.wire.messages import ProduceRequest
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.records import Record, build_batch

PATIENCE_S = 60
_numbers = itertools.count(1)
# Scenarios write times of long ago and of far ahead; neither is to be refused or deleted.
TIME_BOUND = "message.timestamp.after.max.ms"
ANY_TIME = {"retention.ms": "-1", TIME_BOUND: str(2**63 - 1)}


class Writer:
    """One to whom any topic and partition may be given."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        config = ClientConfig({"bootstrap.servers": bootstrap})
        self._driver = BlockingDriver(config)
        self._cluster = Cluster(Network(config, self._driver))
        self.admin = Admin(bootstrap)
        self._transactional: Producer | None = None
        self._in_transaction = TopicPartition("", 0)

    def close(self) -> None:
        self.admin.close()
        self._cluster.network.close()
        self._driver.close()

    def create(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        settings = {**ANY_TIME, **(config or {})}
        new = NewTopic(topic, partitions=partitions, replication_factor=1, config=settings)
        failed = self.admin.create_topics([new]).failed.get(topic)
        if failed is not None and TIME_BOUND in str(failed):  # an old Kafka, which takes any time
            del settings[TIME_BOUND]
            failed = self.admin.create_topics([new]).failed.get(topic)
        if failed is not None:
            raise failed

    def add_partitions(self, topic: str, count: int) -> None:
        self.admin.create_partitions({topic: count}).checked()
        self._cluster.outdate([topic])

    def write(self, one: TopicPartition, things: Sequence[Any]) -> None:
        for thing in things:
            if isinstance(thing, dict):
                self._transaction(one, thing)
            else:
                self._batch(one, NO_TIME if thing is None else thing)

    def _batch(self, one: TopicPartition, timestamp: int) -> None:
        batch = bytes(build_batch([Record(0, timestamp, None, b"v")], base_offset=0))
        self._driver.run(self._cluster.retry.run(lambda _: self._produce(one, batch)))

    async def _produce(self, one: TopicPartition, batch: bytes) -> None:
        """One try. A partition that was just made has no leader for a moment."""
        [leader] = await self._cluster.leaders([one])
        data = PartitionProduceData(index=one.partition, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=one.topic, partition_data=[data])]
        )
        response = await self._cluster.network.ask(leader, request, versions=(3, 12))
        [answer] = response.responses[0].partition_responses
        if answer.error_code:
            self._cluster.outdate([one.topic])
            raise broker_error(answer.error_code, topic=one.topic, partition=one.partition)

    # ---- transactions

    def _transaction(self, one: TopicPartition, thing: dict[str, list[int]]) -> None:
        [(how, times)] = thing.items()
        self.begin(one, times)
        self.end(commit=how == "commit")

    def begin(self, one: TopicPartition, times: Sequence[int]) -> None:
        """Write in a transaction, and leave it open."""
        if self._transactional is None:
            name = f"scenario-{os.getpid()}-{next(_numbers)}"
            self._transactional = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": name})
            self._transactional.init_transactions(PATIENCE_S)
        self._transactional.begin_transaction()
        self._in_transaction = one
        for timestamp in times:
            self._transactional.produce(one.topic, b"v", partition=one.partition, timestamp=timestamp)
        assert self._transactional.flush(PATIENCE_S) == 0

    def end(self, *, commit: bool) -> None:
        assert self._transactional is not None
        if commit:
            self._transactional.commit_transaction(PATIENCE_S)
        else:
            self._transactional.abort_transaction(PATIENCE_S)
        self._driver.run(self._ended(), PATIENCE_S * 1000)

    async def _ended(self) -> None:
        """Kafka answers before it writes the marker; what a scenario writes next is to lie behind it."""
        one = self._in_transaction
        while True:
            visible, end = [
                (await list_offsets(self._cluster, {one: LATEST}, isolation=isolation))[one].offset
                for isolation in ("read_committed", "read_uncommitted")
            ]
            if visible == end:
                return
