"""Suite 9: `python -m tests.crash.spark_kills --kills N --seed S [--in-time]`.

A streaming query copies a topic into Parquet files by batch, and its driver is killed at named points, its workers and
executors while they read; partitions are added, rows age out between planning and reading. In the end confluent-kafka
says what should be there: every row once, but those that had aged out, and these stand in the ledger. With `--in-time`
batches end at cuts and their rows come in the order of their timestamps; both is looked at. Rows are out of order then,
half of them in transactions, whose ends have the broker's time; there are moments with more rows than a batch may have,
and rows of 2099.
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
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer
from tests.crash import spark_faults as points
from tests.crash.spark_job import Job
from tests.crash.spark_life import Life
from tests.fresh import fresh
from tests.spark.writing import Topics

from lowwater.spark import losses
from lowwater.spark.checkpoint import read_checkpoint
from lowwater.spark.offsets import Offset, Plan
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
START_MS = 1_700_000_000_000
BURST_MS = 30 * 60_000
OUT_OF_ORDER_MS = 20_000
FAR_MS = 4_070_908_800_000  # 2099
HOT = 2 * LIMIT
HOT_EVERY = 4
"""So many bursts have one moment with so many rows, and one row of the far future."""
MAX_OUT_OF_ORDER_MS = 60_000
SLICES = 5
IN_TIME = {
    "cut": "10m",
    "idleTimeout": "300ms",
    "order": "timestamp",
    "maxOutOfOrder": f"{MAX_OUT_OF_ORDER_MS}ms",
    "minPartitions": str(SLICES),
    "kafka.isolation.level": "read_committed",
}
KEEPS_OFFSETS = {"spark.sql.streaming.minBatchesToRetain": "100000"}
"""What a batch was planned to be is looked at in the end."""
PATIENCE_S = 60
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
    out_of_order: int = 0
    ahead: int = 0
    """Rows stamped at or behind the cut of their batch, but for those of 2099."""
    sliced: int = 0
    """Batches of four slices of time at least."""
    split: int = 0
    """Batches that end within a moment."""
    far: int = 0
    """Rows of 2099."""
    seconds: float = 0.0

    def is_clean(self) -> bool:
        rows = (self.lost, self.duplicated, self.wrong, self.out_of_order, self.ahead, self.replays["DIFFERENT"])
        return not any((*rows, self.group_ahead, self.unexplained))

    def __str__(self) -> str:
        return "\n".join(
            [
                f"kills {self.kills.total()} ({', '.join(f'{point} {count}' for point, count in self.kills.items())}), "
                f"drivers started {self.lives}, {self.seconds:.0f} s",
                f"rows {self.rows} in {self.batches} batches, partitions added {self.partitions_added}, "
                f"aged out between planning and reading {self.aged_out}",
                f"batches run again {self.replays.total()}, of those different {self.replays['DIFFERENT']}",
                f"rows lost {self.lost}, duplicated {self.duplicated}, wrong {self.wrong}; group ahead of the "
                f"checkpoint {self.group_ahead}; ledger wrong by {self.unexplained} offsets; rows out of order "
                f"{self.out_of_order}, ahead of their cut {self.ahead}",
                f"batches of at least four slices {self.sliced}, that end within a moment {self.split}; rows of 2099 "
                f"{self.far}",
            ]
        )


Place = tuple[int, int]
"""A row: partition and offset."""


class World:
    """The topic, what was written to it, and the query's folder."""

    def __init__(self, bootstrap: str, folder: Path, draw: random.Random, *, in_time: bool) -> None:
        self.bootstrap = bootstrap
        self.in_time = in_time
        self.folder = folder
        self.group, self.ledger = fresh("killed"), fresh("ledger")
        self.topics = Topics(bootstrap)
        self.topic = self.topics.create(PARTITIONS)
        self.partitions = PARTITIONS
        self.written: dict[Place, bytes] = {}
        self.aged_out: set[Place] = set()
        self._draw = draw
        self._now_ms = START_MS
        self._bursts = 0

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
            **(IN_TIME if self.in_time else {}),
        }
        return Job(str(self.folder), options, master, is_last, KEEPS_OFFSETS)

    def write_some(self) -> None:
        burst = {partition: self._times(self._draw.randint(*BURST)) for partition in range(self.partitions)}
        if self.in_time:
            self._add_what_is_hard(burst)
            self._write_transaction({one: times[: len(times) // 2] for one, times in burst.items()})
            burst = {one: times[len(times) // 2 :] for one, times in burst.items()}
        for partition, times in burst.items():
            values = _values(times)
            offsets = self.topics.write(self.topic, values, partition, times_ms=times)
            self.written |= {(partition, offset): value for offset, value in zip(offsets, values, strict=True)}
        self._now_ms += BURST_MS
        self._bursts += 1

    def _times(self, rows: int) -> list[int]:
        """Half an hour, a little out of order."""
        steps = (BURST_MS * row // rows for row in range(rows))
        return [self._now_ms + step - self._draw.choice((0, 0, 0, OUT_OF_ORDER_MS)) for step in steps]

    def _add_what_is_hard(self, burst: dict[int, list[int]]) -> None:
        """To one partition rows of the same moment, to another one of the far future, with others before and behind."""
        if self._bursts % HOT_EVERY:
            return
        hot, far = (burst[(self._bursts // HOT_EVERY + number) % self.partitions] for number in (0, 1))
        middle = len(hot) // 2
        hot[middle:middle] = [hot[middle]] * HOT
        far.insert(len(far) // 3, FAR_MS)

    def _write_transaction(self, burst: dict[int, list[int]]) -> None:
        """By a producer of its own: one that is kept does not know of new partitions for minutes."""
        settings = {"bootstrap.servers": self.bootstrap, "transactional.id": fresh("burst"), "log_level": 0}
        producer = Producer(settings)
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for partition, times in burst.items():
            for value, time_ms in zip(_values(times), times, strict=True):
                producer.produce(
                    self.topic, value, partition=partition, timestamp=time_ms, on_delivery=self._note_written
                )
        producer.commit_transaction(PATIENCE_S)

    def _note_written(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.written[message.partition(), message.offset()] = message.value()

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
        return {one.partition: at for one, at in self.end_of(number).at.items()}

    def end_of(self, number: int) -> Offset:
        return Offset.parse(json.loads((self.checkpoint / "offsets" / str(number)).read_text().split("\n")[2]))

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


def _values(rows: list[int]) -> list[bytes]:
    return [fresh("row").encode() for _ in rows]


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


def run(kills: list[str], *, seed: int, folder: Path, in_time: bool = False) -> Report:
    """Those kills, in that order."""
    began_s, draw, report = time.monotonic(), random.Random(seed), Report()
    folder.mkdir(exist_ok=True)
    with Broker(subprocess=True) as broker:
        world = World(broker.bootstrap, folder, draw, in_time=in_time)
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
        rows = pq.read_table(file).to_pylist()
        if world.in_time:
            _judge_times(rows, world.end_of(int(file.stem)), report)
        for row in rows:
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


def _judge_times(rows: list[dict[str, Any]], end: Offset, report: Report) -> None:
    """Their order is that of their keys, by the definition in the docs; only those of 2099 are ahead of their cut."""
    plan = end.plan
    assert plan is not None, "a batch with a cut has it in its offset"
    assert plan.cut_ms is not None
    times = {(row["partition"], row["offset"]): round(row["timestamp"].timestamp() * 1000) for row in rows}
    keys = _keys(times, plan)
    report.out_of_order += sum(keys[one] > keys[other] for one, other in pairwise(times))
    report.ahead += sum(plan.cut_ms <= each != FAR_MS for each in times.values())
    report.far += sum(each == FAR_MS for each in times.values())
    report.sliced += len(plan.slices) >= SLICES - 2
    report.split += plan.rest is not None


def _keys(times: dict[Place, int], plan: Plan) -> dict[Place, tuple[int, Place]]:
    assert plan.cut_ms is not None
    newest: dict[int, int] = {}
    found = {}
    for place in sorted(times):
        counted_ms = min(times[place], plan.cut_ms)
        newest[place[0]] = max(newest.get(place[0], counted_ms), counted_ms)
        found[place] = (max(counted_ms, newest[place[0]] - MAX_OUT_OF_ORDER_MS, plan.after_ms or 0), place)
    return found


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
    parser.add_argument("--in-time", action="store_true", help="with cut and order=timestamp")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # what was started is ended
    with tempfile.TemporaryDirectory(prefix="lowwater-spark-kills-") as folder:
        kills, query = drawn(arguments.kills, arguments.seed), Path(folder) / "query"
        report = run(kills, seed=arguments.seed, folder=query, in_time=arguments.in_time)
    print(report)
    return int(not report.is_clean())


if __name__ == "__main__":
    sys.exit(main())
