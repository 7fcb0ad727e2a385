"""A broker with a dashboard, as processes, and a client of its API that knows nothing of the server's code."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 60


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


class Served:
    """A process that prints one line with an address when it is ready."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lowwater.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = re.search(r"http://[^ ]+", self.line)
        self.url = found[0].strip() if found else ""
        kafka = re.search(r"kafka=([^ ]+)", self.line)
        self.bootstrap = kafka[1] if kafka else ""

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return ask(self.url, method, path, body, **headers)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.body


def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named.setdefault("Content-Type", "application/json")
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, headers=named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return Answer(response.status, _read(response), dict(response.headers))
    except urllib.error.HTTPError as refused:
        return Answer(refused.code, _read(refused), dict(refused.headers))


def _read(response: Any) -> Any:
    raw = response.read()
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    return json.loads(raw) if is_json else raw.decode()


def group_path(name: str, rest: str = "") -> str:
    return f"/consumer-groups/{quote(name, safe='')}{rest}"


def until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


class Cluster:
    """The broker as its other clients use it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, topic: str, partitions: int = 1) -> str:
        for future in self._admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(TIMEOUT_S)
        return topic

    def write(
        self,
        topic: str,
        values: list[bytes],
        *,
        partition: int = 0,
        at_ms: int = 0,
        settings: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, **(settings or {})})
        for value in values:
            producer.produce(topic, value, partition=partition, timestamp=at_ms, **more)
        assert producer.flush(TIMEOUT_S) == 0

    def delete_before(self, topic: str, offset: int) -> None:
        for future in self._admin.delete_records([Place(topic, 0, offset)]).values():
            future.result(TIMEOUT_S)

    def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            places = [Place(topic, partition, offset) for partition, offset in offsets.items()]
            consumer.commit(offsets=places, asynchronous=False)
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partitions: int = 1) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            wanted = [Place(topic, partition) for partition in range(partitions)]
            return [one.offset for one in consumer.committed(wanted, timeout=TIMEOUT_S)]
        finally:
            consumer.close()

    def member(self, group: str, topic: str, **settings: Any) -> Consumer:
        """One that has joined and has its partitions."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": group, "auto.offset.reset": "earliest", **settings}
        )
        consumer.subscribe([topic])
        until(lambda: consumer.poll(0.1) is not None or consumer.assignment(), "it joins")
        return consumer
