"""Fuzz a running broker while a good client uses it: `python -m tests.fuzz.broker --minutes 10`.

A failure names its seed and the attacks that showed it; `--seed S --only N` sends one of them alone.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.broker_process import BrokerProcess
from tests.fuzz.bystander import Bystander, MemoryWatch, Pinger, create_topics, memory_bytes
from tests.fuzz.plausible import FUZZED_TOPICS

ROOT = Path(__file__).resolve().parent.parent.parent
FRAME_LIMIT = 4 << 20
WIDTH = 8
GOOD_TOPIC = "bystander-keeps-this"
WARM_UP_ACKS = 100
MIB = 1 << 20
# Objects of one request and its answer, whose number is bounded whatever the frame limit is; one is served at a time.
DECODED_BYTES_MAX = 128 * MIB
SILENCE_S_MAX = 20.0
UNEXPECTED = ("Traceback", "Task exception", "never retrieved", "Exception in callback", "Fatal")


@dataclass(slots=True)
class Report:
    seed: int
    frame_limit: int
    damage: dict[str, Any] = field(default_factory=dict)
    acked: int = 0
    pings: int = 0
    longest_ping_s: float = 0.0
    longest_silence_s: float = 0.0
    grown: int = 0
    allowed: int = 0
    peak: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        damage = self.damage
        lines = [
            f"seed {self.seed}: {damage.get('attacks')} attacks, {damage.get('sent_bytes', 0) / MIB:.0f} MiB sent, "
            f"{damage.get('answered_bytes', 0) / MIB:.0f} MiB answered, {damage.get('left_parked')} left parked",
            ", ".join(f"{name} {count}" for name, count in sorted(damage.get("kinds", {}).items())),
            f"good client: {self.acked} acked, longest silence {self.longest_silence_s:.2f} s; "
            f"{self.pings} pings, longest {self.longest_ping_s:.2f} s",
            f"memory: grew by {self.grown / MIB:.0f} MiB, allowed {self.allowed / MIB:.0f}; peak {self.peak / MIB:.0f} "
            f"with mapped files; frame limit {self.frame_limit / MIB:.0f}",
            f"slowest: {damage.get('slowest')}",
            *(f"PROBLEM: {problem}" for problem in self.problems),
        ]
        return "\n".join(lines)


def memory_allowed(frame_limit: int, width: int) -> int:
    """Each connection may hold one frame, in a buffer that doubles as it fills, and the answer to it."""
    return width * 2 * frame_limit + DECODED_BYTES_MAX


def run(seconds: float, *, seed: int, data_dir: Path, frame_limit: int = FRAME_LIMIT, width: int = WIDTH) -> Report:
    """Attack for that long, then kill -9, start again, and see whether the good client's records are all there."""
    report = Report(seed, frame_limit, allowed=memory_allowed(frame_limit, width))
    broker = BrokerProcess(data_dir, {"socket.request.max.bytes": str(frame_limit)})
    broker.start()
    try:
        create_topics(broker.bootstrap, {GOOD_TOPIC: {}, **FUZZED_TOPICS})
        bystander = Bystander(broker.bootstrap, GOOD_TOPIC)
        bystander.start()
        if not bystander.wait_for_acks(WARM_UP_ACKS):
            report.problems.append("the good client was not served before the attack")
        _attack(broker, bystander, report, (seed, 0, 10**9, width, frame_limit, seconds))
        _judge(broker, bystander, report)
    finally:
        if broker.is_running():
            broker.kill()
    return report


