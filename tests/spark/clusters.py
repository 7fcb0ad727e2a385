"""Clusters and servers of Spark, started from the pip package: processes that end with the test."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyspark
from tests.crash.spark_job import QUICK_JAVA
from tests.crash.spark_life import ROOT, environment

PATIENCE_S = 400
SPARK_HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
SUBMIT = "org.apache.spark.deploy.SparkSubmit"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
ANY_PORTS = ("--port", "0", "--webui-port", "0")
_STARTED_AT = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"(Successfully registered) with master")
_CONNECT_AT = re.compile(r"Spark Connect server started at: \S*:(\d+)")
_LOOK_AGAIN_S = 0.05


@contextlib.contextmanager
def spark_class(folder: Path, name: str, *arguments: str) -> Iterator[Process]:
    """A program of Spark's by `spark-class`; ended with the block."""
    log = folder / f"{name}.log"
    quick = {"SPARK_DAEMON_MEMORY": "600m", "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}
    variables = {**environment(), "SPARK_HOME": str(SPARK_HOME), **quick}
    with log.open("wb") as output:
        command = [str(SPARK_HOME / "bin" / "spark-class"), *arguments]
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=output, stderr=output)
    try:
        yield Process(process, log)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


class Process:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def says(self, pattern: re.Pattern[str]) -> str:
        """What the pattern's group is, as soon as it stands in the log."""
        until_s = time.monotonic() + PATIENCE_S
        while (found := pattern.search(self._log.read_text(errors="replace"))) is None:
            assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < until_s, f"it never says {pattern.pattern}"
            time.sleep(_LOOK_AGAIN_S)
        return found[1]


@contextlib.contextmanager
def standalone(folder: Path, hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1")) -> Iterator[str]:
    """A master and a worker of one core at each of these addresses; the master's address."""
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(spark_class(folder, "master", MASTER, "--host", "127.0.0.1", *ANY_PORTS))
        address = master.says(_STARTED_AT)
        started = []
        for number, host in enumerate(hosts):
            home = folder / f"worker-{number}"
            room = ("--host", host, *ANY_PORTS, "--cores", "1", "--memory", "1g", "--work-dir", str(home))
            started.append(stack.enter_context(spark_class(folder, home.name, WORKER, *room, address)))
        for worker in started:
            worker.says(_REGISTERED)
        yield address


@contextlib.contextmanager
def connect_server(folder: Path, confs: dict[str, str]) -> Iterator[str]:
    """A Spark Connect server with a Spark of its own; its address."""
    settings = {**confs, "spark.connect.grpc.binding.port": "0", "spark.master": "local[2,3]"}
    settings["spark.log.level"] = "INFO"  # or it would not say where it is
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with spark_class(folder, "connect", SUBMIT, "--class", CONNECT, *given, "spark-internal") as server:
        yield f"sc://127.0.0.1:{server.says(_CONNECT_AT)}"


def result_of(module: str, folder: Path, **given: Any) -> dict[str, Any]:
    """What a script prints as JSON, run in a process of its own: one has only one session."""
    log = folder / "job.log"
    with log.open("wb") as errors:
        command = [sys.executable, "-m", module, json.dumps({"folder": str(folder), **given})]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=errors, timeout=PATIENCE_S
        )
    assert done.returncode == 0, log.read_text(errors="replace")[-5000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
