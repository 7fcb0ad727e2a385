"""The oldest Apache Kafka that the client works with (2.8), with its ZooKeeper, on loopback.

    with OldKafka() as kafka:
        produce_to(kafka.bootstrap)

By hand: `python -m peers.old_kafka [name=value …]` runs one until it is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peers import java, places, processes
from peers.kafka import HOST, START_TIMEOUT_S, STOP_TIMEOUT_S, TEST_JVM, answers, free_ports

LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
ZOOKEEPER = """\
dataDir={folder}/zookeeper
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
"""
SETTINGS = {
    "broker.id": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
}


class OldKafka:
    """One broker. Leaving the `with` ends both processes and removes their files."""

    def __init__(self, overrides: Mapping[str, str] | None = None) -> None:
        self.overrides = dict(overrides or {})
        self.port = 0
        self._folder: Path | None = None
        self._zookeeper: subprocess.Popen[Any] | None = None
        self._broker: subprocess.Popen[Any] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def folder(self) -> Path:
        assert self._folder is not None, "it was not started"
        return self._folder

    @property
    def log_dir(self) -> Path:
        return self.folder / "data"

    def __enter__(self) -> OldKafka:
        if problem := places.missing_old_kafka():
            raise FileNotFoundError(problem)
        self._folder = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        try:
            self._prepare()
            self._zookeeper = self._run("org.apache.zookeeper.server.quorum.QuorumPeerMain", "zookeeper.cfg")
            self._launch()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _prepare(self) -> None:
        self.port, zookeeper_port = free_ports(2)
        settings = {
            **SETTINGS,
            "zookeeper.connect": f"{HOST}:{zookeeper_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.log_dir),
            **self.overrides,
        }
        (self.folder / "log4j.properties").write_text(LOG4J)
        (self.folder / "zookeeper.cfg").write_text(ZOOKEEPER.format(folder=self.folder, port=zookeeper_port))
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "server.properties").write_text(text)

    def _run(self, program: str, settings: str) -> subprocess.Popen[Any]:
        log = f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}"
        jars = os.pathsep.join(map(str, sorted(places.OLD_KAFKA_LIBS.glob("*.jar"))))
        command = [java.java(), *TEST_JVM, log, "-cp", jars, program, str(self.folder / settings)]
        with (self.folder / f"{settings}.log").open("ab") as output:
            return processes.start(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def _launch(self) -> None:
        self._broker = self._run("kafka.Kafka", "server.properties")
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.port):
            if self._broker.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "server.properties.log").read_text(errors="replace")
                raise RuntimeError(f"Apache Kafka 2.8 does not answer:\n{log[-4000:]}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._broker.wait(0.02)

    def restart(self) -> None:
        """Stop the broker cleanly and run it again, on the same port and directory."""
        self._end(self._broker)
        self._launch()

    def stop(self) -> None:
        for process in (self._broker, self._zookeeper):
            self._end(process)
        self._broker = self._zookeeper = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @staticmethod
    def _end(process: subprocess.Popen[Any] | None) -> None:
        if process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_TIMEOUT_S)
        processes.kill_group(process)


def main() -> None:
    overrides = dict(argument.split("=", 1) for argument in sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the directory goes too
    with contextlib.suppress(KeyboardInterrupt), OldKafka(overrides) as kafka:
        print(f"apache kafka 2.8 ready kafka={kafka.bootstrap} data={kafka.log_dir}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
