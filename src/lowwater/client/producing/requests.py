"""Produce as it is asked and answered: by the names of topics, since v13 by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lowwater.client.producing.calls import Batch
from lowwater.client.producing.outbox import Outbox
from lowwater.client.producing.rules import Rules
from lowwater.types import TopicPartition
from lowwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from lowwater.wire.schema import ZERO_UUID

NAMES_UNTIL = 12
VERSIONS = (3, 13)


def produce_request(rules: Rules, ids: Mapping[str, bytes], taken: Iterable[tuple[Outbox, Batch]]) -> ProduceRequest:
    """A batch for each of some partitions."""
    by_topic: dict[str, list[PartitionProduceData]] = {}
    for outbox, batch in taken:
        topic, partition = outbox.partition
        by_topic.setdefault(topic, []).append(PartitionProduceData(index=partition, records=memoryview(batch.data)))
    topics = [
        TopicProduceData(name=name, topic_id=ids.get(name, ZERO_UUID), partition_data=data)
        for name, data in by_topic.items()
    ]
    return ProduceRequest(
        transactional_id=rules.transactional_id, acks=rules.acks, timeout_ms=rules.request_ms, topic_data=topics
    )


def answers_in(response: ProduceResponse, ids: Mapping[str, bytes]) -> dict[TopicPartition, PartitionProduceResponse]:
    names = {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }
