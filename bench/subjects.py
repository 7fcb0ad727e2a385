"""What is measured: Lowwater and its peers, each a process of its own that listens on loopback."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from peers import places, processes
from peers.kafka import BENCH_JVM, ApacheKafka

from bench import connection

ROOT = Path(__file__).resolve().parent.parent
STOP_TIMEOUT_S = 60
LOG_LINES_SHOWN = 40

# Deleted topics must not linger as dirty pages into the next round; everything else is Kafka's default.
KAFKA_SETTINGS = {"log.segment.delete.delay.ms": "1000", "num.partitions": "4", "group.share.enable": "false"}
# As `peers.kafka` sets it: what is measured is not a delay.
LOWWATER_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


class Running(Protocol):
    """A started broker."""

    @property
    def port(self) -> int: ...

    @property
    def pid(self) -> int: ...


class Child:
    """A broker of ours or the mock: prints `… kafka=HOST:PORT …` when it is ready."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  (lives as long as the broker)

    @property
    def pid(self) -> int:
        assert self.process is not None, "not running"
        return self.process.pid

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        # Compiled modules are kept, as with anybody who installed the package.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.process = processes.start(
            self._command,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
            cwd=tempfile.gettempdir(),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "kafka=" not in line:
            raise RuntimeError(f"{' '.join(self._command)} printed {line!r} instead of its port\n{self._complaints()}")
        self.port = int(line.split("kafka=")[1].split()[0].rpartition(":")[2])

    def terminate(self) -> None:
        """Stop cleanly, by SIGTERM."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        if self.process is not None:
            processes.kill_group(self.process)
            self.process = None

    def _complaints(self) -> str:
        """The last of what it logged."""
        self._log.seek(0)
        return "".join(self._log.readlines()[-LOG_LINES_SHOWN:])


class LowwaterBroker(Child):
    """`lowwater broker` on a directory of its own, which goes with `discard`."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.data_dir = tempfile.mkdtemp(prefix="lowwater-bench-")
        command = [sys.executable, "-m", "lowwater.cli.main", "broker", "--no-http", "--port", "0"]
        command += ["--data-dir", self.data_dir]
        for name, value in (settings or {}).items():
            command += ["--set", f"{name}={value}"]
        super().__init__(command)

    def discard(self) -> None:
        self.kill()
        if "ERROR" in (complaints := self._complaints()):
            print(f"the broker logged errors; the last lines:\n{complaints}", file=sys.stderr)
        shutil.rmtree(self.data_dir, ignore_errors=True)


_topic_numbers = itertools.count(1)


@dataclass(frozen=True)
class Subject:
    """A running broker under the durability that a row of a table names."""

    name: str
    running: Running
    flush: str
    crc: str
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    creates_topics: bool = True

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def pid(self) -> int:
        return self.running.pid

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def topic(self, partitions: int = 4) -> Iterator[str]:
        """A new topic, deleted afterwards so that its pages need not be written back during later rounds."""
        name = f"bench-{next(_topic_numbers):05d}"
        if not self.creates_topics:
            connection.wait_for_topic(self.port, name, partitions)
            yield name
            return
        connection.create_topic(self.port, name, partitions, self.topic_configs)
        yield name
        connection.delete_topic(self.port, name)


LOWWATER, MOCK, KAFKA = "lowwater", "librdkafka mock", "Apache Kafka"


class Fleet:
    """Starts each subject when a workload first asks for it; `stop` ends them all."""

    def __init__(self, *, with_kafka: bool) -> None:
        self.kafka_missing = places.missing_kafka() if with_kafka else "left out by --no-kafka"
        self.on_kafka_started: Callable[[Subject], None] = lambda kafka: None
        self._lowwater: dict[str, LowwaterBroker] = {}
        self._mock: Child | None = None
        self._kafka: ApacheKafka | None = None

    def lowwater(self, policy: str = "acks", *, flush: str | None = None) -> Subject:
        """Our broker with that `log.flush.policy`; `flush` says what the policy means for the row at hand."""
        if policy not in self._lowwater:
            self._lowwater[policy] = LowwaterBroker({"log.flush.policy": policy, **LOWWATER_SETTINGS})
            self._lowwater[policy].start()
        return Subject(LOWWATER, self._lowwater[policy], flush or policy, "checked")

    def mock(self) -> Subject:
        if self._mock is None:
            self._mock = Child([sys.executable, "-m", "bench.mock_cluster"])
            self._mock.start()
        return Subject(MOCK, self._mock, "no file", "not checked", creates_topics=False)

    def kafka(self, *, flush_each: bool = False) -> Subject | None:
        """Apache Kafka with its defaults, or with flush.messages=1 on the topics; None where it cannot be had."""
        if self.kafka_missing:
            return None
        if self._kafka is None:
            self._kafka = ApacheKafka(KAFKA_SETTINGS, jvm=BENCH_JVM).start()
            self.on_kafka_started(Subject(KAFKA, self._kafka, "", ""))
        if flush_each:
            return Subject(KAFKA, self._kafka, "flush.messages=1", "checked", {"flush.messages": "1"})
        return Subject(KAFKA, self._kafka, "never (default)", "checked")

    def stop(self) -> None:
        for broker in self._lowwater.values():
            broker.discard()
        if self._mock is not None:
            self._mock.kill()
        if self._kafka is not None:
            self._kafka.stop()
        self._lowwater, self._mock, self._kafka = {}, None, None

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
