"""A member by kafka-python."""

from __future__ import annotations

import logging
import re
from typing import Any

import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import BrokerResponseError, FencedInstanceIdError, NoOffsetForPartitionError
from tests.conformance.groups.hosts.serving import FatalError, Hosted, emit, polled, serve, told

# A poll that ends while the library rejoins for new metadata forgets that it was rejoining, and it never comes back:
# be patient enough for a rebalance to end within one poll.
PATIENT_POLL_MS = 600

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Teller(kafka.ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned: Any) -> None:
        told("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        told("revoked", revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        told("lost", lost)


class KafkaPython(Hosted):
    def __init__(self) -> None:
        self.consumer: Any = None

    def join(self, how: dict[str, Any]) -> None:
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=how["bootstrap"],
            group_id=how["group"],
            client_id=how["client_id"],
            group_instance_id=how["instance"],
            auto_offset_reset=how["reset"],
            enable_auto_commit=how["auto_commit_ms"] is not None,
            auto_commit_interval_ms=how["auto_commit_ms"] or 5000,
            session_timeout_ms=how["session_timeout_ms"],
            heartbeat_interval_ms=how["heartbeat_ms"],
            max_poll_interval_ms=how["rebalance_timeout_ms"],
            metadata_max_age_ms=how["metadata_age_ms"],
            partition_assignment_strategy=[ASSIGNORS[how["assignor"]]],
            fetch_max_wait_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
        )
        if how["pattern"]:
            self.consumer.subscribe(pattern=re.compile(how["pattern"]), listener=Teller())
        else:
            self.consumer.subscribe(how["topics"], listener=Teller())

    def poll(self) -> None:
        try:
            came = self.consumer.poll(timeout_ms=PATIENT_POLL_MS)
        except (FencedInstanceIdError, NoOffsetForPartitionError) as error:
            raise FatalError(self.code_of(error), error) from None
        except kafka.errors.KafkaError as error:
            emit(event="noted", code=self.code_of(error), detail=repr(error))
            return
        for place, messages in came.items():
            polled(place.topic, place.partition, [message.offset for message in messages])

    def commit(self, offsets: list[tuple[str, int, int]] | None) -> None:
        if offsets is None:
            return self.consumer.commit()
        wanted = {
            kafka.TopicPartition(topic, partition): kafka.structs.OffsetAndMetadata(offset, "", -1)
            for topic, partition, offset in offsets
        }
        return self.consumer.commit(wanted)

    def committed(self, places: list[tuple[str, int]]) -> list[int | None]:
        return [self.consumer.committed(kafka.TopicPartition(*place)) for place in places]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.consumer.seek(kafka.TopicPartition(topic, partition), offset)

    def close(self) -> None:
        self.consumer.close()

    def code_of(self, error: Exception) -> int:
        return error.errno if isinstance(error, BrokerResponseError) else -1


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve(KafkaPython())
