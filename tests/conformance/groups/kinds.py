"""The client libraries that can be members, and what each of them can do there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import pytest
from peers import java, places

HOSTS = Path(__file__).resolve().parent / "hosts"
JAVA_SOURCE = HOSTS.parent.parent / "java" / "GroupHost.java"


class Can(Enum):
    """What a library may or may not be able to do as a member."""

    COMMIT = auto()  # when told to
    STATIC = auto()  # group.instance.id
    TELL_FENCED = auto()  # reports FENCED_INSTANCE_ID to the application
    FOLLOW_PATTERN = auto()  # topics that appear later and match are joined
    SEE_NEW_PARTITIONS = auto()
    RESET_NONE = auto()  # auto.offset.reset=none
    COOPERATE = auto()  # incremental rebalances
    READ_WHILE_REBALANCING = auto()  # in a cooperative rebalance; kafka-python's poll waits for the end
    HOLD = auto()  # can stop polling


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    peer: str
    protocol: str
    assignors: frozenset[str]
    can: frozenset[Can]
    command: Callable[[], list[str]]
    environment: Callable[[], dict[str, str]]
    shares_a_process: bool = False

    def __str__(self) -> str:
        return self.name


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.conformance.groups.hosts.{module}"]


def _python_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(places.ROOT)}


def _node_environment() -> dict[str, str]:
    return {**os.environ, "NODE_PATH": str(places.KAFKAJS / "node_modules")}


def _java() -> list[str]:
    return java.command("GroupHost", classes=java.compiled(JAVA_SOURCE))


EVERYTHING = frozenset(Can)
SHARED = frozenset({"range", "roundrobin"})

CONFLUENT = Kind(
    "confluent",
    "confluent",
    "classic",
    SHARED | {"cooperative-sticky"},
    EVERYTHING,
    _python("confluent"),
    _python_environment,
)
CONFLUENT_848 = Kind(
    "confluent-848",
    "confluent",
    "consumer",
    frozenset(),
    EVERYTHING,
    _python("confluent"),
    _python_environment,
)
KAFKA_PYTHON = Kind(
    "kafka-python",
    "kafka_python",
    "classic",
    SHARED | {"sticky", "cooperative-sticky"},
    # It rejoins for new topics and partitions, but on a busy machine it forgets so half-way, with Apache Kafka too.
    EVERYTHING - {Can.TELL_FENCED, Can.READ_WHILE_REBALANCING, Can.FOLLOW_PATTERN, Can.SEE_NEW_PARTITIONS},
    _python("kafka_python"),
    _python_environment,
)
AIOKAFKA = Kind(
    "aiokafka",
    "aiokafka",
    "classic",
    SHARED | {"sticky"},
    EVERYTHING - {Can.COOPERATE, Can.TELL_FENCED, Can.READ_WHILE_REBALANCING},
    _python("aio_kafka"),
    _python_environment,
)
JAVA = Kind(
    "java",
    "kafka",
    "classic",
    SHARED | {"sticky", "cooperative-sticky"},
    EVERYTHING,
    _java,
    lambda: dict(os.environ),
    shares_a_process=True,
)
JAVA_848 = Kind(
    "java-848",
    "kafka",
    "consumer",
    frozenset(),
    EVERYTHING,
    _java,
    lambda: dict(os.environ),
    shares_a_process=True,
)
KAFKAJS = Kind(
    "kafkajs",
    "kafkajs",
    "classic",
    frozenset({"range"}),
    frozenset({Can.COMMIT}),
    lambda: ["node", str(HOSTS / "kafkajs.js")],
    _node_environment,
)
KCAT = Kind(
    "kcat",
    "kcat",
    "classic",
    SHARED,
    frozenset({Can.SEE_NEW_PARTITIONS, Can.STATIC, Can.FOLLOW_PATTERN}),
    lambda: [sys.executable, "-m", "tests.conformance.groups.hosts.kcat"],
    _python_environment,
)
LOWWATER = Kind(
    "lowwater",
    "lowwater",
    "classic",
    SHARED | {"sticky", "cooperative-sticky"},
    EVERYTHING,
    _python("lowwater"),
    _python_environment,
)
LOWWATER_848 = Kind(
    "lowwater-848",
    "lowwater",
    "consumer",
    frozenset(),
    EVERYTHING,
    _python("lowwater"),
    _python_environment,
)
KINDS = {
    kind.name: kind
    for kind in (
        LOWWATER,
        LOWWATER_848,
        CONFLUENT,
        CONFLUENT_848,
        KAFKA_PYTHON,
        AIOKAFKA,
        JAVA,
        JAVA_848,
        KAFKAJS,
        KCAT,
    )
}


def able(*needs: Can, protocol: str | None = None, assignor: str | None = None) -> list[Kind]:
    """The kinds that can do all that, of one protocol if one is named, and know the assignor."""
    return [
        kind
        for kind in KINDS.values()
        if kind.can.issuperset(needs)
        and protocol in (None, kind.protocol)
        and (assignor is None or assignor in kind.assignors)
    ]


def played_by(
    *needs: Can, protocol: str | None = None, assignor: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once per kind of member that can play it, beside all the others."""
    marked = [
        pytest.param(kind, marks=pytest.mark.peer(kind.peer), id=kind.name)
        for kind in able(*needs, protocol=protocol, assignor=assignor)
    ]

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        decorated: Callable[..., None] = pytest.mark.together(pytest.mark.parametrize("kind", marked)(test))
        return decorated

    return mark
