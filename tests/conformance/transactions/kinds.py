"""The client libraries that can be transactional producers, each on the protocol path that it takes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.conformance.transactions.aio_kafka import AioKafkaReader, AioKafkaTransactor
from tests.conformance.transactions.confluent import ConfluentReader, ConfluentTransactor
from tests.conformance.transactions.face import TIMEOUT_S, Can, Place, Reader, Transactor
from tests.conformance.transactions.kafka_python import KafkaPythonReader, KafkaPythonTransactor
from tests.conformance.transactions.lines import JavaReader, JavaTransactor, KafkaJsReader, KafkaJsTransactor
from tests.conformance.transactions.own import OwnTransactor

NEWEST = 2


class KcatReader(Reader):
    name = "kcat"
    peer = "kcat"

    def read(self, place: Place, *, committed: bool, start: int = 0) -> list[tuple[int, bytes]]:
        topic, partition = place
        level = "read_committed" if committed else "read_uncommitted"
        where = ["-t", topic, "-p", str(partition), "-o", str(start)]
        command = ["kcat", "-b", self.bootstrap, "-C", "-e", "-q", *where, "-X", f"isolation.level={level}"]
        done = subprocess.run([*command, "-f", "%o %s\n"], capture_output=True, timeout=TIMEOUT_S, check=True)
        lines = [line.split(b" ", 1) for line in done.stdout.splitlines()]
        return [(int(offset), value) for offset, value in lines]


@dataclass(frozen=True, slots=True)
class Kind:
    """`version` is the broker's transaction.version: only Java and our own take the new path where there is one."""

    name: str
    transactor: type[Transactor]
    reader: type[Reader]
    version: int = NEWEST

    @property
    def takes_the_new_path(self) -> bool:
        return self.transactor in (JavaTransactor, OwnTransactor) and self.version == NEWEST

    def __str__(self) -> str:
        return self.name


KINDS = (
    Kind("confluent", ConfluentTransactor, ConfluentReader),
    Kind("kafka-python", KafkaPythonTransactor, KafkaPythonReader),
    Kind("aiokafka", AioKafkaTransactor, AioKafkaReader),
    Kind("kafkajs", KafkaJsTransactor, KafkaJsReader),
    Kind("java", JavaTransactor, JavaReader),
    Kind("java-v1", JavaTransactor, JavaReader, version=1),
    Kind("lowwater", OwnTransactor, ConfluentReader),
    Kind("lowwater-v1", OwnTransactor, ConfluentReader, version=1),
)
READERS: tuple[type[Reader], ...] = (
    ConfluentReader,
    KafkaPythonReader,
    AioKafkaReader,
    KafkaJsReader,
    JavaReader,
    KcatReader,
)


def by_each(*needs: Can) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once per kind of producer that can play it; the scene of the test is then of that kind."""
    chosen = [
        pytest.param(kind, marks=pytest.mark.peer(kind.transactor.peer), id=kind.name)
        for kind in KINDS
        if kind.transactor.can.issuperset(needs)
    ]
    return pytest.mark.parametrize("scene", chosen, indirect=True)


def by(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once, with one kind of producer."""
    [kind] = [kind for kind in KINDS if kind.name == name]
    chosen = pytest.param(kind, marks=pytest.mark.peer(kind.transactor.peer), id=kind.name)
    return pytest.mark.parametrize("scene", [chosen], indirect=True)
