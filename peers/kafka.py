"""An Apache Kafka (KRaft) on loopback, for tests and for the bench: one broker, or several.

    with ApacheKafka({"num.partitions": "3"}) as kafka:
        produce_to(kafka.bootstrap)
    with KafkaCluster(brokers=3) as kafka:
        produce_to(kafka.bootstrap)

By hand: `python -m peers.kafka [name=value …]` runs one until it is interrupted.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peers import java, places, processes

HOST = "127.0.0.1"
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 30
PORT_TRIES = 3

# What Kafka's own start script gives the broker.
SERVER_JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
BENCH_JVM = ("-Xmx1G", "-Xms1G", *SERVER_JVM)
TEST_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true")

SINGLE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class ApacheKafka:
    """Start with `start()` or `with`; `stop()` ends the process and removes its files."""

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        jvm: tuple[str, ...] = TEST_JVM,
        listeners: Mapping[str, str] | None = None,
        format_options: tuple[str, ...] = (),
        joins: ApacheKafka | None = None,
        node_id: int = 1,
    ) -> None:
        """`listeners`, by name their security protocol, are added to the plain one; `format_options` are for the
        storage tool. `joins`: a further broker of the cluster that this one controls."""
        self.overrides = dict(overrides or {})
        self.jvm = jvm
        self.listeners = dict(listeners or {})
        self.format_options = format_options
        self.ports: dict[str, int] = {}
        self.port = 0
        self.process: subprocess.Popen[Any] | None = None
        self.cluster_id = ""
        self._first = joins or self
        self._node_id = node_id
        self._controller_port = 0
        self._folder: Path | None = None

    def __enter__(self) -> ApacheKafka:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def folder(self) -> Path:
        assert self._folder is not None, "Apache Kafka was not started"
        return self._folder

    @property
    def log_dir(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        assert self.process is not None, "Apache Kafka is not running"
        return self.process.pid

    def start(self) -> ApacheKafka:
        """Format a fresh directory, run the broker, return when it answers."""
        if problem := places.missing_kafka():
            raise FileNotFoundError(problem)
        for attempt in range(PORT_TRIES):
            self._folder = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
            try:
                self._prepare()
                self.launch()
                return self
            except PortTakenError:
                # Somebody took a port between our choice and Kafka's bind.
                self.stop()
                if attempt == PORT_TRIES - 1:
                    raise
            except BaseException:
                self.stop()
                raise
        raise AssertionError("unreachable")

    def _prepare(self) -> None:
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.port, self._controller_port, *others = free_ports(2 + len(self.listeners))
        self.ports = dict(zip(self.listeners, others, strict=True))
        added = "".join(f",{name}://{HOST}:{port}" for name, port in self.ports.items())
        protocols = "".join(f",{name}:{protocol}" for name, protocol in self.listeners.items())
        controls = f",CONTROLLER://{HOST}:{self._controller_port}" if self._first is self else ""
        settings = {
            **SINGLE_NODE,
            "node.id": str(self._node_id),
            "process.roles": "broker,controller" if controls else "broker",
            "listener.security.protocol.map": SINGLE_NODE["listener.security.protocol.map"] + protocols,
            "controller.quorum.voters": f"{self._first._node_id}@{HOST}:{self._first._controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}{controls}{added}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}{added}",
            "log.dirs": str(self.log_dir),
            **self.overrides,
        }
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        format_log = java.command(
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={self._first.cluster_id}",
            "-c",
            str(properties),
            *self.format_options,
        )
        done = subprocess.run(format_log, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"Apache Kafka's storage tool refused:\n{done.stdout}{done.stderr}")

    def launch(self) -> None:
        """Run the broker on its present directory (also after `terminate` or `kill`); return when it answers."""
        log = java.log4j_file("info")
        options = (*self.jvm, f"-Dlog4j2.configurationFile={log}", f"-Dkafka.logs.dir={self.folder}")
        program = ("kafka.Kafka", str(self.folder / "server.properties"))
        command = [java.java(), *options, "-cp", java.class_path(), *program]
        with (self.folder / "server.log").open("ab") as output:
            self.process = processes.start(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self._wait_until_it_answers()

    def _wait_until_it_answers(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.port):
            if self.process.poll() is not None:
                failure = PortTakenError if "BindException" in self.log_tail(400) else RuntimeError
                raise failure(f"Apache Kafka ended with {self.process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"Apache Kafka did not answer within {START_TIMEOUT_S} s:\n{self.log_tail()}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)

    def terminate(self) -> None:
        """A clean stop; the directory stays."""
        if self.process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """kill -9; the directory stays."""
        if self.process is not None:
            processes.kill_group(self.process)
            self.process = None

    def restart(self) -> None:
        """Stop cleanly and run again, on the same port and directory."""
        self.terminate()
        self.launch()

    def stop(self) -> None:
        """End the process at once (its files go too, so there is nothing to save)."""
        self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def log_tail(self, lines: int = 30) -> str:
        log = self.folder / "server.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


class KafkaCluster:
    """Brokers of one cluster, each a process of its own; the first is their controller too."""

    def __init__(self, overrides: Mapping[str, str] | None = None, *, brokers: int = 3) -> None:
        self.nodes = [ApacheKafka(overrides)]
        for number in range(2, brokers + 1):
            self.nodes.append(ApacheKafka(overrides, joins=self.nodes[0], node_id=number))

    def __enter__(self) -> KafkaCluster:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> KafkaCluster:
        try:
            for node in self.nodes:
                node.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        for node in reversed(self.nodes):
            node.stop()

    def restart(self) -> None:
        for node in self.nodes:
            node.restart()


class PortTakenError(RuntimeError):
    """Another process has the port that was chosen for Kafka."""


def free_ports(count: int) -> list[int]:
    """Different ones, that nobody had a moment ago."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def answers(port: int) -> bool:
    """Whether a Kafka-protocol broker answers an ApiVersions request (version 0) without an error."""
    request = struct.pack(">ihhih", 10, 18, 0, 7, -1)
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(request)
            reply = connection.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(reply) == 10 and struct.unpack(">iih", reply)[1:] == (7, 0)


def main() -> None:
    overrides = dict(argument.split("=", 1) for argument in sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the directory goes too
    with contextlib.suppress(KeyboardInterrupt), ApacheKafka(overrides) as kafka:
        print(f"apache kafka ready kafka={kafka.bootstrap} data={kafka.log_dir}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
