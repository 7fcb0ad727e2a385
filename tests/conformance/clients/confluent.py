"""confluent-kafka: librdkafka behind Python."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from tests.conformance.clients.base import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    PLAINLY,
    REQUEST_BYTES_MAX,
    TIMEOUT_S,
    Can,
    ClientError,
    ClusterInfo,
    ConfigEntry,
    Driver,
    OffsetAt,
    PartitionInfo,
    Producing,
    Received,
    Record,
)

TIMESTAMP_TYPES = {1: "create", 2: "append"}


class Confluent(Driver):
    name = "confluent"
    peer = "confluent"
    can = frozenset(
        {
            Can.REPORT_OFFSETS,
            Can.STAMP,
            Can.HEADERS,
            Can.NULL_HEADERS,
            Can.NULL_VALUES,
            Can.EMPTY_KEYS,
            Can.BARE_EMPTY_VALUES,
            Can.HEADER_ORDER,
            Can.IDEMPOTENCE,
            Can.TELL_TIMESTAMP_TYPE,
            Can.OFFSETS_FOR_TIMES,
            Can.MAX_TIMESTAMP_OFFSET,
            Can.CREATE_TOPICS,
            Can.DELETE_TOPICS,
            Can.LIST_TOPICS,
            Can.DESCRIBE_TOPICS,
            Can.CREATE_PARTITIONS,
            Can.DESCRIBE_CONFIGS,
            Can.ALTER_CONFIGS,
            Can.INCREMENTAL_ALTER_CONFIGS,
            Can.DELETE_RECORDS,
            Can.DESCRIBE_CLUSTER,
            Can.ELECT_LEADERS,
        }
    )

    def _producer(self, how: Producing) -> Any:
        from confluent_kafka import Producer

        if how not in self.state:
            self.state[how] = Producer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "compression.type": how.codec,
                    "enable.idempotence": how.idempotent,
                    "acks": how.acks,
                    "linger.ms": 5,
                    "message.max.bytes": REQUEST_BYTES_MAX,
                }
            )
        return self.state[how]

    def _consumer(self) -> Any:
        from confluent_kafka import Consumer

        if "consumer" not in self.state:
            self.state["consumer"] = Consumer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "group.id": "unused",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "error",
                    "fetch.wait.max.ms": 50,
                }
            )
        return self.state["consumer"]

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        if "admin" not in self.state:
            self.state["admin"] = AdminClient({"bootstrap.servers": self.bootstrap})
        return self.state["admin"]

    def produce(
        self, topic: str, records: Sequence[Record], how: Producing = PLAINLY, *, partition: int = 0
    ) -> list[int]:
        producer = self._producer(how)
        reports: list[tuple[Any, Any]] = []
        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                timestamp=record.timestamp_ms or 0,
                on_delivery=lambda error, message: reports.append((error, message)),
            )
        if producer.flush(TIMEOUT_S):
            raise TimeoutError(f"confluent-kafka could not send to {topic}")
        for error, _ in reports:
            if error is not None:
                raise ClientError(error.code(), error.str())
        return [] if how.acks == "0" else sorted(message.offset() for _, message in reports)

    def consume(self, topic: str, count: int, *, start: int = EARLIEST, partition: int = 0) -> list[Received]:
        from confluent_kafka import TopicPartition

        consumer = self._consumer()
        consumer.list_topics(
            topic, timeout=TIMEOUT_S
        )  # Else librdkafka's next look at its topics is up to a second away.
        consumer.assign([TopicPartition(topic, partition, start)])
        received: list[Received] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(received) < count:
            message = consumer.poll(0.2)
            if message is None:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"confluent-kafka got {len(received)} of {count} records from {topic}")
                continue
            if message.error():
                raise ClientError(message.error().code(), message.error().str())
            received.append(_received(message))
        consumer.unassign()
        return received

    def offset_at(self, topic: str, when: int, *, partition: int = 0) -> OffsetAt:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        special = {EARLIEST: OffsetSpec.earliest, LATEST: OffsetSpec.latest, MAX_TIMESTAMP: OffsetSpec.max_timestamp}
        spec = special[when]() if when in special else OffsetSpec.for_timestamp(when)
        asked = TopicPartition(topic, partition)
        answer = _result(self._admin().list_offsets({asked: spec})[asked])
        return OffsetAt(answer.offset, answer.timestamp)

    def create_topic(
        self, topic: str, *, partitions: int = 1, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        from confluent_kafka.admin import NewTopic

        new = NewTopic(topic, num_partitions=partitions, replication_factor=replication, config=dict(config or {}))
        _result(self._admin().create_topics([new])[topic])

    def delete_topic(self, topic: str) -> None:
        _result(self._admin().delete_topics([topic])[topic])

    def list_topics(self) -> set[str]:
        return set(self._admin().list_topics(timeout=TIMEOUT_S).topics)

    def describe_topic(self, topic: str) -> dict[int, PartitionInfo]:
        from confluent_kafka import TopicCollection

        description = _result(self._admin().describe_topics(TopicCollection([topic]))[topic])
        return {
            each.id: PartitionInfo(
                each.leader.id, tuple(node.id for node in each.replicas), tuple(node.id for node in each.isr)
            )
            for each in description.partitions
        }

    def create_partitions(self, topic: str, total: int) -> None:
        from confluent_kafka.admin import NewPartitions

        _result(self._admin().create_partitions([NewPartitions(topic, total)])[topic])

    def describe_config(self, kind: str, name: str) -> dict[str, ConfigEntry]:
        from confluent_kafka.admin import ConfigResource

        resource = ConfigResource(kind, name)
        entries = _result(self._admin().describe_configs([resource])[resource])
        return {
            entry.name: ConfigEntry(entry.value, entry.is_default, entry.is_read_only, entry.is_sensitive)
            for entry in entries.values()
        }

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        from confluent_kafka.admin import ConfigResource

        resource = ConfigResource("topic", topic, set_config=dict(config))
        _result(self._admin().alter_configs([resource])[resource])

    def change_config(self, topic: str, *, set_to: Mapping[str, str], delete: Sequence[str] = ()) -> None:
        from confluent_kafka.admin import AlterConfigOpType, ConfigResource
        from confluent_kafka.admin import ConfigEntry as Entry

        changes = [Entry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in set_to.items()]
        changes += [Entry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in delete]
        resource = ConfigResource("topic", topic, incremental_configs=changes)
        _result(self._admin().incremental_alter_configs([resource])[resource])

    def delete_records(self, topic: str, before: int, *, partition: int = 0) -> int:
        from confluent_kafka import TopicPartition

        asked = TopicPartition(topic, partition, before)
        return int(_result(self._admin().delete_records([asked])[asked]).low_watermark)

    def describe_cluster(self) -> ClusterInfo:
        answer = _result(self._admin().describe_cluster())
        nodes = {node.id: (node.host, node.port) for node in answer.nodes}
        return ClusterInfo(answer.cluster_id, answer.controller.id, nodes)

    def elect_leader(self, topic: str, *, partition: int = 0) -> None:
        from confluent_kafka import ElectionType, TopicPartition

        asked = TopicPartition(topic, partition)
        answers = _result(self._admin().elect_leaders(ElectionType.PREFERRED, [asked]))
        error = answers[asked]
        if error is not None:
            raise ClientError(error.code(), error.str())

    def close(self) -> None:
        if consumer := self.state.pop("consumer", None):
            consumer.close()
        self.state.clear()


def _received(message: Any) -> Received:
    kind, stamp = message.timestamp()
    headers = tuple((name, value) for name, value in message.headers() or ())
    record = Record(message.value(), message.key(), headers, stamp)
    return Received(message.offset(), record, TIMESTAMP_TYPES[kind])


def _result(future: Future[Any]) -> Any:
    from confluent_kafka import KafkaException

    try:
        return future.result(TIMEOUT_S)
    except KafkaException as problem:
        error = problem.args[0]
        raise ClientError(error.code(), error.str()) from None
