"""kill -9 during consume, transform, produce: `python -m tests.crash.txn_kill --kills 500`.

Workers of three client libraries (one of them as members of groups of both protocols) turn input to output in
transactions, offsets included, while the broker and they themselves are killed, and while frozen ones go on as zombies.
Prints kills, transactions, each anomaly: every input must be in the output exactly once, every transaction whole or not
at all, and the committed offsets must agree with the output.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.raw import Wire
from tests.conformance.transactions.confluent import ConfluentTransactor
from tests.crash.broker_process import BrokerProcess
from tests.crash.kill import read_all
from tests.crash.plain_client import connect, create_topic
from tests.crash.txn_crew import Crew, Feed, Ledger, Tail
from tests.crash.txn_worker import INPUT, INPUT_PARTITIONS, LIBRARIES, OUTPUT_PARTITIONS, SEPARATOR, output_of

from lowwater.errors import ErrorCode
from lowwater.testing.checker import Anomaly, FinalRead, check, tally
from lowwater.types import TopicPartition
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

log = logging.getLogger(__name__)
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "150",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.segment.bytes": str(1 << 20),
}
BLOWS = ("broker", "broker", "broker", "broker", "worker", "worker", "worker", "freeze")
TRANSACTIONS_BETWEEN_BLOWS = (1, 25)
BLOW_AT_THE_LATEST_S = 1.5
# Else the next blow comes while some are still busy with the last one.
CHANCE_TO_RECOVER = 0.7
STALL_TIMEOUT_S = 90
LOOK_AGAIN_S = 0.05
KINDS = ("input-lost", "input-doubled", "offsets-disagree", "library-stalled")


@dataclass(slots=True)
class Report:
    kills: int = 0
    zombies: int = 0
    inputs: int = 0
    acked: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    anomalies: list[Anomaly] = field(default_factory=list)
    breaches: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    recovery_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def is_clean(self) -> bool:
        return not (self.anomalies or self.breaches or self.errors)

    def __str__(self) -> str:
        names = ("transactions", "aborts", "restarts", "hangs")
        kinds = Counter(kind for kind, _ in self.breaches)
        slowest = max(self.recovery_s, default=0.0)
        return "\n".join(
            [
                f"kills {self.kills}, zombies {self.zombies}, inputs {self.inputs}, acked {self.acked}, "
                + ", ".join(f"{name} {self.counts[name]}" for name in names)
                + f", {self.seconds:.0f} s",
                ", ".join(f"{library} {count}" for library, count in self.done.items()),
                ", ".join(f"{kind} {count}" for kind, count in tally(self.anomalies).items()),
                ", ".join(f"{kind} {kinds[kind]}" for kind in KINDS),
                f"errors {len(self.errors)}; the broker was back after at most {slowest:.2f} s",
                *(f"ended {count}: {reason}" for reason, count in self.reasons.most_common(8)),
                *map(str, self.anomalies[:10]),
                *(f"{kind}: {detail}" for kind, detail in self.breaches[:10]),
                *self.errors[:10],
            ]
        )


def run(kills: int, *, seed: int, data_dir: Path) -> Report:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    began, report, ledger = time.monotonic(), Report(), Ledger()
    broker = BrokerProcess(data_dir, SETTINGS)
    broker.start()
    crew, feed, tail = Crew(broker.bootstrap, ledger), Feed(broker.bootstrap, ledger), Tail(broker.bootstrap, ledger)
    try:
        with connect(broker.bootstrap) as wire:
            create_topic(wire, INPUT, INPUT_PARTITIONS)
            for library in LIBRARIES:
                create_topic(wire, output_of(library), OUTPUT_PARTITIONS)
        for each in (feed, tail, crew):
            each.start()
        _look_for_stalls(ledger, report)
        _strike(kills, broker, crew, ledger, random.Random(seed), report)
        crew.kill_all()
        _judge_offsets(broker, crew, report)
        crew = _drain(broker, feed, ledger, report)
        crew.kill_all()
        tail.stop()
        _judge_offsets(broker, crew, report)
        _judge_everything(broker, ledger, report)
    finally:
        crew.kill_all()
        if broker.is_running():
            broker.kill()
    report.counts, report.done, report.reasons, report.errors = (
        ledger.counts,
        ledger.done,
        ledger.reasons,
        ledger.errors,
    )
    report.inputs, report.seconds = feed.sent, time.monotonic() - began
    return report


def _strike(kills: int, broker: BrokerProcess, crew: Crew, ledger: Ledger, draw: random.Random, report: Report) -> None:
    while report.kills < kills:
        ledger.wait_for("transactions", draw.randint(*TRANSACTIONS_BETWEEN_BLOWS), BLOW_AT_THE_LATEST_S)
        blow, victim = draw.choice(BLOWS), draw.randrange(1000)
        if blow == "freeze":
            crew.freeze_one(victim)
            report.zombies += 1
            continue
        report.kills += 1
        if blow == "worker":
            crew.kill_one(victim)
        else:
            broker.kill()
            report.recovery_s.append(broker.start())
        log.info("kill %d: %s, %s", report.kills, blow, dict(ledger.done))
        if draw.random() < CHANCE_TO_RECOVER:
            _look_for_stalls(ledger, report)


def _look_for_stalls(ledger: Ledger, report: Report) -> None:
    """All libraries must get something done again."""
    for library in ledger.wait_for_each(STALL_TIMEOUT_S):
        report.breaches.append(("library-stalled", f"{library} committed nothing for {STALL_TIMEOUT_S} s"))


def _drain(broker: BrokerProcess, feed: Feed, ledger: Ledger, report: Report) -> Crew:
    """No more input; a fresh crew works off the rest."""
    feed.stop()
    crew = Crew(broker.bootstrap, ledger)
    crew.start()
    deadline = time.monotonic() + STALL_TIMEOUT_S
    ends = {place.partition: read.log_end for place, read in _read(broker, _inputs()).items()}
    with connect(broker.bootstrap) as wire:
        left = set(LIBRARIES)
        while left and time.monotonic() < deadline:
            left = {library for library in left if committed(wire, library) != ends}
            ledger.wait_for("transactions", 1, LOOK_AGAIN_S)
    report.breaches += [("library-stalled", f"{library} did not work off its input") for library in left]
    return crew


def committed(wire: Wire, library: str) -> dict[int, int] | None:
    """The group's offsets by partition of the input; None while a transaction that may change them is open."""
    topic = OffsetFetchRequestTopics(name=INPUT, partition_indexes=list(range(INPUT_PARTITIONS)))
    wish = OffsetFetchRequestGroup(group_id=f"group-{library}", topics=[topic])
    [group] = wire.ask(OffsetFetchRequest(groups=[wish], require_stable=True), 9).groups
    if group.error_code != ErrorCode.NONE or any(each.error_code for each in group.topics[0].partitions):
        return None
    return {each.partition_index: max(each.committed_offset, 0) for each in group.topics[0].partitions}


