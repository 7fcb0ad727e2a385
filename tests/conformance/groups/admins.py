"""The admin calls for groups, of each client library that has them, behind one small face."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

from tests.conformance.clients.base import ClientError
from tests.conformance.clients.java import Java
from tests.conformance.clients.kafkajs import KafkaJs
from tests.conformance.clients.lines import LineDriver
from tests.conformance.groups.member import Place

from lowwater.errors import ErrorCode

TIMEOUT_S = 20


class Can(Enum):
    """What an admin client may or may not have."""

    FILTER_STATES = auto()
    FILTER_TYPES = auto()
    DESCRIBE_CONSUMER = auto()  # groups of the consumer protocol
    DELETE = auto()
    ALTER_OFFSETS = auto()
    DELETE_OFFSETS = auto()


@dataclass(frozen=True, slots=True)
class Described:
    """`members` maps client ids to what they own."""

    state: str
    members: dict[str, set[Place]]


def spelled(name: str) -> str:
    """States and types are spelled in many ways: PREPARING_REBALANCE, PreparingRebalance …"""
    return name.rsplit(".", 1)[-1].replace("_", "").lower()


class GroupAdmin(ABC):
    name: ClassVar[str]
    peer: ClassVar[str]
    can: ClassVar[frozenset[Can]]

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> set[str]: ...

    @abstractmethod
    def describe(self, group: str) -> Described: ...

    @abstractmethod
    def offsets(self, group: str, topic: str) -> dict[int, int]:
        """By partition; those without a committed offset are left out."""

    def alter(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        raise AssertionError(f"{self.name} cannot alter offsets")

    def delete(self, group: str) -> None:
        raise AssertionError(f"{self.name} cannot delete groups")

    def delete_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> None:
        raise AssertionError(f"{self.name} cannot delete offsets")

    def close(self) -> None:
        return


class ConfluentAdmin(GroupAdmin):
    name = "confluent"
    peer = "confluent"
    can = frozenset(Can) - {Can.DELETE_OFFSETS}

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka.admin import AdminClient

        super().__init__(bootstrap)
        self.client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> set[str]:
        from confluent_kafka import ConsumerGroupState, ConsumerGroupType

        filters: dict[str, Any] = {}
        if wanted := {each for each in ConsumerGroupState if spelled(each.name) in map(spelled, states)}:
            filters["states"] = wanted
        if kinds := {each for each in ConsumerGroupType if spelled(each.name) in map(spelled, types)}:
            filters["types"] = kinds
        return {each.group_id for each in self.client.list_consumer_groups(**filters).result(TIMEOUT_S).valid}

    def describe(self, group: str) -> Described:
        found = self._result(self.client.describe_consumer_groups([group])[group])
        owned = {
            each.client_id: {(place.topic, place.partition) for place in each.assignment.topic_partitions}
            for each in found.members
        }
        return Described(spelled(found.state.name), owned)

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        wish = [ConsumerGroupTopicPartitions(group)]
        found = self._result(self.client.list_consumer_group_offsets(wish)[group]).topic_partitions
        return {each.partition: each.offset for each in found if each.topic == topic and each.offset >= 0}

    def alter(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        wish = [ConsumerGroupTopicPartitions(group, places)]
        for each in self._result(self.client.alter_consumer_group_offsets(wish)[group]).topic_partitions:
            if each.error:
                raise ClientError(each.error.code(), each.error.str())

    def delete(self, group: str) -> None:
        self._result(self.client.delete_consumer_groups([group])[group])

    @staticmethod
    def _result(future: Any) -> Any:
        from confluent_kafka import KafkaException

        try:
            return future.result(TIMEOUT_S)
        except KafkaException as error:
            raise ClientError(error.args[0].code(), str(error)) from None


class KafkaPythonAdmin(GroupAdmin):
    name = "kafka-python"
    peer = "kafka_python"
    can = frozenset(Can) - {Can.DESCRIBE_CONSUMER}

    def __init__(self, bootstrap: str) -> None:
        from kafka.admin import KafkaAdminClient

        super().__init__(bootstrap)
        self.client = KafkaAdminClient(bootstrap_servers=bootstrap)

    def groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> set[str]:
        listed = self.client.list_groups(states_filter=list(states) or None, types_filter=list(types) or None)
        return {each["group_id"] for each in listed}

    def describe(self, group: str) -> Described:
        found = self.client.describe_groups([group])[group]
        owned = {each["client_id"]: _decoded(each["member_assignment"]) for each in found["members"]}
        return Described(spelled(found["group_state"]), owned)

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self.client.list_group_offsets({group: None})[group]
        return {place.partition: each.offset for place, each in found.items() if place.topic == topic}

    def alter(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        wanted = {TopicPartition(topic, index): OffsetAndMetadata(offset, "", -1) for index, offset in offsets.items()}
        _raise_first(self.client.alter_group_offsets(group, wanted).values())

    def delete(self, group: str) -> None:
        from kafka import errors

        outcome = self.client.delete_groups([group])[group]
        if outcome != "OK":
            raise ClientError(getattr(errors, outcome).errno, outcome)

    def delete_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> None:
        from kafka import TopicPartition

        places = [TopicPartition(topic, partition) for partition in partitions]
        _raise_first(self.client.delete_group_offsets(group, places).values())

    def close(self) -> None:
        self.client.close()


class AioKafkaAdmin(GroupAdmin):
    name = "aiokafka"
    peer = "aiokafka"
    can = frozenset()

    def groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> set[str]:
        return {each[0] for each in self._ask(lambda client: client.list_consumer_groups())}

    def describe(self, group: str) -> Described:
        [answer] = self._ask(lambda client: client.describe_consumer_groups([group]))
        [(_, _, state, _, _, members, *_)] = answer.groups
        return Described(spelled(state), {each[1]: _decoded_by_aiokafka(each[4]) for each in members})

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self._ask(lambda client: client.list_consumer_group_offsets(group))
        return {place.partition: each.offset for place, each in found.items() if place.topic == topic}

    def _ask(self, call: Any) -> Any:
        from aiokafka.admin import AIOKafkaAdminClient

        async def asked() -> Any:
            client = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await client.start()
            try:
                return await call(client)
            finally:
                await client.close()

        return asyncio.run(asked())


class LineAdmin(GroupAdmin):
    """Libraries of other languages."""

    driver_class: ClassVar[type[LineDriver]]

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.driver = self.driver_class(bootstrap)

    def groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> set[str]:
        return set(self.driver.ask("groups", states=list(states), types=list(types)))

    def describe(self, group: str) -> Described:
        found = self.driver.ask("describe_group", group=group)
        owned = {name: {(topic, index) for topic, index in places} for name, places in found["members"].items()}
        return Described(spelled(found["state"]), owned)

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self.driver.ask("group_offsets", group=group, topic=topic)
        return {int(partition): offset for partition, offset in found.items() if offset >= 0}

    def alter(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        self.driver.ask("alter_group_offsets", group=group, topic=topic, offsets=dict(offsets))

    def delete(self, group: str) -> None:
        self.driver.ask("delete_group", group=group)

    def delete_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> None:
        self.driver.ask("delete_group_offsets", group=group, topic=topic, partitions=list(partitions))

    def close(self) -> None:
        self.driver.close()


class JavaAdmin(LineAdmin):
    name = "java"
    peer = "kafka"
    can = frozenset(Can)
    driver_class = Java


class KafkaJsAdmin(LineAdmin):
    name = "kafkajs"
    peer = "kafkajs"
    can = frozenset({Can.DELETE, Can.ALTER_OFFSETS})
    driver_class = KafkaJs


ADMINS: dict[str, type[GroupAdmin]] = {
    each.name: each for each in (ConfluentAdmin, KafkaPythonAdmin, AioKafkaAdmin, JavaAdmin, KafkaJsAdmin)
}


def _decoded(assignment: Any) -> set[Place]:
    """kafka-python decodes it if it can; an empty one stays bytes."""
    if not isinstance(assignment, dict):
        return set()
    return {
        (each["topic"], partition) for each in assignment["assigned_partitions"] for partition in each["partitions"]
    }


def _decoded_by_aiokafka(data: bytes) -> set[Place]:
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

    places = ConsumerProtocolMemberAssignment.decode(data).partitions() if data else []
    return {(place.topic, place.partition) for place in places}


def _raise_first(errors: Iterable[Any]) -> None:
    for error in errors:
        if error.errno != ErrorCode.NONE:
            raise ClientError(error.errno, error.__name__)
