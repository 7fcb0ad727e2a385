"""Suite 9: `python -m tests.crash.spark_kills --kills N --seed S`.

A streaming query copies a topic into Parquet files by batch, and its driver is killed at named points, its workers and
executors while they read; partitions are added, rows age out between planning and reading. In the end confluent-kafka
says what should be there: every row once, but those that had aged out, and these stand in the ledger.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from tests.crash import spark_faults as points
from tests.crash.spark_job import Job
from tests.crash.spark_life import Life
from tests.fresh import fresh
from tests.spark.writing import Topics

from lowwater.spark import losses
from lowwater.spark.checkpoint import read_checkpoint
from lowwater.testing import Broker

log = logging.getLogger(__name__)

AT_COMMIT_LOG = "at-commit-log"
DRIVER = (
    points.AFTER_OFFSET_LOG,
    points.IN_TASKS,
    points.AFTER_SINK,
    AT_COMMIT_LOG,
    points.BEFORE_GROUP_COMMIT,
    points.BEFORE_OFFSET_LOG,
)
ALL = (*DRIVER, points.KILLS_WORKER, points.KILLS_EXECUTOR)
"""In a run every one of them comes as often as the others, in an order drawn by the seed."""
BURST = (20, 120)
PARTITIONS = 2
PARTITIONS_MAX = 6
LIMIT = 90
LAST_LIMIT = 1_000
CHANCE_OF_WAITING = 0.3
CHANCE_OF_A_PARTITION = 0.15
CHANCE_OF_AGEING = 0.3
"""Before a kill."""
LOCAL = "local[2,3]"
CLUSTER = "local-cluster[2,1,1024]"


@dataclass(slots=True)
class Report:
    kills: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    rows: int = 0
    batches: int = 0
    replays: Counter[str] = field(default_factory=Counter)
    aged_out: int = 0
    partitions_added: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    group_ahead: int = 0
    unexplained: int = 0
    """Offsets of the ledger that had not aged out, and such that had and are not in it."""
    seconds: float = 0.0

    def is_clean(self) -> bool:
        bad = (self.lost, self.duplicated, self.wrong, self.group_ahead, self.unexplained, self.replays["DIFFERENT"])
        return not any(bad)

    def __str__(self) -> str:
        return "\n".join(
            [
                f"kills {self.kills.total()} ({', '.join(f'{point} {count}' for point, count in self.kills.items())}), "
                f"drivers started {self.lives}, {self.seconds:.0f} s",
                f"rows {self.rows} in {self.batches} batches, partitions added {self.partitions_added}, "
                f"aged out between planning and reading {self.aged_out}",
                f"batches run again {self.replays.total()}, of those different {self.replays['DIFFERENT']}",
                f"rows lost {self.lost}, duplicated {self.duplicated}, wrong {self.wrong}; group ahead of the "
                f"checkpoint {self.group_ahead}; ledger wrong by {self.unexplained} offsets",
            ]
        )


Place = tuple[int, int]
"""A row: partition and offset."""


class World:
    """The topic, what was written to it, and the query's folder."""

    def __init__(self, bootstrap: str, folder: Path, draw: random.Random) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.group, self.ledger = fresh("killed"), fresh("ledger")
        self.topics = Topics(bootstrap)
        self.topic = self.topics.create(PARTITIONS)
        self.partitions = PARTITIONS
        self.written: dict[Place, bytes] = {}
        self.aged_out: set[Place] = set()
        self._draw = draw

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def job(self, *, master: str = LOCAL, is_last: bool = False) -> Job:
        options = {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(LIMIT if not is_last else LAST_LIMIT),
            "group": self.group,
            "failOnDataLoss": "false",
            "lossLedger": self.ledger,
        }
        return Job(str(self.folder), options, master, is_last)

    def write_some(self) -> None:
        for partition in range(self.partitions):
            values = [fresh("row").encode() for _ in range(self._draw.randint(*BURST))]
            offsets = self.topics.write(self.topic, values, partition)
            self.written |= {(partition, offset): value for offset, value in zip(offsets, values, strict=True)}

    def add_partition(self) -> None:
        self.partitions += 1
        self.topics.grow(self.topic, self.partitions)

    def planned(self) -> dict[int, tuple[int, int]]:
        """The ranges of the batch that was planned last and is not finished, unless it was written before."""
        number = read_checkpoint(str(self.checkpoint)).planned
        if number < 1 or (self.folder / "out" / f"{number}.parquet").exists():
            return {}
        start, end = (self._at(each) for each in (number - 1, number))
        return {one: (start[one], end[one]) for one in start if end[one] > start[one]}

    def _at(self, number: int) -> dict[int, int]:
        line = (self.checkpoint / "offsets" / str(number)).read_text().split("\n")[2]
        return {int(one): at for one, at in json.loads(line)["topics"][self.topic]["at"].items()}

    def age_out(self) -> None:
        """Half of what a batch is about to read in one partition is deleted."""
        for partition, (start, end) in self.planned().items():
            before = (start + end + 1) // 2
            self.topics.delete_before(self.topic, before, partition)
            self.aged_out |= {(partition, offset) for offset in range(start, before)}
            return

    def committed(self) -> dict[int, int]:
        return self.topics.committed(self.group, self.topic, self.partitions)

    def is_group_ahead(self) -> bool:
        committed = self.committed()  # first: the query may go on meanwhile
        at = {one.partition: offset for one, offset in read_checkpoint(str(self.checkpoint)).at.items()}
        return any(offset > at.get(partition, 0) for partition, offset in committed.items())


