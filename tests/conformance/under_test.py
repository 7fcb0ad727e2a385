"""The broker that a conformance run talks to: ours, Apache Kafka or an old version of it, behind one face."""

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
    """`name` is "lowwater", "kafka" or "kafka-2.8"; `process` is the thing that runs it."""

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


# Tests write old timestamps; retention must not come in between and delete their records.
DAY_MS = "86400000"
NO_RETENTION_RUNS = {"log.retention.check.interval.ms": DAY_MS}
NO_FIRST_RETENTION_RUN = {"log.initial.task.delay.ms": DAY_MS}


@contextlib.contextmanager
def running(
    name: str, overrides: Mapping[str, str] | None = None, *, apart: bool = False, kafka_brokers: int = 1
) -> Iterator[UnderTest]:
    """A broker for the length of a `with`; `apart`: ours in a process of its own too, not in a thread."""
    settings = {**NO_RETENTION_RUNS, **(overrides or {})}
    if name == "kafka":
        from peers.kafka import KafkaCluster

        with KafkaCluster({**NO_FIRST_RETENTION_RUN, **settings}, brokers=kafka_brokers) as kafka:
            yield UnderTest(name, kafka, kafka.nodes[0].log_dir)
        return
    if name == "kafka-2.8":
        from peers.old_kafka import OldKafka

        with OldKafka(settings) as old:
            yield UnderTest(name, old, old.log_dir)
        return
    from lowwater.testing import Broker

    with Broker(config=settings, subprocess=apart) as broker:
        yield UnderTest(name, broker, Path(broker.data_dir))