def _judge_offsets(broker: BrokerProcess, crew: Crew, report: Report) -> None:
    """With nobody at work: what the output has of each input partition is what lies before the committed offset."""
    with ThreadPoolExecutor() as pool:  # It aborts what the killed ones had open.
        list(pool.map(lambda worker: ConfluentTransactor(broker.bootstrap, worker.name).init(), crew.workers))
    inputs = _read(broker, _inputs())
    with connect(broker.bootstrap) as wire:
        for library in LIBRARIES:
            offsets = _decided(wire, library)
            outputs = {name for read in _read(broker, _outputs(library)).values() for name in _origins(read)}
            for (_, index), everything in inputs.items():
                before = {name for offset, name in everything.records if offset < offsets[index]}
                behind = {name for offset, name in everything.records if offset >= offsets[index]}
                missing, early = sorted(before - outputs), sorted(behind & outputs)
                if missing or early:
                    where = f"{library} [{index}] at {offsets[index]}"
                    report.breaches.append(("offsets-disagree", f"{where}: {missing[:5]} missing, {early[:5]} early"))


def _decided(wire: Wire, library: str) -> dict[int, int]:
    deadline = time.monotonic() + STALL_TIMEOUT_S
    while (offsets := committed(wire, library)) is None:
        assert time.monotonic() < deadline, f"the offsets of {library} stay undecided"
    return offsets


def _read(broker: BrokerProcess, places: list[TopicPartition]) -> dict[TopicPartition, FinalRead]:
    """All that is committed there; a consumer each, at once: they mostly wait."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(places, pool.map(lambda place: read_all(broker.bootstrap, place), places), strict=True))


def _inputs() -> list[TopicPartition]:
    return [TopicPartition(INPUT, index) for index in range(INPUT_PARTITIONS)]


def _outputs(library: str) -> list[TopicPartition]:
    return [TopicPartition(output_of(library), index) for index in range(OUTPUT_PARTITIONS)]


def _origins(read: FinalRead) -> list[bytes]:
    """The inputs that the records were made of."""
    return [name.partition(SEPARATOR)[0] for _, name in read.records]


def _judge_everything(broker: BrokerProcess, ledger: Ledger, report: Report) -> None:
    final = _read(broker, [place for library in LIBRARIES for place in _outputs(library)])
    history = ledger.history(final)
    report.acked, report.anomalies = history.acked(), check(history)
    inputs = [name for read in _read(broker, _inputs()).values() for _, name in read.records]
    made: defaultdict[str, Counter[bytes]] = defaultdict(Counter)
    for place, read in final.items():
        made[place.topic].update(_origins(read))
    for library in LIBRARIES:
        counts = made[output_of(library)]
        report.breaches += [("input-lost", f"{library}: {name!r}") for name in inputs if not counts[name]]
        report.breaches += [("input-doubled", f"{library}: {name!r}") for name, count in counts.items() if count > 1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.txn_kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with tempfile.TemporaryDirectory(prefix="lowwater-txn-kill-") as folder:
        report = run(arguments.kills, seed=arguments.seed, data_dir=Path(folder) / "data")
    print(report)
    return int(not report.is_clean())


if __name__ == "__main__":
    sys.exit(main())