class Run:
    def __init__(self, world: World, draw: random.Random, report: Report) -> None:
        self._world = world
        self._draw = draw
        self._report = report
        self._life: Life | None = None
        self._master = LOCAL

    def kill(self, point: str) -> None:
        """One blow, in a life that runs already or in a new one."""
        self._world.write_some()
        self._need(CLUSTER if point == points.KILLS_EXECUTOR else LOCAL)
        if self._draw.random() < CHANCE_OF_WAITING:
            self._wait_for_a_batch()
        if self._draw.random() < CHANCE_OF_AGEING:
            self._age_out()
        if self._world.partitions < PARTITIONS_MAX and self._draw.random() < CHANCE_OF_A_PARTITION:
            self._world.add_partition()
            self._report.partitions_added += 1
        self._strike(point)
        self._report.kills[point] += 1
        self._report.group_ahead += self._world.is_group_ahead()

    def finish(self) -> None:
        """The last life reads the rest and ends."""
        self._end_life()
        self._report.lives += 1
        last = Life(self._world.job(is_last=True))
        assert last.end() == 0, last.why()

    def _need(self, master: str) -> Life:
        if self._life is not None and master != self._master:
            self._end_life()
        if self._life is None:
            self._life, self._master = Life(self._world.job(master=master)), master
            self._report.lives += 1
        return self._life

    def _end_life(self) -> None:
        if self._life is not None:
            self._life.kill()
        self._life = None

    def close(self) -> None:
        self._end_life()

    def _wait_for_a_batch(self) -> None:
        life, before = self._need(self._master), self._finished()
        life.wait_until("the next batch is finished", lambda: self._finished() > before)

    def _finished(self) -> int:
        return max((int(name) for name in self._commit_files() if name.isdigit()), default=-1)

    def _age_out(self) -> None:
        life, folder, point = self._need(self._master), self._world.folder, points.AFTER_OFFSET_LOG
        points.arm(folder, point)
        self._world.write_some()
        life.wait_until("a batch is planned", lambda: points.is_hit(folder, point))
        self._world.age_out()
        points.go_on(folder, point)
        self._wait_for_a_batch()
        points.disarm(folder, point)

    def _strike(self, point: str) -> None:
        life, folder = self._need(self._master), self._world.folder
        if point == AT_COMMIT_LOG:
            before = self._commit_files()
            self._world.write_some()
            life.wait_until("a batch is committed", lambda: self._commit_files() > before)
            self._end_life()
            return
        points.arm(folder, point)
        self._world.write_some()
        life.wait_until(f"{point} is reached", lambda: points.is_hit(folder, point))
        if point in (points.KILLS_WORKER, points.KILLS_EXECUTOR):
            self._wait_for_a_batch()
        else:
            self._end_life()
        points.disarm(folder, point)

    def _commit_files(self) -> set[str]:
        """Also one that is being written."""
        folder = self._world.checkpoint / "commits"
        return {file.name for file in folder.iterdir()} if folder.is_dir() else set()


def run(kills: list[str], *, seed: int, folder: Path) -> Report:
    """Those kills, in that order."""
    began_s, draw, report = time.monotonic(), random.Random(seed), Report()
    folder.mkdir(exist_ok=True)
    with Broker(subprocess=True) as broker:
        world = World(broker.bootstrap, folder, draw)
        blows = Run(world, draw, report)
        try:
            for point in kills:
                blows.kill(point)
                log.info("kill %d: %s, %d rows written", report.kills.total(), point, len(world.written))
            blows.finish()
        finally:
            blows.close()
        _judge(world, report)
        world.topics.close()
    report.seconds = time.monotonic() - began_s
    return report


def _judge(world: World, report: Report) -> None:
    """What was written is what confluent-kafka was told and what it reads now; what came out is in the files."""
    there = {(row.partition, row.offset): row.value for row in world.topics.read(world.topic)}
    assert there.items() <= world.written.items(), "the broker has what was written"
    wanted = {place: value for place, value in world.written.items() if place not in world.aged_out}
    found: Counter[Place] = Counter()
    for file in (world.folder / "out").glob("*.parquet"):
        for row in pq.read_table(file).to_pylist():
            place = row["partition"], row["offset"]
            found[place] += 1
            report.wrong += wanted.get(place) != row["value"]
        report.batches += 1
    report.rows, report.aged_out = found.total(), len(world.aged_out)
    report.lost = len(wanted.keys() - found.keys())
    report.duplicated = sum(count - 1 for count in found.values())
    report.unexplained = len(_told(world) ^ world.aged_out)
    replays = world.folder / "replays"
    report.replays.update(line.split()[1] for line in (replays.read_text().splitlines() if replays.exists() else ()))
    ends = {one: max(offset for partition, offset in world.written if partition == one) + 1 for one, _ in world.written}
    report.group_ahead += world.committed() != ends


def _told(world: World) -> set[Place]:
    found = losses(world.bootstrap, ledger=world.ledger)
    return {(loss.partition, offset) for loss in found for offset in range(loss.first, loss.behind or loss.first)}


def drawn(kills: int, seed: int) -> list[str]:
    """Every point as often as the others."""
    order = [ALL[number % len(ALL)] for number in range(kills)]
    random.Random(seed).shuffle(order)
    # A life on another master has to be started anew: those that need one come together.
    return sorted(order, key=points.KILLS_EXECUTOR.__eq__)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.spark_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # what was started is ended
    with tempfile.TemporaryDirectory(prefix="lowwater-spark-kills-") as folder:
        report = run(drawn(arguments.kills, arguments.seed), seed=arguments.seed, folder=Path(folder) / "query")
    print(report)
    return int(not report.is_clean())


if __name__ == "__main__":
    sys.exit(main())
