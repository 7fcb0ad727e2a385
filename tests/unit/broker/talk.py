"""Short forms of the requests that the tests of the data plane make, and what they look at in the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.sim.batches import decode_all, encode

from lowwater.broker.partition import Partition
from lowwater.testing.virtual_time import Asked, VirtualBroker
from lowwater.wire.messages import CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, FetchResponse, ProduceRequest
from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic
from lowwater.wire.messages.produce import PartitionProduceData, PartitionProduceResponse, TopicProduceData

ALL, WRITTEN, NO_REPLY = -1, 1, 0
PRODUCE_BY_NAME, FETCH_BY_NAME = 12, 12
MUCH = 1 << 30


def create(broker: VirtualBroker, topic: str, partitions: int = 1, **settings: str) -> bytes:
    """The id of a new topic; settings with _ for the dots."""
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    wanted = CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=configs
    )
    created = broker.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000)).topics[0]
    assert created.error_code == 0, created
    return bytes(created.topic_id)


def delete(broker: VirtualBroker, topic: str) -> None:
    answer = broker.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5)
    assert answer.responses[0].error_code == 0


def partition_of(broker: VirtualBroker, topic: str, index: int = 0) -> Partition:
    return broker.broker.partition(topic, index)


# -- producing


def batch(broker: VirtualBroker, *values: bytes, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    now_ms = broker.clock.now_ms()
    return bytes(encode([(now_ms, b"k", value) for value in values], producer=producer))


def produce_request(
    data: Mapping[tuple[str, int], bytes | None], *, acks: int = ALL, transactional_id: str | None = None
) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for (topic, index), records in data.items():
        view = None if records is None else memoryview(records)
        topics.setdefault(topic, []).append(PartitionProduceData(index=index, records=view))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=name, partition_data=parts) for name, parts in topics.items()],
    )


def send(
    broker: VirtualBroker, topic: str, *values: bytes, index: int = 0, acks: int = ALL, **producer: tuple[int, int, int]
) -> Asked:
    """Begin to produce one batch."""
    records = batch(broker, *values, **producer)
    return broker.send(produce_request({(topic, index): records}, acks=acks), PRODUCE_BY_NAME)


def produce(
    broker: VirtualBroker, topic: str, *values: bytes, index: int = 0, acks: int = ALL, **producer: tuple[int, int, int]
) -> PartitionProduceResponse:
    """Produce one batch and wait for the answer."""
    sent = send(broker, topic, *values, index=index, acks=acks, **producer)
    broker.time.settle()
    return placed(sent)


def placed(sent: Asked) -> PartitionProduceResponse:
    """The answer for the only partition."""
    [topic] = sent.response.responses
    [answer] = topic.partition_responses
    assert isinstance(answer, PartitionProduceResponse)
    return answer


# -- fetching


def want(
    index: int = 0, offset: int = 0, max_bytes: int = MUCH, *, epoch: int = -1, last_epoch: int = -1
) -> FetchPartition:
    return FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )


def fetch_request(
    wants: Mapping[str, Sequence[FetchPartition]],
    *,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = MUCH,
    session: tuple[int, int] = (0, -1),
    forget: Mapping[str, Sequence[int]] | None = None,
    **fields: Any,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic=topic, partitions=list(partitions)) for topic, partitions in wants.items()],
        forgotten_topics_data=[
            ForgottenTopic(topic=topic, partitions=list(partitions)) for topic, partitions in (forget or {}).items()
        ],
        **fields,
    )


def begin_fetch(broker: VirtualBroker, topic: str, offset: int = 0, **fields: Any) -> Asked:
    return broker.send(fetch_request({topic: [want(0, offset)]}, **fields), FETCH_BY_NAME)


def fetch(broker: VirtualBroker, wants: Mapping[str, Sequence[FetchPartition]], **fields: Any) -> FetchResponse:
    answer = broker.ask(fetch_request(wants, **fields), FETCH_BY_NAME)
    assert isinstance(answer, FetchResponse)
    return answer


def fetched(answer: Any) -> dict[tuple[str, int], list[bytes | None]]:
    """The values of every partition in the answer."""
    found: dict[tuple[str, int], list[bytes | None]] = {}
    for topic in answer.responses:
        for data in topic.partitions:
            batches = decode_all(bytes(data.records or b""))
            found[topic.topic, data.partition_index] = [one.value for each in batches for one in each.records]
    return found


def codes(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, data.partition_index): data.error_code for topic in answer.responses for data in topic.partitions
    }


def values_in(broker: VirtualBroker, topic: str, index: int = 0) -> list[bytes | None]:
    """Everything that can be read of a partition, segment by segment."""
    log = partition_of(broker, topic, index).log
    offset, values = log.log_start, []
    while offset < log.log_end:
        [data] = fetch(broker, {topic: [want(index, offset)]}).responses[0].partitions
        assert data.error_code == 0, data
        batches = list(decode_all(bytes(data.records or b"")))
        if not batches:
            break
        values += [one.value for each in batches for one in each.records if one.offset >= offset]
        offset = batches[-1].last_offset + 1
    return values
