"""The broker that a conformance run talks to: ours or Apache Kafka, behind one face."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Running(Protocol):
    bootstrap: str

    def restart(self) -> None: ...


@dataclass(frozen=True, slots=True)
class UnderTest:
    """`name` is "lowwater" or "kafka"; `process` is the thing that runs it."""

    name: str
    process: Running
    data_dir: Path

    @property
    def bootstrap(self) -> str:
        return self.process.bootstrap

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.rsplit(":", 1)
        return host, int(port)

    def restart(self) -> None:
        """Stop cleanly, start again on the same data and the same port."""
        self.process.restart()


@contextlib.contextmanager
def running(name: str, overrides: Mapping[str, str] | None = None) -> Iterator[UnderTest]:
    if name == "kafka":
        from peers.kafka import ApacheKafka

        with ApacheKafka(overrides) as kafka:
            yield UnderTest(name, kafka, kafka.log_dir)
        return
    from lowwater.testing import Broker

    with Broker(config=dict(overrides or {})) as broker:
        yield UnderTest(name, broker, Path(broker.data_dir))
