"""A member by confluent-kafka (librdkafka), of the classic or of the consumer protocol."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tests.conformance.groups.hosts.serving import POLL_S, FatalError, Hosted, emit, polled, serve, told

BATCH = 500
TIMEOUT_S = 20
# A fatal error's own code is hidden behind _FATAL; its text has librdkafka's words for it.
FATAL_TEXTS = {
    "Static consumer fenced by other consumer": KafkaError.FENCED_INSTANCE_ID,
    "instance ID is still used by another member": KafkaError.UNRELEASED_INSTANCE_ID,
}


def settings_of(how: dict[str, Any]) -> dict[str, Any]:
    settings = {
        "bootstrap.servers": how["bootstrap"],
        "group.id": how["group"],
        "client.id": how["client_id"],
        "group.protocol": how["protocol"],
        "auto.offset.reset": {"none": "error"}.get(how["reset"], how["reset"]),
        "enable.auto.commit": how["auto_commit_ms"] is not None,
        "auto.commit.interval.ms": how["auto_commit_ms"] or 5000,
        "max.poll.interval.ms": max(how["rebalance_timeout_ms"], how["session_timeout_ms"]),
        "topic.metadata.refresh.interval.ms": how["metadata_age_ms"],
        "metadata.max.age.ms": how["metadata_age_ms"] * 3,
        "fetch.wait.max.ms": 50,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    if how["protocol"] == "classic":
        settings["session.timeout.ms"] = how["session_timeout_ms"]
        settings["heartbeat.interval.ms"] = how["heartbeat_ms"]
        settings["partition.assignment.strategy"] = how["assignor"]
    elif how["assignor"] is not None:
        settings["group.remote.assignor"] = how["assignor"]
    if how["instance"] is not None:
        settings["group.instance.id"] = how["instance"]
    return settings


class Confluent(Hosted):
    def __init__(self) -> None:
        self.consumer: Any = None
        self.next: dict[tuple[str, int], int] = {}

    def join(self, how: dict[str, Any]) -> None:
        self.consumer = Consumer(settings_of(how))
        topics = [how["pattern"]] if how["pattern"] else how["topics"]
        self.consumer.subscribe(
            topics, on_assign=self._teller("assigned"), on_revoke=self._teller("revoked"), on_lost=self._teller("lost")
        )

    def _teller(self, event: str) -> Any:
        def tell(_: Any, partitions: list[TopicPartition]) -> None:
            for each in partitions:
                self.next.pop((each.topic, each.partition), None)
            told(event, [(each.topic, each.partition) for each in partitions])

        return tell

    def poll(self) -> None:
        came: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for message in self.consumer.consume(BATCH, timeout=POLL_S):
            if error := message.error():
                self._judge(error)
                continue
            came[(message.topic(), message.partition())].append(message.offset())
        for place, offsets in came.items():
            self.next[place] = offsets[-1] + 1
            polled(*place, offsets)

    def _judge(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:
            code = next((code for text, code in FATAL_TEXTS.items() if text in error.str()), error.code())
            raise FatalError(code, error)
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError._NO_OFFSET):
            raise FatalError(error.code(), error)
        emit(event="noted", code=error.code(), detail=str(error))

    def commit(self, offsets: list[tuple[str, int, int]] | None) -> None:
        wanted = [(*place, offset) for place, offset in self.next.items()] if offsets is None else offsets
        done = self.consumer.commit(offsets=[TopicPartition(*each) for each in wanted], asynchronous=False)
        for each in done:
            if each.error:
                raise KafkaException(each.error)

    def committed(self, places: list[tuple[str, int]]) -> list[int | None]:
        found = self.consumer.committed([TopicPartition(*place) for place in places], timeout=TIMEOUT_S)
        return [each.offset if each.offset >= 0 else None for each in found]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(topic, partition, offset))

    def close(self) -> None:
        self.consumer.close()

    def code_of(self, error: Exception) -> int:
        return error.args[0].code() if isinstance(error, KafkaException) else -1


if __name__ == "__main__":
    serve(Confluent())
