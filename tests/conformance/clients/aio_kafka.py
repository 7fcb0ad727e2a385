"""aiokafka, on an event loop of its own in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
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
    Producing,
    Received,
    Record,
)

TIMESTAMP_TYPES = {0: "create", 1: "append"}
DEFAULT_CONFIG_SOURCE = 5
T = TypeVar("T")


class AioKafka(Driver):
    """Its producer refuses a null value with a null key, and its admin client knows only the older calls."""

    name = "aiokafka"
    peer = "aiokafka"
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
            Can.CREATE_TOPICS,
            Can.DELETE_TOPICS,
            Can.LIST_TOPICS,
            Can.DESCRIBE_TOPICS,
            Can.CREATE_PARTITIONS,
            Can.DESCRIBE_CONFIGS,
            Can.ALTER_CONFIGS,
            Can.DELETE_RECORDS,
            Can.DESCRIBE_CLUSTER,
        }
    )

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        from aiokafka.errors import BrokerResponseError

        if "loop" not in self.state:
            loop = self.state["loop"] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
        try:
            return asyncio.run_coroutine_threadsafe(work, self.state["loop"]).result(TIMEOUT_S + 5)
        except BrokerResponseError as problem:
            raise ClientError(problem.errno, str(problem)) from None

    async def _client(self, key: Any, make: Any) -> Any:
        """Clients are made on the loop, and kept."""
        if key not in self.state:
            client = make()
            await client.start()
            self.state[key] = client
        return self.state[key]

    async def _producer(self, how: Producing) -> Any:
        from aiokafka import AIOKafkaProducer

        return await self._client(
            how,
            lambda: AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if how.codec == "none" else how.codec,
                enable_idempotence=how.idempotent,
                acks=how.acks if how.acks == "all" else int(how.acks),
                linger_ms=5,
                max_request_size=REQUEST_BYTES_MAX,
            ),
        )

    async def _consumer(self) -> Any:
        from aiokafka import AIOKafkaConsumer

        return await self._client(
            "consumer",
            lambda: AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                fetch_max_wait_ms=50,
            ),
        )

    async def _admin(self) -> Any:
        from aiokafka.admin import AIOKafkaAdminClient

        return await self._client("admin", lambda: AIOKafkaAdminClient(bootstrap_servers=self.bootstrap))

    def produce(
        self, topic: str, records: Sequence[Record], how: Producing = PLAINLY, *, partition: int = 0
    ) -> list[int]:
        async def send() -> list[int]:
            producer = await self._producer(how)
            futures = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            reports = await asyncio.gather(*futures)
            return [] if how.acks == "0" else [report.offset for report in reports]

        return self._run(send())

    def consume(self, topic: str, count: int, *, start: int = EARLIEST, partition: int = 0) -> list[Received]:
        from aiokafka import TopicPartition

        async def read() -> list[Received]:
            consumer = await self._consumer()
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            if start == EARLIEST:
                await consumer.seek_to_beginning(place)
            elif start == LATEST:
                await consumer.seek_to_end(place)
            else:
                consumer.seek(place, start)
            async with asyncio.timeout(TIMEOUT_S):
                return [_received(await consumer.getone(place)) for _ in range(count)]

        return self._run(read())

    def offset_at(self, topic: str, when: int, *, partition: int = 0) -> OffsetAt:
        from aiokafka import TopicPartition

        place = TopicPartition(topic, partition)

        async def look() -> OffsetAt:
            consumer = await self._consumer()
            if when == EARLIEST:
                return OffsetAt((await consumer.beginning_offsets([place]))[place])
            if when == LATEST:
                return OffsetAt((await consumer.end_offsets([place]))[place])
            found = (await consumer.offsets_for_times({place: when}))[place]
            return OffsetAt(found.offset, found.timestamp) if found else OffsetAt(-1, -1)

        return self._run(look())

    def create_topic(
        self, topic: str, *, partitions: int = 1, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        from aiokafka.admin import NewTopic

        new = NewTopic(topic, partitions, replication, topic_configs=dict(config or {}))

        async def create() -> None:
            answer = await (await self._admin()).create_topics([new])
            _raise_first((code, text) for _, code, text in answer.topic_errors)

        self._run(create())

    def delete_topic(self, topic: str) -> None:
        async def delete() -> None:
            answer = await (await self._admin()).delete_topics([topic])
            _raise_first((code, name) for name, code in answer.topic_error_codes)

        self._run(delete())

    def list_topics(self) -> set[str]:
        async def names() -> set[str]:
            return set(await (await self._admin()).list_topics())

        return self._run(names())

    def describe_topic(self, topic: str) -> dict[int, PartitionInfo]:
        async def describe() -> dict[int, PartitionInfo]:
            [answer] = await (await self._admin()).describe_topics([topic])
            _raise_first([(answer["error_code"], topic)])
            return {
                each["partition"]: PartitionInfo(each["leader"], tuple(each["replicas"]), tuple(each["isr"]))
                for each in answer["partitions"]
            }

        return self._run(describe())

    def create_partitions(self, topic: str, total: int) -> None:
        from aiokafka.admin import NewPartitions

        async def create() -> None:
            await (await self._admin()).create_partitions({topic: NewPartitions(total)})

        self._run(create())

    def describe_config(self, kind: str, name: str) -> dict[str, ConfigEntry]:
        from aiokafka.admin.config_resource import ConfigResource

        async def describe() -> dict[str, ConfigEntry]:
            [answer] = await (await self._admin()).describe_configs([ConfigResource(kind, name)])
            [(code, text, _, _, entries)] = answer.resources
            _raise_first([(code, text)])
            return {
                setting: ConfigEntry(value, source == DEFAULT_CONFIG_SOURCE, read_only, sensitive)
                for setting, value, read_only, source, sensitive, _ in entries
            }

        return self._run(describe())

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        from aiokafka.admin.config_resource import ConfigResource

        async def alter() -> None:
            resource = ConfigResource("topic", topic, configs=dict(config))
            [answer] = await (await self._admin()).alter_configs([resource])
            _raise_first((code, text) for code, text, *_ in answer.resources)

        self._run(alter())

    def delete_records(self, topic: str, before: int, *, partition: int = 0) -> int:
        from aiokafka import TopicPartition
        from aiokafka.admin import RecordsToDelete

        async def delete() -> int:
            place = TopicPartition(topic, partition)
            answer = await (await self._admin()).delete_records({place: RecordsToDelete(before)})
            return int(answer[place])

        return self._run(delete())

    def describe_cluster(self) -> ClusterInfo:
        async def describe() -> ClusterInfo:
            answer = await (await self._admin()).describe_cluster()
            nodes = {node["node_id"]: (node["host"], node["port"]) for node in answer["brokers"]}
            return ClusterInfo(answer["cluster_id"], answer["controller_id"], nodes)

        return self._run(describe())

    def close(self) -> None:
        if "loop" not in self.state:
            return
        loop = self.state.pop("loop")

        async def stop() -> None:
            for client in self.state.values():
                await (client.close() if hasattr(client, "close") else client.stop())

        asyncio.run_coroutine_threadsafe(stop(), loop).result(TIMEOUT_S)
        loop.call_soon_threadsafe(loop.stop)
        self.state.clear()


def _received(message: Any) -> Received:
    record = Record(message.value, message.key, tuple(message.headers), message.timestamp)
    return Received(message.offset, record, TIMESTAMP_TYPES[message.timestamp_type])


def _raise_first(outcomes: Any) -> None:
    for code, text in outcomes:
        if code:
            raise ClientError(code, str(text))
