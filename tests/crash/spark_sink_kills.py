"""The exactly-once sink under kills: `python -m tests.crash.spark_sink_kills --kills N --seed S [--against kafka]`.

Drivers write batches to a topic and are killed at named points, their workers too; some are stopped and go on when
another driver has taken over; some have a call fail, and abort. In the end confluent-kafka, reading committed records,
must find every row of every batch once.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from tests.conformance.under_test import running
from tests.crash.spark_life import PATIENCE_S as SPARK_PATIENCE_S
from tests.crash.spark_life import environment
from tests.crash.spark_sink_job import DRIVER, WORKER, Copy, arm
from tests.crash.spark_sink_life import DONE, FAILED, TAKEN, Blow, Play, Point, lower_level
from tests.fresh import fresh
from tests.spark.writing import Topics

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 2
PATIENCE_S = 60
STOPPABLE = tuple(point for point in Point if point is not Point.TASK_ATTEMPT)
CHANCE_OF_A_ZOMBIE, CHANCE_OF_A_FAILURE = 0.15, 0.15


@dataclass(slots=True)
class Report:
    kills: Counter[str] = field(default_factory=Counter)
    zombies: Counter[str] = field(default_factory=Counter)
    """Where drivers were stopped that went on when another one had taken over."""
    refused: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    rows: int = 0
    lost: int = 0
    doubled: int = 0
    strange: int = 0
    written: int = 0
    """Rows in the log, those of aborted transactions too."""
    surprises: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.strange or self.surprises)

    def __str__(self) -> str:
        def counts(counter: Counter[str]) -> str:
            return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "none"

        return "\n".join(
            [
                f"kills {self.kills.total()} ({counts(self.kills)}), {self.seconds:.0f} s",
                f"two drivers at once {self.zombies.total()} (the older one stopped at: {counts(self.zombies)}), "
                f"the older one refused {self.refused}, "
                f"calls that failed {self.failures.total()} ({counts(self.failures)})",
                f"batches {self.batches}, rows {self.rows}, rows in the log {self.written}",
                f"rows lost {self.lost}, doubled {self.doubled}, strange {self.strange}",
                *self.surprises,
            ]
        )


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
    compare(report, play, seen(bootstrap, play.topic, "read_committed"))
    report.written = seen(bootstrap, play.topic, "read_uncommitted").total()
    report.seconds = time.monotonic() - began
    return report


def compare(report: Report, play: Play, found: Counter[str]) -> None:
    expected = {
        row for batch in range(play.finished) for task in range(play.tasks) for row in play.rows_of(batch, task)
    }
    report.rows = len(expected)
    report.lost = len(expected - found.keys())
    report.strange = len(found.keys() - expected)
    report.doubled = sum(count - 1 for count in found.values())


def seen(bootstrap: str, topic: str, isolation: str) -> Counter[str]:
    """Values that a client other than ours reads, and how often."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": fresh("oracle"), "enable.auto.commit": False, "log_level": 0,
        "isolation.level": isolation, "enable.partition.eof": True, "fetch.wait.max.ms": 10,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    rows: Counter[str] = Counter()
    at_end: set[int] = set()
    try:
        while len(at_end) < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the rows that are there come"
            error = message.error()
            if error is None:
                rows[message.value().decode()] += 1
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add(message.partition())
    finally:
        consumer.close()
    return rows


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


def run_on_spark(bootstrap: str, folder: Path, kills: int) -> Report:
    """A query copies a topic, and its JVM or one of its workers is killed; each driver is a process of its own."""
    report, began = Report(), time.monotonic()
    topics = Topics(bootstrap)
    copy = Copy(str(folder), bootstrap, topics.create(PARTITIONS), topics.create(PARTITIONS), fresh("sink"))
    points = [point for point in Point if point not in (Point.PLANNED, Point.AMONG_TASKS)]
    for number in range(kills):
        point = points[number % len(points)]
        topics.fill(copy.source, PARTITIONS, copy.limit)
        arm(folder, point, WORKER if point is Point.TASK_ATTEMPT else DRIVER)
        ended = _copy(copy)
        # A task whose worker died is run again by the same driver.
        if (ended == 0) != (point is Point.TASK_ATTEMPT) or not (folder / f"{point}.hit").exists():
            report.surprises.append(f"killed {point}: the driver ended with {ended}")
        (folder / f"{point}.hit").unlink(missing_ok=True)
        report.kills[point] += 1
    if ended := _copy(copy):
        report.surprises.append(f"the last driver ended with {ended}")
    expected = Counter(row.value.decode() for row in topics.read(copy.source) if row.value is not None)
    found = seen(bootstrap, copy.target, "read_committed")
    report.rows, report.lost = expected.total(), (expected - found).total()
    report.doubled = (found - expected).total()
    report.written = seen(bootstrap, copy.target, "read_uncommitted").total()
    report.seconds = time.monotonic() - began
    return report


def _copy(copy: Copy) -> int:
    """One driver's life; how it ended."""
    command = [sys.executable, "-m", "tests.crash.spark_sink_job", copy.to_json()]
    with (Path(copy.folder) / "log").open("ab") as log:
        return subprocess.run(
            command, cwd=ROOT, env=environment(), stdout=log, stderr=log, timeout=SPARK_PATIENCE_S, check=False
        ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.spark_sink_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--against", choices=("lowwater", "kafka"), default="lowwater")
    parser.add_argument("--level", type=int, choices=(1, 2), default=2, help="of transaction.version")
    parser.add_argument(
        "--on-spark", action="store_true", help="JVMs and workers of Spark are killed: half a minute each"
    )
    arguments = parser.parse_args()
    with running(arguments.against, apart=True) as broker, tempfile.TemporaryDirectory() as folder:
        if arguments.level == 1:
            lower_level(broker.bootstrap)
        if arguments.on_spark:
            report = run_on_spark(broker.bootstrap, Path(folder), arguments.kills)
        else:
            report = run(broker.bootstrap, Path(folder), drawn(arguments.kills, arguments.seed))
    print(report)
    return int(not report.is_clean)


if __name__ == "__main__":
    sys.exit(main())
