"""Transactions by Java and kafkajs, each in a process of its own that is told what to do by JSON lines."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from peers import java
from tests.conformance.clients.java import Java
from tests.conformance.clients.kafkajs import KafkaJs
from tests.conformance.clients.lines import LineDriver
from tests.conformance.transactions.face import Can, MemberOf, Place, Reader, Transactor

JAVA_SOURCE = Path(__file__).resolve().parent.parent / "java" / "TransactionHost.java"
KAFKAJS_SOURCE = Path(__file__).resolve().parent / "kafkajs_host.js"
_names = itertools.count(1)


class JavaHost(Java):
    def command(self) -> list[str]:
        return java.command("TransactionHost", classes=java.compiled(JAVA_SOURCE))


class KafkaJsHost(KafkaJs):
    def command(self) -> list[str]:
        return ["node", str(KAFKAJS_SOURCE)]


class Hosts:
    """One process per library and broker, started when it is first wanted."""

    def __init__(self) -> None:
        self._running: dict[tuple[type[LineDriver], str], LineDriver] = {}

    def of(self, kind: type[LineDriver], bootstrap: str) -> LineDriver:
        # A JVM is dear, and Java's clients do not mind several brokers in one process.
        key = (kind, "" if kind is JavaHost else bootstrap)
        if key not in self._running:
            self._running[key] = kind(bootstrap)
        return self._running[key]

    def close(self) -> None:
        for each in self._running.values():
            each.close()
        self._running.clear()


HOSTS = Hosts()


class LineTransactor(Transactor):
    host_kind: ClassVar[type[LineDriver]]

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.key = f"producer-{next(_names)}"
        self._ask("open", id=self.transactional_id, timeout_ms=self.timeout_ms)

    def _ask(self, call: str, **arguments: Any) -> Any:
        host = HOSTS.of(self.host_kind, self.bootstrap)
        return host.ask(call, **{"bootstrap": self.bootstrap, "name": self.key, **arguments})

    def init(self) -> None:
        self._ask("init")

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> list[int]:
        wish = {"key": None if key is None else _text(key), "values": [_text(value) for value in values]}
        offsets: list[int] = self._ask("send", topic=topic, partition=partition, **wish)
        return offsets

    def send_offsets(self, member: MemberOf, offsets: Mapping[Place, int]) -> None:
        wanted = [[*place, offset] for place, offset in offsets.items()]
        who = {"group": member.group, "member_id": member.member_id, "generation": member.generation}
        self._ask("send_offsets", offsets=wanted, **who)

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def close(self) -> None:
        self._ask("close")


class LineReader(Reader):
    host_kind: ClassVar[type[LineDriver]]

    def read(self, place: Place, *, committed: bool, start: int = 0) -> list[tuple[int, bytes]]:
        topic, partition = place
        wish = {"topic": topic, "partition": partition, "committed": committed, "start": start}
        found = HOSTS.of(self.host_kind, self.bootstrap).ask("read", bootstrap=self.bootstrap, **wish)
        return [(offset, base64.b64decode(value)) for offset, value in found]


class JavaTransactor(LineTransactor):
    name = "java"
    peer = "kafka"
    can = frozenset(Can)
    host_kind = JavaHost


class JavaReader(LineReader):
    name = "java"
    peer = "kafka"
    host_kind = JavaHost


class KafkaJsTransactor(LineTransactor):
    name = "kafkajs"
    peer = "kafkajs"
    can = frozenset({Can.GO_ON_AFTER_REFUSAL})
    host_kind = KafkaJsHost


class KafkaJsReader(LineReader):
    name = "kafkajs"
    peer = "kafkajs"
    host_kind = KafkaJsHost


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
