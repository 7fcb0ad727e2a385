"""The exactly-once sink on real Spark: queries copy a topic, and their JVMs and workers are killed, each driver being a
process of its own; some have a second driver beside them; some of their tasks run twice. See spark_sink_kills.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.crash.spark_life import PATIENCE_S, ROOT, environment
from tests.crash.spark_sink_job import DRIVER, STOPPED, TWICE, WORKER, Copy, arm, stopped_at
from tests.crash.spark_sink_life import DONE, FAILED, TAKEN, Point
from tests.crash.spark_sink_report import PARTITIONS, Report, seen
from tests.fresh import fresh
from tests.spark.writing import Topics

log = logging.getLogger(__name__)

BATCHES = 2
"""So many are there for a driver that was not killed."""
STOPPED_AT = (Point.BEFORE_INTENT, Point.AFTER_INTENT, Point.BETWEEN_ENDS, Point.BEFORE_DONE)
SAME_CHECKPOINT, OWN_CHECKPOINTS = "same checkpoint", "own checkpoints"
TRIES = 6
SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}
HOSTS = ("127.0.0.1", "127.0.0.2")
"""Spark speculates on another host only."""
_LOOK_AGAIN_S = 0.02


class Driver:
    """One of real Spark, as a process."""

    def __init__(self, copy: Copy) -> None:
        command = [sys.executable, "-m", "tests.crash.spark_sink_job", copy.to_json()]
        self.log = Path(copy.folder) / f"{fresh('driver')}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=output, stderr=output)

    def end(self) -> int:
        return self._process.wait(PATIENCE_S)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def why(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def wait_until_stopped(folder: Path, point: Point, has_ended: Callable[[], bool]) -> int:
    """The process that the point has stopped."""
    until_s = time.monotonic() + PATIENCE_S
    while (pid := stopped_at(folder, point)) is None:
        assert not has_ended(), f"the query ended before {point}"
        assert time.monotonic() < until_s, f"it took too long until {point}"
        time.sleep(_LOOK_AGAIN_S)
    return pid


class Copies:
    """A topic that is copied over and over, and what is expected of its copy."""

    def __init__(self, bootstrap: str, folder: Path, report: Report) -> None:
        self._topics = Topics(bootstrap)
        self._folder = folder
        self._report = report
        names = self._topics.create(PARTITIONS), self._topics.create(PARTITIONS)
        self.copy = Copy(str(folder), bootstrap, *names, fresh("sink"))

    def kill(self, point: Point) -> None:
        """Of all that belongs to a driver; of the worker alone in an attempt of a task."""
        self.fill()
        is_worker = point is Point.TASK_ATTEMPT
        arm(self._folder, point, WORKER if is_worker else DRIVER)
        driver = Driver(self.copy)
        self._expect(f"killed {point}", driver, DONE if is_worker else FAILED)
        self._expect_hit(point)
        self._report.kills[point] += 1

    def two_at_once(self, point: Point) -> None:
        """One is stopped, another takes over and goes on to the end, then the first one goes on."""
        self.fill()
        arm(self._folder, point, STOPPED)
        older = Driver(self.copy)
        stopped = wait_until_stopped(self._folder, point, older.has_ended)
        self._expect(f"took over at {point}", Driver(self.copy), DONE)
        os.kill(stopped, signal.SIGCONT)
        self._expect(f"the older one stopped at {point}", older, TAKEN)
        self._expect_hit(point)
        self._report.zombies[point] += 1
        self._report.refused += 1

    def race(self, kind: str) -> None:
        """Two drivers from start to end, at once. With a checkpoint each nothing but the sink is between them."""
        self.fill(3 * BATCHES)
        other = self.copy
        if kind == OWN_CHECKPOINTS:
            other = replace(self.copy, checkpoint=fresh("checkpoint"))
            shutil.copytree(self._folder / self.copy.checkpoint, self._folder / other.checkpoint)
        unfinished = [self.copy, other]
        for _ in range(TRIES):
            drivers = {Driver(copy): copy for copy in unfinished}
            ends = {driver: driver.end() for driver in drivers}
            self._report.refused += sum(end == TAKEN for end in ends.values())
            unfinished = [drivers[driver] for driver, end in ends.items() if end != DONE]
            if not unfinished or (kind == SAME_CHECKPOINT and len(unfinished) == 1):
                break
        else:
            self._report.surprises.append(f"none of two drivers ends: {[driver.why() for driver in drivers]}")
        self._report.zombies[kind] += 1

    def fill(self, batches: int = BATCHES) -> None:
        """Each row is another."""
        for partition in range(PARTITIONS):
            values = [fresh("row").encode() for _ in range(batches * self.copy.limit // PARTITIONS)]
            self._topics.write(self.copy.source, values, partition)

    def finish(self) -> None:
        self._expect("the last one", Driver(self.copy), DONE)

    def judge(self) -> None:
        report, copy = self._report, self.copy
        rows = (row.value for row in self._topics.read(copy.source))
        expected = Counter(row.decode() for row in rows if row is not None)
        report.judge(expected, seen(copy.bootstrap, copy.target, "read_committed"))
        report.written = seen(copy.bootstrap, copy.target, "read_uncommitted").total()
        commits = self._folder / copy.checkpoint / "commits"
        report.batches = sum(file.name.isdigit() for file in commits.iterdir())
        self._topics.close()

    def _expect(self, what: str, driver: Driver, expected: int) -> None:
        if (found := driver.end()) != expected:
            self._report.surprises.append(f"{what}: it ended with {found} instead of {expected}: {driver.why()}")

    def _expect_hit(self, point: Point) -> None:
        hit = self._folder / f"{point}.hit"
        if not hit.exists():
            self._report.surprises.append(f"{point} was never reached")
        hit.unlink(missing_ok=True)


def run_on_spark(bootstrap: str, folder: Path, *, kills: int, drivers: int, seed: int) -> Report:
    """So many kills, and so many times two drivers at once; every point as often as the others."""
    report, began = Report(), time.monotonic()
    copies = Copies(bootstrap, folder, report)
    copies.fill()
    copies.finish()  # so that there is a checkpoint
    draw = random.Random(seed)
    points = [list(Point)[number % len(Point)] for number in range(kills)]
    draw.shuffle(points)
    for point in points:
        copies.kill(point)
        log.info("killed at %s: kill %d, %.0f s", point, report.kills.total(), time.monotonic() - began)
    kinds = (*STOPPED_AT, OWN_CHECKPOINTS, SAME_CHECKPOINT)
    for number in range(drivers):
        kind = kinds[number % len(kinds)]
        copies.two_at_once(kind) if isinstance(kind, Point) else copies.race(kind)
        log.info("two drivers: %s, %.0f s, refused %d", kind, time.monotonic() - began, report.refused)
    copies.finish()
    copies.judge()
    report.seconds = time.monotonic() - began
    return report


def run_speculating(bootstrap: str, folder: Path, master: str, batches: int) -> Report:
    """On a cluster of two hosts, where a task of each batch runs twice."""
    report, began = Report(), time.monotonic()
    copies = Copies(bootstrap, folder, report)
    copies.copy = replace(copies.copy, master=master, confs=SPECULATING)
    copies.fill(batches)
    (folder / TWICE).touch()
    copies.finish()
    copies.judge()
    report.speculated = written_twice(folder)
    report.seconds = time.monotonic() - began
    return report


def written_twice(folder: Path) -> Counter[str]:
    """Tasks whose first and second attempt have both written all of their rows, by how the first one went on."""
    second = folder.glob("wrote-*-*-1")
    return Counter(file.read_text() for file in second if file.with_name(f"{file.name[:-1]}0").exists())
