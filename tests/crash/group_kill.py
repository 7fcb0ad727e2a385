"""kill -9 during rebalances and commits: `python -m tests.crash.group_kill --kills 500`.

Members of three client libraries and raw ones keep groups of both protocols busy while the broker is killed and started
again on its directory. No member is restarted. Prints kills, rebalances, acked commits, each anomaly, and how long the
groups took to be Stable again.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.groups.offsets_topic import stored
from tests.conformance.raw import ConnectionEndedError, Wire
from tests.crash.broker_process import BrokerProcess
from tests.crash.group_ledger import KINDS, Anomaly, Ledger, Slot
from tests.crash.group_load import PARTITIONS, TOPIC, Busy, members
from tests.crash.plain_client import connect, create_topic

from lowwater.errors import ErrorCode
from lowwater.wire.messages.list_groups import ListGroupsRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

log = logging.getLogger(__name__)
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "150",
    "log.segment.bytes": str(1 << 20),
}
# What the killer waits for, so that its blow falls in the middle of it.
MOMENTS = {"joining": (1, 12), "syncing": (1, 12), "joins": (1, 20), "commits": (1, 150), "assignments": (1, 3)}
STABLE_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
LOOK_AGAIN_S = 0.05


@dataclass(slots=True)
class Report:
    kills: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    anomalies: list[Anomaly] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    stable_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        found = Counter(anomaly.kind for anomaly in self.anomalies)
        p50, p99 = (f"{_quantile(self.stable_s, q):.2f} s" for q in (0.5, 0.99))
        names = ("rebalances", "joins", "leaves", "commits", "fetches", "reminders")
        counted = [f"{name} {self.counts[name]}" for name in names]
        return "\n".join(
            [
                f"kills {self.kills}, {', '.join(counted)}, {self.seconds:.0f} s",
                ", ".join(f"{kind} {found[kind]}" for kind in KINDS),
                f"errors {len(self.errors)}; all groups Stable, all members at work again: p50 {p50}, p99 {p99}",
                *(f"{each.kind}: {each.detail}" for each in self.anomalies[:10]),
                *self.errors[:10],
            ]
        )


def run(kills: int, *, seed: int, data_dir: Path) -> Report:
    for library in ("kafka", "aiokafka"):
        logging.getLogger(library).setLevel(logging.CRITICAL)  # they complain of every kill
    began, draw, ledger, report = time.monotonic(), random.Random(seed), Ledger(), Report()
    broker = BrokerProcess(data_dir, SETTINGS)
    broker.start()
    try:
        with connect(broker.bootstrap) as wire:
            create_topic(wire, TOPIC, PARTITIONS)
        busy, groups = members(broker.bootstrap, ledger)
        watcher = Watcher(broker.bootstrap, ledger)
        for worker in (*busy, watcher):
            worker.start()
        _settle(broker, ledger, busy, groups)
        for _ in range(kills):
            _one_kill(broker, ledger, draw)
            report.kills += 1
            report.stable_s.append(_settle(broker, ledger, busy, groups))
            log.info("kill %d: at work again after %.2f s", report.kills, report.stable_s[-1])
        _stop([*busy, watcher])
        _final_checks(broker, ledger)
    finally:
        if broker.is_running():
            broker.kill()
    report.counts, report.anomalies, report.errors = ledger.counts, ledger.anomalies, ledger.errors
    report.seconds = time.monotonic() - began
    return report


def _one_kill(broker: BrokerProcess, ledger: Ledger, draw: random.Random) -> None:
    moment = draw.choice(list(MOMENTS))
    ledger.wait_for(moment, draw.randint(*MOMENTS[moment]), 1.0)
    broker.kill()
    broker.start()


def _settle(broker: BrokerProcess, ledger: Ledger, busy: list[Busy], groups: list[str]) -> float:
    """Wait until every group was seen Stable and every member got an answer; how long that took."""
    began = time.monotonic()
    working = threading.Thread(target=_wait_for_everyone, args=(ledger, busy), daemon=True)
    working.start()
    left = set(groups)
    pause = threading.Event()
    with connect(broker.bootstrap) as wire:
        while left and broker.is_running() and time.monotonic() - began < STABLE_TIMEOUT_S:
            listed = wire.ask(ListGroupsRequest()).groups
            left -= {each.group_id for each in listed if each.group_state == "Stable"}
            pause.wait(LOOK_AGAIN_S)
    working.join()
    if left:
        ledger.breach("not-stable-again", f"{sorted(left)} within {STABLE_TIMEOUT_S} s")
    return time.monotonic() - began


def _wait_for_everyone(ledger: Ledger, busy: list[Busy]) -> None:
    for name in ledger.wait_for_each([worker.name for worker in busy], STABLE_TIMEOUT_S):
        ledger.breach("waits-for-ever", f"{name} got nothing done for {STABLE_TIMEOUT_S} s")


class Watcher(Busy):
    """Fetches committed offsets all the time: none may be older than the last that was acked before it asked."""

    def __init__(self, bootstrap: str, ledger: Ledger) -> None:
        super().__init__("watcher", bootstrap, "", -1, ledger)

    def _run(self) -> None:
        while not self.stopping.is_set():
            with suppress(ConnectionEndedError, OSError), connect(self.bootstrap) as wire:
                while not self.stopping.wait(LOOK_AGAIN_S):
                    compare(wire, self.ledger)
            self.stopping.wait(LOOK_AGAIN_S)


def compare(wire: Wire, ledger: Ledger) -> None:
    floors = ledger.floors()
    found = committed(wire, floors)
    for slot, floor in floors.items():
        if slot in found:
            ledger.fetched(slot, found[slot], floor)


def committed(wire: Wire, slots: dict[Slot, int]) -> dict[Slot, int]:
    """Of all slots at once; groups whose coordinator is loading are left out."""
    everything = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(PARTITIONS)))
    groups = sorted({group for group, _ in slots})
    wishes = [OffsetFetchRequestGroup(group_id=group, topics=[everything]) for group in groups]
    answer = wire.ask(OffsetFetchRequest(groups=wishes), 9)
    return {
        (group.group_id, each.partition_index): each.committed_offset
        for group in answer.groups
        if group.error_code == ErrorCode.NONE
        for each in group.topics[0].partitions
    }


def _stop(busy: list[Busy]) -> None:
    for worker in busy:
        worker.stop()
    for worker in busy:
        worker.join(STOP_TIMEOUT_S)


def _final_checks(broker: BrokerProcess, ledger: Ledger) -> None:
    """Once more after a last kill; and what the internal topic itself tells of generations."""
    broker.kill()
    broker.start()
    with connect(broker.bootstrap) as wire:
        deadline = time.monotonic() + STABLE_TIMEOUT_S
        while committed(wire, ledger.floors()).keys() < ledger.floors().keys():
            assert time.monotonic() < deadline, "the coordinator did not finish loading"
        compare(wire, ledger)
    host, _, port = broker.bootstrap.rpartition(":")
    ledger.judge_log(list(stored((host, int(port)))))


def _quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.group_kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with tempfile.TemporaryDirectory(prefix="lowwater-group-kill-") as folder:
        report = run(arguments.kills, seed=arguments.seed, data_dir=Path(folder) / "data")
    print(report)
    return int(bool(report.anomalies or report.errors))


if __name__ == "__main__":
    sys.exit(main())
