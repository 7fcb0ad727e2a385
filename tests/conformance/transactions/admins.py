"""The admin calls for transactions, of each client library that has them, behind one small face."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.face import Place
from tests.conformance.transactions.kafka_python import code_of
from tests.conformance.transactions.lines import HOSTS, JavaHost


@dataclass(frozen=True, slots=True)
class Described:
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    is_running: bool
    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Active:
    """A producer as a partition knows it; `first_offset` of its open transaction, -1 without one."""

    producer_id: int
    epoch: int
    first_offset: int
    coordinator_epoch: int


class TransactionAdmin(ABC):
    name: ClassVar[str]
    peer: ClassVar[str]

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def listed(self, **filters: Any) -> dict[str, str]:
        """Transactional ids with their states; filters: states, producer_id, duration_ms, pattern."""

    @abstractmethod
    def described(self, id: str) -> Described: ...

    @abstractmethod
    def producers(self, place: Place) -> list[Active]: ...

    @abstractmethod
    def abort_hanging(self, place: Place, producer_id: int) -> None:
        """Write an abort marker for whatever transaction the producer has open in the partition."""


class JavaAdmin(TransactionAdmin):
    name = "java"
    peer = "kafka"

    def ask(self, call: str, **arguments: Any) -> Any:
        return HOSTS.of(JavaHost, self.bootstrap).ask(call, bootstrap=self.bootstrap, **arguments)

    def listed(self, **filters: Any) -> dict[str, str]:
        found: dict[str, str] = self.ask("list", **filters)
        return found

    def described(self, id: str) -> Described:
        found = self.ask("describe", id=id)
        places = frozenset((topic, partition) for topic, partition in found.pop("places"))
        return Described(is_running=found.pop("started"), places=places, **found)

    def producers(self, place: Place) -> list[Active]:
        return [Active(**each) for each in self.ask("producers", topic=place[0], partition=place[1])]

    def abort_hanging(self, place: Place, producer_id: int) -> None:
        self.ask("abort_hanging", topic=place[0], partition=place[1], producer_id=producer_id)


class KafkaPythonAdmin(TransactionAdmin):
    name = "kafka-python"
    peer = "kafka_python"

    def _ask(self, call: str, *arguments: Any, **more: Any) -> Any:
        from kafka.admin import KafkaAdminClient
        from kafka.errors import KafkaError

        client = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            return getattr(client, call)(*arguments, **more)
        except KafkaError as error:
            raise ClientError(code_of(error), repr(error)) from None
        finally:
            client.close()

    def listed(self, **filters: Any) -> dict[str, str]:
        wanted: dict[str, Any] = {}
        if "states" in filters:
            wanted["state_filters"] = filters["states"]
        if "producer_id" in filters:
            wanted["producer_id_filters"] = [filters["producer_id"]]
        if "duration_ms" in filters:
            wanted["duration_filter_ms"] = filters["duration_ms"]
        if "pattern" in filters:
            wanted["transactional_id_pattern"] = filters["pattern"]
        [listings] = self._ask("list_transactions", **wanted).values()
        return {each.transactional_id: each.state.value for each in listings}

    def described(self, id: str) -> Described:
        found = self._ask("describe_transactions", [id])[id]
        places = frozenset((place.topic, place.partition) for place in found.topic_partitions)
        is_running = found.transaction_start_time_ms >= 0
        identity = (found.producer_id, found.producer_epoch)
        return Described(found.state.value, *identity, found.transaction_timeout_ms, is_running, places)

    def producers(self, place: Place) -> list[Active]:
        from kafka import TopicPartition

        found = self._ask("describe_producers", [TopicPartition(*place)])[TopicPartition(*place)]
        return [
            Active(each.producer_id, each.producer_epoch, each.current_transaction_start_offset, each.coordinator_epoch)
            for each in found.active_producers
        ]

    def abort_hanging(self, place: Place, producer_id: int) -> None:
        from kafka import TopicPartition
        from kafka.admin import AbortTransactionSpec

        [active] = [each for each in self.producers(place) if each.producer_id == producer_id]
        spec = AbortTransactionSpec(TopicPartition(*place), producer_id, active.epoch, max(active.coordinator_epoch, 0))
        self._ask("abort_transaction", spec)


ADMINS: dict[str, type[TransactionAdmin]] = {each.name: each for each in (JavaAdmin, KafkaPythonAdmin)}
