"""kafka-python, the pure-Python client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tests.conformance.clients.base import (
    EARLIEST,
    LATEST,
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
    ProducerInfo,
    Producing,
    Received,
    Record,
)

TIMESTAMP_TYPES = {0: "create", 1: "append"}
T = TypeVar("T")


class KafkaPython(Driver):
    name = "kafka_python"
    peer = "kafka_python"
    can = frozenset(
        {
            Can.REPORT_OFFSETS,
            Can.STAMP,
            Can.HEADERS,
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
            Can.DESCRIBE_LOG_DIRS,
            Can.DESCRIBE_PRODUCERS,
            Can.DESCRIBE_QUORUM,
            Can.DESCRIBE_FEATURES,
            Can.ELECT_LEADERS,
            Can.LIST_CONFIG_RESOURCES,
            Can.DESCRIBE_TOPIC_PARTITIONS,
        }
    )

    def _producer(self, how: Producing) -> Any:
        from kafka import KafkaProducer

        if how not in self.state:
            self.state[how] = KafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if how.codec == "none" else how.codec,
                enable_idempotence=how.idempotent,
                acks=how.acks if how.acks == "all" else int(how.acks),
                linger_ms=5,
                max_request_size=REQUEST_BYTES_MAX,
            )
        return self.state[how]

    def _consumer(self) -> Any:
        from kafka import KafkaConsumer

        if "consumer" not in self.state:
            self.state["consumer"] = KafkaConsumer(
                bootstrap_servers=self.bootstrap,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                fetch_max_wait_ms=50,
            )
        return self.state["consumer"]

    def _admin(self) -> Any:
        from kafka import KafkaAdminClient

        if "admin" not in self.state:
            self.state["admin"] = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        return self.state["admin"]

    def produce(
        self, topic: str, records: Sequence[Record], how: Producing = PLAINLY, *, partition: int = 0
    ) -> list[int]:
        producer = self._producer(how)
        futures = [
            producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        reports = [_translated(lambda future=future: future.get(TIMEOUT_S)) for future in futures]
        return [] if how.acks == "0" else [report.offset for report in reports]

    def consume(self, topic: str, count: int, *, start: int = EARLIEST, partition: int = 0) -> list[Received]:
        from kafka import TopicPartition

        consumer = self._consumer()
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        if start == EARLIEST:
            consumer.seek_to_beginning(place)
        elif start == LATEST:
            consumer.seek_to_end(place)
        else:
            consumer.seek(place, start)
        received: list[Received] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(received) < count:
            batches = _translated(lambda: consumer.poll(timeout_ms=200))
            received += [_received(message) for message in batches.get(place, ())]
            if time.monotonic() > deadline:
                raise TimeoutError(f"kafka-python got {len(received)} of {count} records from {topic}")
        return received[:count]

    def offset_at(self, topic: str, when: int, *, partition: int = 0) -> OffsetAt:
        from kafka import TopicPartition

        place = TopicPartition(topic, partition)
        answer = _translated(lambda: self._admin().list_partition_offsets({place: when}))[place]
        return OffsetAt(answer.offset, answer.timestamp)

    def create_topic(
        self, topic: str, *, partitions: int = 1, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": replication, "configs": dict(config or {})}
        _translated(lambda: self._admin().create_topics({topic: wanted}))

    def delete_topic(self, topic: str) -> None:
        _translated(lambda: self._admin().delete_topics([topic]))

    def list_topics(self) -> set[str]:
        return set(self._admin().list_topics())

    def describe_topic(self, topic: str) -> dict[int, PartitionInfo]:
        [description] = _translated(lambda: self._admin().describe_topics([topic]))
        return _partitions(description)

    def describe_topic_partitions(self, topic: str) -> dict[int, PartitionInfo]:
        answer = _translated(lambda: self._admin().describe_topic_partitions([topic]))
        [description] = answer["topics"]
        return _partitions(description)

    def create_partitions(self, topic: str, total: int) -> None:
        _translated(lambda: self._admin().create_partitions({topic: total}))

    def describe_config(self, kind: str, name: str) -> dict[str, ConfigEntry]:
        from kafka.admin import ConfigResource

        resource = ConfigResource(kind, name)
        answer = _translated(lambda: self._admin().describe_configs([resource], config_filter="all"))
        return {
            setting: ConfigEntry(
                entry["value"], entry["config_source"] == "DEFAULT_CONFIG", entry["read_only"], entry["is_sensitive"]
            )
            for setting, entry in answer[kind][name].items()
        }

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        self._alter(topic, dict(config), incremental=False)

    def change_config(self, topic: str, *, set_to: Mapping[str, str], delete: Sequence[str] = ()) -> None:
        changes: dict[str, Any] = {name: ("SET", value) for name, value in set_to.items()}
        changes |= dict.fromkeys(delete, ("DELETE", None))
        self._alter(topic, changes, incremental=True)

    def _alter(self, topic: str, changes: dict[str, Any], *, incremental: bool) -> None:
        from kafka.admin import ConfigResource

        resource = ConfigResource("topic", topic, configs=changes)
        admin = self._admin()
        answer = _translated(lambda: admin.alter_configs([resource], raise_on_unknown=False, incremental=incremental))
        outcome = answer["topic"][topic]
        if outcome != "OK":
            raise ClientError(int(outcome.split("]")[0].split()[-1].strip("[")), outcome)

    def delete_records(self, topic: str, before: int, *, partition: int = 0) -> int:
        from kafka import TopicPartition

        place = TopicPartition(topic, partition)
        answer = _translated(lambda: self._admin().delete_records({place: before}))[place]
        return int(answer["low_watermark"])

    def describe_cluster(self) -> ClusterInfo:
        answer = self._admin().describe_cluster()
        nodes = {node.get("broker_id", node.get("node_id")): (node["host"], node["port"]) for node in answer["brokers"]}
        return ClusterInfo(answer["cluster_id"], answer["controller_id"], nodes)

    def log_dir_sizes(self, topic: str) -> dict[int, int]:
        [node] = self._admin().describe_log_dirs([topic])
        return {
            partition["partition_index"]: partition["partition_size"]
            for folder in node["log_dirs"]
            for each in folder["topics"]
            if each["name"] == topic
            for partition in each["partitions"]
        }

    def describe_producers(self, topic: str, *, partition: int = 0) -> list[ProducerInfo]:
        from kafka import TopicPartition

        place = TopicPartition(topic, partition)
        answer = _translated(lambda: self._admin().describe_producers([place]))[place]
        return [
            ProducerInfo(each.producer_id, each.producer_epoch, each.last_sequence) for each in answer.active_producers
        ]

    def quorum_leader(self) -> int:
        answer = self._admin().describe_metadata_quorum()
        return int(answer["topics"][0]["partitions"][0]["leader_id"])

    def features(self) -> dict[str, tuple[int, int]]:
        answer = self._admin().describe_features()
        return {name: each["finalized"] for name, each in answer.items() if "finalized" in each}

    def elect_leader(self, topic: str, *, partition: int = 0) -> None:
        answer = _translated(lambda: self._admin().elect_leaders(0, {topic: [partition]}))
        code = answer.replica_election_results[0].partition_result[0].error_code
        if code:
            raise ClientError(code)

    def config_resources(self) -> dict[str, set[str]]:
        return {kind: set(names) for kind, names in self._admin().list_config_resources().items()}

    def close(self) -> None:
        for client in self.state.values():
            client.close()
        self.state.clear()


def _received(message: Any) -> Received:
    record = Record(message.value, message.key, tuple(message.headers), message.timestamp)
    return Received(message.offset, record, TIMESTAMP_TYPES[message.timestamp_type])


def _partitions(description: Mapping[str, Any]) -> dict[int, PartitionInfo]:
    if description["error_code"]:
        raise ClientError(description["error_code"])
    return {
        each["partition_index"]: PartitionInfo(
            each["leader_id"], tuple(each["replica_nodes"]), tuple(each["isr_nodes"])
        )
        for each in description["partitions"]
    }


def _translated(call: Callable[[], T]) -> T:
    from kafka.errors import BrokerResponseError

    try:
        return call()
    except BrokerResponseError as problem:
        raise ClientError(problem.errno, str(problem)) from None
