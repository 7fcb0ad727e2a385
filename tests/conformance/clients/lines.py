"""Drivers in other languages: one long-lived process that reads a JSON request a line and answers a line."""

from __future__ import annotations

import base64
import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from peers import processes
from tests.conformance.clients.base import (
    EARLIEST,
    PLAINLY,
    TIMEOUT_S,
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

ANSWER_TIMEOUT_S = TIMEOUT_S + 15


class LineDriver(Driver):
    """Subclasses say how to start the process; it must answer {"error": code, "detail": …} or {"result": …}."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def ask(self, call: str, **arguments: Any) -> Any:
        if "process" not in self.state:
            options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": self.environment()}
            self.state["process"] = processes.start(self.command(), **options)
            self.state["rest"] = b""
        process = self.state["process"]
        request = {"call": call, "bootstrap": self.bootstrap, **arguments}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(self._line(process.stdout))
        if "error" in answer:
            raise self._error(answer)
        return answer["result"]

    def _line(self, stdout: IO[bytes]) -> bytes:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self.state["rest"]:
                if not selector.select(deadline - time.monotonic()):
                    raise TimeoutError(f"the {self.name} driver did not answer")
                piece = os.read(stdout.fileno(), 1 << 20)
                if not piece:
                    raise RuntimeError(f"the {self.name} driver ended")
                self.state["rest"] += piece
        line, self.state["rest"] = self.state["rest"].split(b"\n", 1)
        return bytes(line)

    @staticmethod
    def _error(answer: Mapping[str, Any]) -> Exception:
        if answer["error"] is None:
            return TimeoutError(answer["detail"]) if answer.get("timeout") else RuntimeError(answer["detail"])
        return ClientError(answer["error"], answer["detail"])

    def produce(
        self, topic: str, records: Sequence[Record], how: Producing = PLAINLY, *, partition: int = 0
    ) -> list[int]:
        manner = {"codec": how.codec, "idempotent": how.idempotent, "acks": how.acks}
        sent = [_to_json(record) for record in records]
        offsets: list[int] = self.ask("produce", topic=topic, partition=partition, records=sent, **manner)
        return offsets

    def consume(self, topic: str, count: int, *, start: int = EARLIEST, partition: int = 0) -> list[Received]:
        answer = self.ask("consume", topic=topic, partition=partition, start=start, count=count)
        return [Received(each["offset"], _from_json(each), each.get("timestamp_type")) for each in answer]

    def offset_at(self, topic: str, when: int, *, partition: int = 0) -> OffsetAt:
        answer = self.ask("offset_at", topic=topic, partition=partition, when=when)
        return OffsetAt(answer["offset"], answer.get("timestamp"))

    def create_topic(
        self, topic: str, *, partitions: int = 1, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        settings = dict(config or {})
        self.ask("create_topic", topic=topic, partitions=partitions, replication=replication, config=settings)

    def delete_topic(self, topic: str) -> None:
        self.ask("delete_topic", topic=topic)

    def list_topics(self) -> set[str]:
        return set(self.ask("list_topics"))

    def describe_topic(self, topic: str) -> dict[int, PartitionInfo]:
        return _partitions(self.ask("describe_topic", topic=topic))

    def describe_topic_partitions(self, topic: str) -> dict[int, PartitionInfo]:
        # Java's describeTopics is built on this call wherever the broker has it.
        return self.describe_topic(topic)

    def create_partitions(self, topic: str, total: int) -> None:
        self.ask("create_partitions", topic=topic, total=total)

    def describe_config(self, kind: str, name: str) -> dict[str, ConfigEntry]:
        answer = self.ask("describe_config", kind=kind, name=name)
        return {setting: ConfigEntry(**entry) for setting, entry in answer.items()}

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        self.ask("alter_config", topic=topic, config=dict(config))

    def change_config(self, topic: str, *, set_to: Mapping[str, str], delete: Sequence[str] = ()) -> None:
        self.ask("change_config", topic=topic, set_to=dict(set_to), delete=list(delete))

    def delete_records(self, topic: str, before: int, *, partition: int = 0) -> int:
        return int(self.ask("delete_records", topic=topic, partition=partition, before=before))

    def describe_cluster(self) -> ClusterInfo:
        answer = self.ask("describe_cluster")
        nodes = {int(node): (host, port) for node, (host, port) in answer["nodes"].items()}
        return ClusterInfo(answer["cluster_id"], answer["controller"], nodes)

    def log_dir_sizes(self, topic: str) -> dict[int, int]:
        return {int(partition): size for partition, size in self.ask("log_dir_sizes", topic=topic).items()}

    def describe_producers(self, topic: str, *, partition: int = 0) -> list[ProducerInfo]:
        return [ProducerInfo(**each) for each in self.ask("describe_producers", topic=topic, partition=partition)]

    def quorum_leader(self) -> int:
        return int(self.ask("quorum_leader"))

    def features(self) -> dict[str, tuple[int, int]]:
        return {name: (low, high) for name, (low, high) in self.ask("features").items()}

    def elect_leader(self, topic: str, *, partition: int = 0) -> None:
        self.ask("elect_leader", topic=topic, partition=partition)

    def config_resources(self) -> dict[str, set[str]]:
        return {kind: set(names) for kind, names in self.ask("config_resources").items()}

    def quotas(self, user: str) -> dict[str, float]:
        answer: dict[str, float] = self.ask("quotas", user=user)
        return answer

    def set_quota(self, user: str, name: str, value: float | None) -> None:
        self.ask("set_quota", user=user, name=name, value=value)

    def close(self) -> None:
        if process := self.state.pop("process", None):
            process.stdin.close()
            processes.kill_group(process)
            process.stdout.close()


def _to_json(record: Record) -> dict[str, Any]:
    return {
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
        "timestamp": record.timestamp_ms,
    }


def _from_json(each: Mapping[str, Any]) -> Record:
    headers = tuple((name, _bytes(value)) for name, value in each["headers"])
    return Record(_bytes(each["value"]), _bytes(each["key"]), headers, each["timestamp"])


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _partitions(answer: Mapping[str, Any]) -> dict[int, PartitionInfo]:
    return {
        int(partition): PartitionInfo(each["leader"], tuple(each["replicas"]), tuple(each["isr"]))
        for partition, each in answer.items()
    }
