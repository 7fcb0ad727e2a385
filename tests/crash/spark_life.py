"""A process with a streaming query in it, with its JVM and its workers: started, watched, killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.crash.spark_job import Job

from lowwater.spark.java import java_home
from lowwater.spark.launchers import worker_python

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 400
_LOOK_AGAIN_S = 0.005


def environment() -> dict[str, str]:
    """What a process needs that runs Spark on this machine."""
    known = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        "JAVA_HOME": java_home(),
        "PYSPARK_PYTHON": str(worker_python()),
        "PYSPARK_DRIVER_PYTHON": str(worker_python()),
        "PYTHONPATH": os.pathsep.join(part for part in (str(ROOT), known) if part),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class Life:
    """From the start of the process to its end, or to a kill of all that belongs to it."""

    def __init__(self, job: Job) -> None:
        self._folder = Path(job.folder)
        self.log = self._folder / "job.log"
        command = [sys.executable, "-m", "tests.crash.spark_job", job.to_json()]
        with self.log.open("ab") as log:
            # A session of its own: the JVM and the source's process are in it, and get the same signal at once.
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment(), stdout=log, stderr=log, start_new_session=True
            )

    def wait_until(self, what: str, is_so: Callable[[], bool]) -> None:
        """AssertionError when it takes too long, or the process ends before."""
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert self._process.poll() is None, f"it ended before {what}: {self.why()}"
            assert time.monotonic() < until_s, f"too long until {what}: {self.why()}"
            time.sleep(_LOOK_AGAIN_S)

    def kill(self) -> None:
        """kill -9, and wait until the process is gone. Its workers end when they find their JVM gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def end(self) -> int:
        """The exit code, when it comes to its end by itself."""
        return self._process.wait(PATIENCE_S)

    def why(self) -> str:
        failure = self._folder / "failure"
        told = failure.read_text() if failure.exists() else self.log.read_text(errors="replace")
        return told[-3000:]
