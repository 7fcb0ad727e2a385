"""The exactly-once sink under kills: `python -m tests.crash.spark_sink_kills --kills N --seed S [--against kafka]`.

Drivers write batches to a topic and are killed at named points, their workers too; some are stopped and go on when
another driver has taken over; some have a call fail, and abort. In the end confluent-kafka, reading committed records,
must find every row of every batch once.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.conformance.under_test import running
from tests.crash.spark_sink_life import DONE, FAILED, TAKEN, Blow, Play, Point, lower_level
from tests.crash.spark_sink_report import PARTITIONS, Report, seen
from tests.fresh import fresh
from tests.spark.writing import Topics

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60
STOPPABLE = tuple(point for point in Point if point is not Point.TASK_ATTEMPT)
CHANCE_OF_A_ZOMBIE, CHANCE_OF_A_FAILURE = 0.15, 0.15


class Drivers:
    """The process that starts them."""

    def __init__(self, play: Play) -> None:
        self._errors = Path(play.folder) / "errors"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.spark_sink_life", play.to_json()],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip

    def live(self, batches: int, point: Point | None = None, blow: Blow = Blow.KILL) -> dict[str, Any]:
        return self._order({"batches": batches, "point": point, "blow": blow})

    def resume(self, pid: int) -> dict[str, Any]:
        return self._order({"resume": pid})

    def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the drivers' process ended: {self.errors}"
        return dict(json.loads(answer))

    @property
    def errors(self) -> str:
        return self._errors.read_text(errors="replace")[-3000:]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)


class Run:
    def __init__(self, play: Play, drivers: Drivers, report: Report) -> None:
        self._play = play
        self._drivers = drivers
        self._report = report

    def kill(self, point: Point) -> None:
        ended = self._drivers.live(2, point)["end"]
        # A worker's death is no driver's.
        self._expect(f"killed {point}", ended, "killed" if point is not Point.TASK_ATTEMPT else DONE)
        self._report.kills[point] += 1

    def fail(self, point: Point) -> None:
        self._expect(f"failed {point}", self._drivers.live(2, point, Blow.RAISE)["end"], FAILED)
        self._report.failures[point] += 1

    def two_at_once(self, point: Point) -> None:
        """One is stopped, another goes on, then the first one as well."""
        older = self._drivers.live(2, point, Blow.STOP)
        self._expect(f"stopped {point}", older["end"], "stopped")
        self._expect(f"took over {point}", self._drivers.live(2)["end"], DONE)
        ended = self._drivers.resume(older["pid"])["end"]
        # It is refused as soon as it has something to commit: what it was in may have been done when it began.
        if ended != DONE:
            self._expect(f"zombie {point}", ended, TAKEN)
        self._report.zombies[point] += 1
        self._report.refused += ended == TAKEN

    def finish(self) -> None:
        self._expect("last", self._drivers.live(1)["end"], DONE)

    def _expect(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self._report.surprises.append(f"{what}: {found} instead of {expected}: {self._drivers.errors}")


def run(
    bootstrap: str, folder: Path, blows: Iterable[tuple[Blow, Point]], settings: dict[str, str] | None = None
) -> Report:
    report, began = Report(), time.monotonic()
    topics = Topics(bootstrap)
    play = Play(bootstrap, topics.create(PARTITIONS, "once"), fresh("sink"), str(folder), settings=settings)
    drivers = Drivers(play)
    try:
        going = Run(play, drivers, report)
        for blow, point in blows:
            {Blow.KILL: going.kill, Blow.STOP: going.two_at_once, Blow.RAISE: going.fail}[blow](point)
        going.finish()
    finally:
        drivers.close()
    report.batches = play.finished
    expected = (
        row for batch in range(play.finished) for task in range(play.tasks) for row in play.rows_of(batch, task)
    )
    report.judge(Counter(expected), seen(bootstrap, play.topic, "read_committed"))
    report.written = seen(bootstrap, play.topic, "read_uncommitted").total()
    report.seconds = time.monotonic() - began
    return report


def drawn(kills: int, seed: int) -> list[tuple[Blow, Point]]:
    """So many kills, every point as often as the others; some blows of the other kinds between them."""
    draw = random.Random(seed)
    points = list(Point) * (kills // len(Point) + 1)
    blows: list[tuple[Blow, Point]] = []
    for point in points[:kills]:
        blows.append((Blow.KILL, point))
        if draw.random() < CHANCE_OF_A_ZOMBIE:
            blows.append((Blow.STOP, draw.choice(STOPPABLE)))
        if draw.random() < CHANCE_OF_A_FAILURE:
            blows.append((Blow.RAISE, draw.choice(STOPPABLE)))
    draw.shuffle(blows)
    return blows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.spark_sink_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--against", choices=("lowwater", "kafka"), default="lowwater")
    parser.add_argument("--level", type=int, choices=(1, 2), default=2, help="of transaction.version")
    parser.add_argument(
        "--on-spark", action="store_true", help="JVMs and workers of Spark are killed: a quarter of a minute each"
    )
    parser.add_argument("--drivers", type=int, default=0, help="on Spark, so many times two drivers at once as well")
    parser.add_argument(
        "--speculated", type=int, default=0, help="on Spark, only so many batches with a task run twice"
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with running(arguments.against, apart=True) as broker, tempfile.TemporaryDirectory() as folder:
        if arguments.level == 1:
            lower_level(broker.bootstrap)
        report = _asked_for(arguments, broker.bootstrap, Path(folder))
    print(report)
    return int(not report.is_clean)


def _asked_for(arguments: argparse.Namespace, bootstrap: str, folder: Path) -> Report:
    if not arguments.on_spark:
        return run(bootstrap, folder, drawn(arguments.kills, arguments.seed))
    from tests.crash.spark_sink_copies import HOSTS, run_on_spark, run_speculating  # Java may not be there
    from tests.spark.clusters import standalone

    if arguments.speculated:
        with standalone(folder, HOSTS) as master:
            return run_speculating(bootstrap, folder, master, arguments.speculated)
    return run_on_spark(bootstrap, folder, kills=arguments.kills, drivers=arguments.drivers, seed=arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
