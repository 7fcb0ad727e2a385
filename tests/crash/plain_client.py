"""A client of one connection that never retries: each call is one request and says what the broker answered."""

from __future__ import annotations

import time

from tests.conformance.raw import Wire
from tests.sim.batches import decode_all, encode

from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from lowwater.wire.messages.delete_topics import DeleteTopicsRequest
from lowwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from lowwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TIMEOUT_MS = 30_000
FETCH_BYTES = 8 << 20
PRODUCE_VERSION, FETCH_VERSION, CREATE_VERSION, DELETE_VERSION = 9, 12, 5, 4
ACKS_ALL = -1


def connect(bootstrap: str) -> Wire:
    host, _, port = bootstrap.rpartition(":")
    return Wire((host, int(port)))


def create_topic(wire: Wire, name: str, partitions: int = 1, **settings: str) -> None:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    answer = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), CREATE_VERSION)
    assert answer.topics[0].error_code == 0, answer.topics[0]


def delete_topic(wire: Wire, name: str) -> None:
    answer = wire.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS), DELETE_VERSION)
    assert answer.responses[0].error_code == 0, answer.responses[0]


def produce_request(
    topic: str, value: bytes, *, partition: int = 0, acks: int = ACKS_ALL, timestamp: int | None = None
) -> ProduceRequest:
    stamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    data = PartitionProduceData(index=partition, records=encode([(stamp, None, value)]))
    topic_data = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(transactional_id=None, acks=acks, timeout_ms=TIMEOUT_MS, topic_data=topic_data)


def produce(wire: Wire, topic: str, value: bytes, *, partition: int = 0, acks: int = ACKS_ALL) -> tuple[int, int]:
    """(error code, offset) of one record."""
    answer = wire.ask(produce_request(topic, value, partition=partition, acks=acks), PRODUCE_VERSION)
    result = answer.responses[0].partition_responses[0]
    return result.error_code, result.base_offset


def fetch_request(topic: str, offset: int, *, partition: int = 0, max_bytes: int = FETCH_BYTES) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics, forgotten_topics_data=[])


def read_all(wire: Wire, topic: str, partition: int = 0) -> dict[int, bytes | None]:
    """Every value by its offset, from the log start to the end."""
    values: dict[int, bytes | None] = {}
    offset, end = 0, 1
    while offset < end:
        answer = wire.ask(fetch_request(topic, offset, partition=partition), FETCH_VERSION)
        result = answer.responses[0].partitions[0]
        assert result.error_code == 0, result
        batches = list(decode_all(bytes(result.records or b"")))
        end = result.high_watermark
        if not batches:
            break
        values.update((one.offset, one.value) for batch in batches for one in batch.records)
        offset = batches[-1].last_offset + 1
    return values
