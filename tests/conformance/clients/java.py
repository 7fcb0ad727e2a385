"""Apache Kafka's own Java clients, in one JVM that runs ClientDriver.java."""

from __future__ import annotations

from pathlib import Path

from peers import java
from tests.conformance.clients.base import Can
from tests.conformance.clients.lines import LineDriver

SOURCE = Path(__file__).resolve().parent.parent / "java" / "ClientDriver.java"


class Java(LineDriver):
    name = "java"
    peer = "kafka"
    can = frozenset(Can)

    def command(self) -> list[str]:
        return java.command("ClientDriver", classes=java.compiled(SOURCE))
