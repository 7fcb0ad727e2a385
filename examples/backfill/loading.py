"""The sample in a topic; and what is in the topic, read back: by confluent-kafka, an ordinary Kafka client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 60
# Rows are older than a week, after which brokers delete records unless they are told otherwise.
KEPT = {"retention.ms": "-1"}


def load(bootstrap: str, topic: str, times_ms: Mapping[int, Sequence[int]]) -> int:
    """The number of rows, all of them stored."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, len(times_ms), 1, config=KEPT)])[topic].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20})
    for partition, times in times_ms.items():
        for time_ms in times:
            producer.produce(topic, b"reading", partition=partition, timestamp=time_ms)
            producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    return sum(map(len, times_ms.values()))


def read_times(bootstrap: str, topic: str) -> dict[int, dict[int, int]]:
    """By partition and offset, the time of each row in the topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "times", "enable.auto.commit": False})
    found: dict[int, dict[int, int]] = {}
    try:
        partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        ends = {each: consumer.get_watermark_offsets(TopicPartition(topic, each), PATIENCE_S)[1] for each in partitions}
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        while any(len(found.get(each, ())) < end for each, end in ends.items()):
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the rows that are there come"
            assert message.error() is None, message.error()
            found.setdefault(message.partition(), {})[message.offset()] = message.timestamp()[1]
    finally:
        consumer.close()
    return found
