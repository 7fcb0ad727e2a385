"""A session of Spark to measure in, and what its processes cost."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers import places

from bench import procfs
from bench.subjects import ROOT
from lowwater.spark.java import use_java
from lowwater.spark.launchers import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
CONFS = {
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    # As the pipelines set them.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.python.unix.domain.socket.enabled": "true",
}
STREAM_TIMEOUT_S = 120
WORKER = "pyspark.daemon"


class Sessions:
    """One session, with the connector where it was brought, and a folder for its checkpoints."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark = spark
        self._folder = folder
        self._checkpoints = 0

    def checkpoint(self) -> str:
        self._checkpoints += 1
        return f"{self._folder}/checkpoint-{self._checkpoints}"

    def cpu_seconds(self) -> float:
        """Of this process, of the JVM and of all that it started."""
        return sum(map(_cpu_seconds, [os.getpid(), *self._processes()]))

    def _processes(self) -> list[int]:
        jvm = self.spark.sparkContext._gateway.proc.pid
        return [jvm, *procfs.descendants(jvm)]

    def workers(self) -> list[int]:
        """The Python workers, without the daemon that they are forked from."""
        found = [pid for pid in self._processes() if WORKER in procfs.command(pid)]
        return [pid for pid in found if procfs.parent(pid) in found]

    def measure(self, work: Callable[[], object], rows: int) -> dict[str, float]:
        cpu_began, began = self.cpu_seconds(), time.perf_counter()
        work()
        seconds = time.perf_counter() - began
        cpu_seconds = self.cpu_seconds() - cpu_began
        return {"rows_per_s": rows / seconds, "cpu_ns_per_row": cpu_seconds * 1e9 / rows, "seconds": seconds}

    # -- queries

    def read_all(self, form: str, options: dict[str, Any]) -> None:
        frame = self.spark.read.format(form).options(**options).load()
        frame.write.format("noop").mode("overwrite").save()

    def stream_all(self, form: str, options: dict[str, Any]) -> list[dict[str, Any]]:
        """What Spark tells of each micro-batch."""
        frame = self.spark.readStream.format(form).options(**options).load()
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", self.checkpoint())
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(STREAM_TIMEOUT_S):
            raise TimeoutError(f"{form}: the query did not end within {STREAM_TIMEOUT_S} s")
        return [dict(progress.durationMs) | {"rows": progress.numInputRows} for progress in query.recentProgress]


def _cpu_seconds(pid: int) -> float:
    with contextlib.suppress(OSError):
        return procfs.cpu_seconds(pid)
    return 0.0


@contextlib.contextmanager
def session() -> Iterator[Sessions]:
    from pyspark.sql import SparkSession

    from bench.spark_ready import ReadySource

    use_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(worker_python())
    os.environ["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    folder = tempfile.mkdtemp(prefix="lowwater-bench-spark-")
    builder = SparkSession.builder.master(MASTER).appName("bench")
    for name, value in {**CONFS, "spark.jars": connector_jars(), "spark.sql.warehouse.dir": folder}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(ReadySource)
    try:
        yield Sessions(spark, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def connector_jars() -> str:
    if places.missing_connector():
        return ""
    return ",".join(map(str, sorted(Path(places.SPARK_LIBS).glob("*.jar"))))