def _attack(broker: BrokerProcess, bystander: Bystander, report: Report, plan: tuple[float, ...]) -> None:
    pinger, memory = Pinger(broker.port), MemoryWatch(broker.pid)
    watchers = (pinger, memory)
    for watcher in watchers:
        watcher.start()
    report.damage = _attackers(broker.port, plan)
    if not bystander.wait_for_acks(WARM_UP_ACKS):
        report.problems.append("the good client is not served any more")
    for watcher in watchers:
        watcher.stop()
    bystander.stop()
    report.pings, report.longest_ping_s = pinger.pings, pinger.longest_s
    report.grown, report.peak = memory.grown, memory_bytes(broker.pid)[1] if broker.is_running() else 0
    report.acked, report.longest_silence_s = bystander.acked, bystander.longest_silence_s()
    if pinger.error:
        report.problems.append(pinger.error)


def _attackers(port: int, plan: tuple[float, ...]) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.fuzz.attackers", str(port), *map(str, plan)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    damage: dict[str, Any] = json.loads(done.stdout)
    return damage


def _judge(broker: BrokerProcess, bystander: Bystander, report: Report) -> None:
    problems = report.problems
    problems += [f"attack {number} was left hanging" for number in report.damage["hung"]]
    problems += [f"attack {number} found no broker" for number in report.damage["refused"]]
    problems += bystander.errors
    if report.longest_silence_s > SILENCE_S_MAX:
        problems.append(f"the good client was not served for {report.longest_silence_s:.1f} s")
    if report.grown > report.allowed:
        problems.append(f"memory grew by {report.grown / MIB:.0f} MiB, {report.allowed / MIB:.0f} are allowed")
    if not broker.is_running():
        problems.append(f"the broker ended:\n{broker.log_tail()}")
        return
    _restart(broker, problems)
    problems += map(str, bystander.anomalies(broker.bootstrap))
    if code := broker.terminate():
        problems.append(f"the broker stopped with exit code {code}:\n{broker.log_tail()}")
    problems += _unexpected(broker.log)


def _restart(broker: BrokerProcess, problems: list[str]) -> None:
    """What hostile clients left behind must not stand in the way of a recovery."""
    broker.kill()
    try:
        broker.start()
    except (RuntimeError, TimeoutError) as error:
        problems.append(f"no start after the attack: {error}")
        raise


def _unexpected(log: Path) -> list[str]:
    """Failures that the broker did not foresee, each kind once; a hostile request is foreseen."""
    kinds: dict[str, list[str]] = {}
    for block in re.split(r"\n(?=\d{4}-\d\d-\d\d )", log.read_text(errors="replace")):
        if any(word in block for word in UNEXPECTED):
            places = re.findall(r'File ".*/lowwater/(.*)", line (\d+)', block)
            kinds.setdefault(str(places[-1:]), []).append(block)
    return [f"the broker logged {len(blocks)} times\n{blocks[0][-3000:]}" for blocks in kinds.values()]


def send_one(number: int, *, seed: int, data_dir: Path, frame_limit: int) -> str:
    """Attack a fresh broker with one attack of a seed; what the attacker saw and the broker logged."""
    broker = BrokerProcess(data_dir, {"socket.request.max.bytes": str(frame_limit)})
    broker.start()
    try:
        create_topics(broker.bootstrap, FUZZED_TOPICS)
        memory = MemoryWatch(broker.pid)
        memory.start()
        damage = _attackers(broker.port, (seed, number, 1, 1, frame_limit, 600.0))
        memory.stop()
        return f"{damage}\nmemory grew by {memory.grown / MIB:.0f} MiB\n{broker.log_tail()}"
    finally:
        broker.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.broker", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--frame-limit", type=int, default=FRAME_LIMIT, help="socket.request.max.bytes")
    parser.add_argument("--only", type=int, help="send this one attack of the seed to a fresh broker")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lowwater-fuzz-") as folder:
        data_dir = Path(folder) / "data"
        if arguments.only is not None:
            print(send_one(arguments.only, seed=arguments.seed, data_dir=data_dir, frame_limit=arguments.frame_limit))
            return 0
        report = run(arguments.minutes * 60, seed=arguments.seed, data_dir=data_dir, frame_limit=arguments.frame_limit)
    print(report)
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main())
