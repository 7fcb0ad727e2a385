"""Short forms of the requests that the protocol suites send over and over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.raw import Wire

from lowwater.errors import ErrorCode
from lowwater.wire.messages import (
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from lowwater.wire.messages.metadata import MetadataRequestTopic
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.records import Record, build_batch

VISIBLE_TIMEOUT_S = 60
NO_ID = bytes(16)
UNKNOWN_ID = bytes(range(16))
BY_ID_SINCE = 13
NO_SESSION = (0, -1)


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what follows an answered request with a delay: Apache Kafka's metadata does."""
    deadline = time.monotonic() + VISIBLE_TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "did not come true in time"


def now_ms() -> int:
    return int(time.time() * 1000)


def batch_of(*values: bytes | None, key: bytes | None = b"k", timestamp: int | None = None, **header: Any) -> bytearray:
    """A batch with these values; `header` as `build_batch` takes it."""
    stamp = now_ms() if timestamp is None else timestamp
    return build_batch([Record(offset, stamp, key, value, ()) for offset, value in enumerate(values)], **header)


def metadata(wire: Wire, *topics: str, version: int = 13, auto_create: bool = False, **more: Any) -> Any:
    asked = [MetadataRequestTopic(name=name) for name in topics]
    return wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=auto_create, **more), version)


def topic_id(wire: Wire, topic: str) -> bytes:
    return bytes(metadata(wire, topic).topics[0].topic_id)


def produce_request(
    topic: str, records: Any, *, partition: int = 0, acks: int = -1, id: bytes = NO_ID, **more: Any
) -> ProduceRequest:
    data = TopicProduceData(
        name=topic, topic_id=id, partition_data=[PartitionProduceData(index=partition, records=records)]
    )
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data], **more)


def produce(wire: Wire, topic: str, records: Any, *, version: int = 9, **more: Any) -> Any:
    """The answer for the one partition."""
    id = topic_id(wire, topic) if version >= BY_ID_SINCE else NO_ID
    answer = wire.ask(produce_request(topic, records, id=id, **more), version)
    return answer.responses[0].partition_responses[0]


@dataclass(frozen=True, slots=True)
class Ask:
    """What to fetch of one partition."""

    topic: str
    offset: int = 0
    partition: int = 0
    bytes_max: int = 1 << 20
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    id: bytes = NO_ID


def fetch_request(
    *asks: Ask, session: tuple[int, int] = NO_SESSION, min_bytes: int = 0, wait_ms: int = 0, **more: Any
) -> FetchRequest:
    topics = [
        FetchTopic(
            topic=ask.topic,
            topic_id=ask.id,
            partitions=[
                FetchPartition(
                    partition=ask.partition,
                    fetch_offset=ask.offset,
                    partition_max_bytes=ask.bytes_max,
                    current_leader_epoch=ask.leader_epoch,
                    last_fetched_epoch=ask.last_fetched_epoch,
                )
            ],
        )
        for ask in asks
    ]
    session_id, session_epoch = session
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=topics,
        session_id=session_id,
        session_epoch=session_epoch,
        forgotten_topics_data=more.pop("forgotten", []),
        **more,
    )


def fetch(wire: Wire, *asks: Ask, version: int = 12, **more: Any) -> Any:
    """The whole response."""
    return wire.ask(fetch_request(*asks, **more), version)


def fetch_one(wire: Wire, ask: Ask, *, version: int = 12, **more: Any) -> Any:
    """The answer for the one partition; errors of the whole request are not expected."""
    answer = fetch(wire, ask, version=version, **more)
    assert answer.error_code == 0
    return answer.responses[0].partitions[0]


def size_of(records: Any) -> int:
    """Bytes of a records field, which is null, a buffer or a list of them."""
    if records is None:
        return 0
    parts = records if isinstance(records, list) else [records]
    return sum(len(part) for part in parts)


def look_up(
    wire: Wire,
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    version: int = 11,
    leader_epoch: int = -1,
    **more: Any,
) -> Any:
    wish = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wish])], **more)
    return wire.ask(request, version).topics[0].partitions[0]


def new_producer(wire: Wire) -> tuple[int, int]:
    """A fresh producer id and its epoch. Apache Kafka asks for patience while it fetches its first block of ids."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answer = wire.ask(request)
    while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        answer = wire.ask(request)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def names(topics: Sequence[Any]) -> set[str]:
    return {topic.name for topic in topics}
