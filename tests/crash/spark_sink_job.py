"""The exactly-once sink on real Spark, with points at which its processes die.

`python -m tests.crash.spark_sink_job '{…}'` copies a topic: one life of a driver, with a JVM of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter
from pyspark.sql.types import StructType
from tests.crash import spark_sink_life
from tests.crash.spark_job import CONFS
from tests.crash.spark_sink_life import Fault, FaultyWriter, Point

from lowwater.spark.sink import Writing, Written
from lowwater.spark.source import LowwaterSource

NAME = "faultyonce"
FOLDER = "faultfolder"
WORKER, DRIVER = "worker", "driver"
"""Who dies: the process that reaches the point, or the JVM as well."""


def arm(folder: Path, point: Point, whom: str) -> None:
    (folder / point).write_text(whom)


class ArmedFault(Fault):
    """By files: Spark's processes have nothing else in common."""

    def __init__(self, folder: Path) -> None:
        super().__init__(None)
        self.folder = folder

    def reach(self, point: Point) -> None:
        armed = self.folder / point
        try:
            whom = armed.read_text()
            armed.rename(self.folder / f"{point}.hit")
        except FileNotFoundError:
            return
        if whom == DRIVER:
            os.kill(_parent(os.getppid()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _parent(pid: int) -> int:
    """Python's processes are children of a daemon, which is a child of the JVM."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


class ArmedWriter(FaultyWriter):
    def __init__(self, writing: Writing, folder: Path) -> None:
        super().__init__(writing)
        self.fault = ArmedFault(folder)

    def write(self, iterator: Iterator[Any]) -> Written:
        written = super().write(iterator)
        self.fault.reach(Point.TASK_ATTEMPT)
        return written


class FaultyOnceSource(LowwaterSource):
    """Its option `faultFolder` is where points are armed."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = dict(options)
        self.folder = Path(given.pop(FOLDER))
        super().__init__(type(options)(given))  # type: ignore[call-arg]

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # type: ignore[override]  # noqa: N802
        return ArmedWriter(Writing.plan(self.options, schema), self.folder)


def register(session: SparkSession) -> None:
    """Workers are sent the code itself: they may not find these modules."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cloudpickle.register_pickle_by_value(spark_sink_life)
    session.dataSource.register(FaultyOnceSource)


@dataclass(frozen=True, slots=True)
class Copy:
    folder: str
    bootstrap: str
    source: str
    target: str
    sink: str
    limit: int = 20

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def start(self, session: SparkSession) -> Any:
        """Copies what is there, in batches of a few rows, and ends."""
        servers = {"kafka.bootstrap.servers": self.bootstrap}
        reading = {"subscribe": self.source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(self.limit)}
        once = {"topic": self.target, "exactlyOnce": "true", "sinkId": self.sink, "faultFolder": self.folder}
        rows = session.readStream.format("lowwater").options(**servers, **reading).load().select("value")
        writer = rows.writeStream.format(NAME).options(**servers, **once).trigger(availableNow=True)
        return writer.option("checkpointLocation", f"{self.folder}/checkpoint").start()


def main() -> int:
    copy = Copy(**json.loads(sys.argv[1]))
    builder = SparkSession.builder.master("local[2,3]").appName("once")
    for name, value in CONFS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    try:
        copy.start(session).awaitTermination()
    except Exception as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # The class is sent by its module's name, which must not be __main__.
    from tests.crash import spark_sink_job

    sys.exit(spark_sink_job.main())
