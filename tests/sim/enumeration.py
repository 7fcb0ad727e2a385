"""Crash enumeration: `python -m tests.sim.enumeration [--subsets N] [--extra N] [SCRIPT …]`.

Runs each script once, then crashes it after every operation in every way the simulated disk knows, and judges what
the next start makes of it. Recovery is itself crashed again. Prints how many states were tried and how many were lost.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.sim.judge import judge, recover
from tests.sim.ledger import PartitionLedger
from tests.sim.scripts import SCRIPTS
from tests.sim.world import World, low_ceilings

from lowwater.testing.simdisk import SUBSETS, CrashState, SimDisk


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of the whole to try: every state, or at each point the telling ones and `extra` others."""

    subsets: int = SUBSETS
    extra: int | None = None
    again: float = 0.05
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    script: str
    operations: int = 0
    states: int = 0
    distinct: int = 0
    recrashed: int = 0
    violations: list[str] = field(default_factory=list)


def enumerate_script(name: str, effort: Effort, *, stop_at: int = 10) -> Outcome:
    """Every crash of that script within the effort; at most `stop_at` violations are collected."""
    with low_ceilings():
        return _enumerate(name, effort, stop_at)


def _enumerate(name: str, effort: Effort, stop_at: int) -> Outcome:
    world = World()
    world.start()
    SCRIPTS[name](world)
    ledgers, disk = list(world.partitions.values()), world.disk
    outcome = Outcome(name, disk.operations)
    draw, tried = random.Random(f"{name} {effort.seed}"), set()
    for state in _states(disk, effort, draw):
        outcome.states += 1
        after = disk.after(state)
        key = (_fingerprint(after), _promises(ledgers, state), state.power_cut)
        if key in tried:
            continue
        tried.add(key)
        outcome.distinct += 1
        _try(outcome, ledgers, state, after)
        if draw.random() < effort.again:
            _crash_recovery(outcome, ledgers, state, disk.after(state), draw)
        if len(outcome.violations) >= stop_at:
            break
    return outcome


def _states(disk: SimDisk, effort: Effort, draw: random.Random) -> Iterator[CrashState]:
    for at in range(disk.operations + 1):
        yield from disk.kill_states(at)
        if effort.extra is None:
            yield from disk.crash_states(at, subsets=effort.subsets)
            continue
        yield from disk.telling_states(at)
        others = list(disk.crash_states(at, subsets=effort.subsets))
        yield from draw.sample(others, min(effort.extra, len(others)))


def _try(outcome: Outcome, ledgers: list[PartitionLedger], state: CrashState, disk: SimDisk, note: str = "") -> None:
    try:
        judge(disk, ledgers, _as_promised(state))
    except Exception as error:
        outcome.violations.append(f"{outcome.script}: {state}{note}: {type(error).__name__}: {error}")


def _crash_recovery(
    outcome: Outcome, ledgers: list[PartitionLedger], state: CrashState, disk: SimDisk, draw: random.Random
) -> None:
    """The start after the crash is crashed as well, by power or by a kill, anywhere from its begin to after its end."""
    recover(disk, ledgers, _as_promised(state).at)
    for at in draw.sample(range(disk.operations + 1), min(3, disk.operations + 1)):
        again = [*draw.sample(states := list(disk.crash_states(at, subsets=4)), min(2, len(states)))]
        again.append(CrashState(at, power_cut=False))
        for second in again:
            outcome.recrashed += 1
            _try(outcome, ledgers, state, disk.after(second), f", then in recovery {second}")


def _as_promised(state: CrashState) -> CrashState:
    """A write that was cut off by a kill had not returned, so nothing had been promised about it."""
    return replace(state, at=state.at - 1) if state.torn and not state.power_cut else state


def _fingerprint(disk: SimDisk) -> int:
    return hash(tuple(disk.image.walk()))


def _promises(ledgers: list[PartitionLedger], state: CrashState) -> int:
    """Changes whenever a promise is made, so that equal disks with equal promises are judged once."""
    at = _as_promised(state).at
    made = tuple(
        (
            sum(promise.at <= at for promise in ledger.promised),
            sum(promise.durable_at <= at for promise in ledger.promised),
            ledger.start_promised(at),
            ledger.start_allowed(at),
            ledger.created_at <= at < ledger.deleted_at,
            ledger.compacted_at < at,
            ledger.tombstones_expire_at < at,
        )
        for ledger in ledgers
    )
    return hash(made)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.enumeration", description=__doc__)
    parser.add_argument("scripts", nargs="*", default=list(SCRIPTS))
    parser.add_argument("--subsets", type=int, default=SUBSETS, help="seeded subsets of what may be lost")
    parser.add_argument("--extra", type=int, help="a sample: the telling states and so many others at each point")
    parser.add_argument("--again", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    effort = Effort(arguments.subsets, arguments.extra, arguments.again, arguments.seed)
    began, outcomes = time.monotonic(), []
    for name in arguments.scripts:
        outcomes.append(outcome := enumerate_script(name, effort))
        print(
            f"{name:20} operations {outcome.operations:4}, states {outcome.states:7}, distinct {outcome.distinct:6}, "
            f"recoveries crashed {outcome.recrashed:6}, violations {len(outcome.violations)}",
            flush=True,
        )
        for violation in outcome.violations:
            print(f"  {violation}")
    violations = sum(len(outcome.violations) for outcome in outcomes)
    states = sum(outcome.states + outcome.recrashed for outcome in outcomes)
    print(f"states {states}, violations {violations}, {time.monotonic() - began:.0f} s")
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
