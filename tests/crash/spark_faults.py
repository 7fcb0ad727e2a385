"""Named places in a streaming query at which a test stops it: nothing in the product knows of them.

Whoever runs the query arms a point by a file of its name. The first that reaches it takes that file away, leaves
`<point>.hit` in its place, and waits for `<point>.go`; mostly it is killed there.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from lowwater.spark.source import LowwaterSource
from lowwater.spark.stream_reader import LowwaterStreamReader

NAME = "faulty"
FOLDER = "faultfolder"
BEFORE_OFFSET_LOG = "before-offset-log"
AFTER_OFFSET_LOG = "after-offset-log"
IN_TASKS = "in-tasks"
AFTER_SINK = "after-sink"
BEFORE_GROUP_COMMIT = "before-group-commit"
KILLS_WORKER = "kills-worker"
KILLS_EXECUTOR = "kills-executor"
_LOOK_AGAIN_S = 0.02
_FORGOTTEN_S = 300


def arm(folder: Path, point: str) -> None:
    (folder / point).touch()


def is_hit(folder: Path, point: str) -> bool:
    return (folder / f"{point}.hit").exists()


def go_on(folder: Path, point: str) -> None:
    (folder / f"{point}.go").touch()


def disarm(folder: Path, point: str) -> None:
    """As if it had never been armed."""
    for suffix in ("", ".hit", ".go"):
        (folder / f"{point}{suffix}").unlink(missing_ok=True)


def take(folder: Path, point: str) -> bool:
    """Whether the point was armed; true for one of all processes that ask."""
    try:
        (folder / point).rename(folder / f"{point}.hit")
    except FileNotFoundError:
        return False
    return True


def reach(folder: Path, point: str) -> None:
    """Waits there when it was armed; not for ever, since nobody may be left to kill it."""
    if not take(folder, point):
        return
    until_s = time.monotonic() + _FORGOTTEN_S
    while not (folder / f"{point}.go").exists():
        if time.monotonic() > until_s:
            os._exit(1)
        time.sleep(_LOOK_AGAIN_S)


def register(session: SparkSession) -> None:
    """Workers are sent the code itself: they may not find this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    session.dataSource.register(FaultySource)


class FaultySource(LowwaterSource):
    """The source, with points in it. Its option `faultFolder` is where they are armed."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = dict(options)
        self.folder = Path(given.pop(FOLDER))
        super().__init__(type(options)(given))  # type: ignore[call-arg]

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        sound = super().streamReader(schema)
        assert isinstance(sound, LowwaterStreamReader)
        return FaultyReader(sound, self.folder)


class FaultyReader(LowwaterStreamReader):
    def __init__(self, sound: LowwaterStreamReader, folder: Path) -> None:
        super().__init__(sound._scan)
        self._folder = folder

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Spark has written its commit log; the group learns of it within the sound call."""
        if "initial" not in start:
            reach(self._folder, BEFORE_GROUP_COMMIT)
        return super().latestOffset(start, limit)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Called between the choice of a batch's end and the offset log."""
        reach(self._folder, BEFORE_OFFSET_LOG)
        return super().reportLatestOffset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Any:
        """The batch stands in the offset log."""
        reach(self._folder, AFTER_OFFSET_LOG)
        return super().partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for batch in super().read(partition):
            yield batch
            reach(self._folder, IN_TASKS)
            if take(self._folder, KILLS_WORKER):
                os.kill(os.getpid(), signal.SIGKILL)
            if take(self._folder, KILLS_EXECUTOR):
                os.kill(_parent(os.getppid()), signal.SIGKILL)

    def __reduce__(self) -> tuple[Any, ...]:
        return FaultyReader, (LowwaterStreamReader(self._scan), self._folder)


def _parent(pid: int) -> int:
    """Workers are children of a daemon, which is a child of the executor's JVM."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])
