"""Loading the sample with confluent-kafka, an ordinary Kafka client."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.orders import sample

DEAD_LETTERS = "orders-dead"
# The sample is older than a week, after which brokers delete records unless they are told otherwise.
KEPT = {"retention.ms": "-1"}


class LoadError(Exception):
    """A record that the broker did not take."""


def create_topics(bootstrap: str) -> None:
    """Those that are not there yet."""
    partitions = {**sample.PARTITIONS, DEAD_LETTERS: 1}
    topics = [NewTopic(name, count, config=KEPT) for name, count in partitions.items()]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(topics).values():
        try:
            created.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def load(bootstrap: str, messages: Iterable[sample.Message]) -> None:
    """All of them are stored when this returns."""
    settings = {"enable.idempotence": True, "linger.ms": 20, "compression.type": "lz4"}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    for one in messages:
        _produce(producer, one, delivered)
    producer.flush()
    if failures:
        raise LoadError(f"{len(failures)} records were not taken: {failures[0]}")


def _produce(producer: Producer, one: sample.Message, delivered: object) -> None:
    while True:
        try:
            producer.produce(one.topic, one.value, one.key, one.partition, delivered, timestamp=one.timestamp_ms)
            producer.poll(0)
            return
        except BufferError:
            producer.poll(1)
