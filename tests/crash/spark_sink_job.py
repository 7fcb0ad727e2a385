"""The exactly-once sink on real Spark, with points at which its processes die or are stopped.

`python -m tests.crash.spark_sink_job '{…}'` copies a topic: one life of a driver, with a JVM of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter
from pyspark.sql.types import StructType
from tests.crash import spark_sink_life
from tests.crash.spark_job import CONFS
from tests.crash.spark_sink_life import DONE, FAILED, TAKEN, Fault, FaultyWriter, Point

from lowwater.spark.sink import Attempt, Writing, Written
from lowwater.spark.source import LowwaterSource

NAME = "faultyonce"
FOLDER = "faultfolder"
WORKER, DRIVER, STOPPED = "worker", "driver", "stopped"
"""Who dies: the process that reaches the point, or the JVM as well. Or it is stopped, and `<point>.hit` has its id."""
TWICE = "twice"
"""A file of that name: a task of each batch is tried twice, see Twice."""
BOTH_RETURN, OVERTAKEN, LATE = "both return", "overtaken", "late"
WAYS = (BOTH_RETURN, OVERTAKEN, LATE)
_LOOK_AGAIN_S = 0.02
_WAIT_S = 120


def arm(folder: Path, point: Point, whom: str) -> None:
    (folder / point).write_text(whom)


def stopped_at(folder: Path, point: Point) -> int | None:
    """The process that was stopped there, if one was."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int((folder / f"{point}.hit").read_text())
    return None


class ArmedFault(Fault):
    """By files: Spark's processes have nothing else in common."""

    def __init__(self, folder: Path) -> None:
        super().__init__(None)
        self.folder = folder

    def reach(self, point: Point) -> None:
        armed, hit = self.folder / point, self.folder / f"{point}.hit"
        try:
            whom = armed.read_text()
            armed.rename(hit)
        except FileNotFoundError:
            return
        if whom == STOPPED:
            hit.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        if whom == DRIVER:
            os.kill(_jvm_above(os.getpid()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _jvm_above(pid: int) -> int:
    """Of the processes that have started this one."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert pid > 1, "Python's processes are started by a JVM"
    return pid


class Twice:
    """The first task of a batch is slow in its first attempt, so that Spark speculates, and both attempts write.

    Both return when both have written; or the first one is still there when the batch is over, and is killed by Spark;
    or it begins to write only then.
    """

    def __init__(self, folder: Path, checkpoint: Path, attempt: Attempt) -> None:
        assert attempt.batch is not None
        self._folder = folder
        self._attempt = attempt
        self._commit = checkpoint / "commits" / str(attempt.batch)
        self._is_slow = attempt.task == 0 and attempt.number == 0
        self._way = WAYS[attempt.batch % len(WAYS)] if (folder / TWICE).exists() else None

    def before(self) -> None:
        if self._is_slow and self._way == LATE:
            _wait_for(self._commit)

    def after(self) -> None:
        """Notes that this attempt has written all of its rows."""
        if self._way is None:
            return
        self._wrote(self._attempt.number).write_text(self._way)
        if self._is_slow and self._way != LATE:
            _wait_for(self._wrote(1) if self._way == BOTH_RETURN else self._folder / "never")

    def _wrote(self, attempt: int) -> Path:
        return self._folder / f"wrote-{self._attempt.batch}-{self._attempt.task}-{attempt}"


def _wait_for(file: Path) -> None:
    """Not for ever: Spark may not speculate."""
    until_s = time.monotonic() + _WAIT_S
    while not file.exists() and time.monotonic() < until_s:
        time.sleep(_LOOK_AGAIN_S)


class ArmedWriter(FaultyWriter):
    def __init__(self, writing: Writing, folder: Path, checkpoint: Path) -> None:
        super().__init__(writing)
        self.fault = ArmedFault(folder)
        self._folder = folder
        self._checkpoint = checkpoint

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        self.fault.reach(Point.PLANNED)
        return state

    def write(self, iterator: Iterator[Any]) -> Written:
        twice = Twice(self._folder, self._checkpoint, self._attempt())
        twice.before()
        written = super().write(iterator)
        self.fault.reach(Point.TASK_ATTEMPT)
        self.fault.reach(Point.AMONG_TASKS)
        twice.after()
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
        checkpoint = Path(self.options["checkpointLocation"])
        return ArmedWriter(Writing.plan(self.options, schema), self.folder, checkpoint)


def register(session: SparkSession) -> None:
    """Workers are sent the code itself: they may not find these modules."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cloudpickle.register_pickle_by_value(spark_sink_life)
    session.dataSource.register(FaultyOnceSource)


@dataclass(frozen=True, slots=True)
class Copy:
    """`folder` has the armed points and, unless told otherwise, the checkpoint."""

    folder: str
    bootstrap: str
    source: str
    target: str
    sink: str
    limit: int = 20
    master: str = "local[2,3]"
    checkpoint: str = "checkpoint"
    confs: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def start(self, session: SparkSession) -> Any:
        """Copies what is there, in batches of a few rows, and ends."""
        servers = {"kafka.bootstrap.servers": self.bootstrap}
        reading = {"subscribe": self.source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(self.limit)}
        once = {"topic": self.target, "exactlyOnce": "true", "sinkId": self.sink, "faultFolder": self.folder}
        rows = session.readStream.format("lowwater").options(**servers, **reading).load().select("value")
        writer = rows.writeStream.format(NAME).options(**servers, **once).trigger(availableNow=True)
        return writer.option("checkpointLocation", f"{self.folder}/{self.checkpoint}").start()


def main() -> int:
    copy = Copy(**json.loads(sys.argv[1]))
    builder = SparkSession.builder.master(copy.master).appName("once")
    for name, value in {**CONFS, **copy.confs}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    try:
        copy.start(session).awaitTermination()
    except Exception as error:
        print(error, file=sys.stderr)
        return TAKEN if "was taken over" in str(error) else FAILED
    return DONE


if __name__ == "__main__":
    # The class is sent by its module's name, which must not be __main__.
    from tests.crash import spark_sink_job

    sys.exit(spark_sink_job.main())
