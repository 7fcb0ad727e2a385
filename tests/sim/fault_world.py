"""A world whose disk fails once, or from some point on until it is healed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from tests.sim.batches import encode
from tests.sim.judge import judge
from tests.sim.scripts import SCRIPTS
from tests.sim.world import World, low_ceilings

from lowwater.errors import StorageError
from lowwater.log.partition_log import PartitionLog
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState

T = TypeVar("T")
PASSING = frozenset({FaultKind.ENOSPC, FaultKind.SHORT_WRITE, FaultKind.READ})
SEGMENT = re.compile(r"/\d{20}\.log$")
FINAL_STATES = 12


class FailStopError(Exception):
    """Something met an error that is final; the script ends here."""


class FaultWorld(World):
    """After a passing fault (disk full) the failed step is tried again and must succeed; any other ends the script.

    An unreadable sector that can be read later counts as passing too, but the broker may have to start again.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.faulty = FaultyDisk(self.disk, fault)
        self.face = self.faulty
        self.resumed = 0
        self.has_started = False

    def _start(self) -> None:
        super()._start()
        self.has_started = True

    def attempt(self, step: Callable[[], T]) -> T:
        try:
            return step()
        except (StorageError, OSError) as error:
            self._expect(error)
        self.faulty.heal()
        self.resumed += 1
        if self.faulty.fault.kind is FaultKind.READ and any(log.offline for log in self.logs()):
            self._start()  # a log that could not be read at the start is down until the next
        return step()

    def _expect(self, error: StorageError | OSError) -> None:
        """Only a fault gives an error, and a passing one is said to be retriable."""
        if not self.faulty.struck:
            raise AssertionError(f"an error without a fault: {error!r}") from error
        if self.faulty.fault.kind not in PASSING:
            raise FailStopError(f"{self.faulty.struck[-1]}: {error}") from error
        if self.faulty.fault.kind is not FaultKind.READ and isinstance(error, StorageError) and not error.retriable:
            raise AssertionError(f"a passing fault is called final: {error}") from error

    def stop(self) -> None:
        """A clean stop that fails is no worse than a kill."""
        try:
            super().stop()
        except (StorageError, OSError):
            self.faulty.heal()

    def struck_logs(self) -> list[PartitionLog]:
        """Logs one of whose segments was hit; one that could not be removed does no harm."""
        struck = [each.partition(" ") for each in self.faulty.struck]
        hit = {
            path.rpartition("/")[0] for operation, _, path in struck if SEGMENT.search(path) and operation != "unlink"
        }
        return [log for log in self.logs() if log.directory in hit]

    def logs(self) -> list[PartitionLog]:
        """None while no start has succeeded."""
        return list(self.store.logs()) if self.has_started else []


@dataclass(slots=True)
class FaultReport:
    struck: int = 0
    stopped: int = 0
    resumed: int = 0
    tolerated: int = 0
    violations: list[str] = field(default_factory=list)


def run_faults(script: str, kind: FaultKind, *, lasting: bool = False, every: int = 1) -> FaultReport:
    """Let operation 1, 2, … of the script fail, until a run meets no fault; judge the disk after each."""
    report = FaultReport()
    nth = 1
    with low_ceilings():
        while _run_one(script, Fault(kind, nth, lasting), report):
            nth += every
    return report


def _run_one(script: str, fault: Fault, report: FaultReport) -> bool:
    world = FaultWorld(fault)
    stopped = False
    try:
        world.start()
        SCRIPTS[script](world)
    except FailStopError:
        stopped = True
    except Exception as error:
        report.violations.append(f"{script}: {fault} {world.faulty.struck}: {type(error).__name__}: {error}")
    if not world.faulty.struck:
        return False
    report.struck += 1
    report.stopped += stopped
    report.resumed += world.resumed
    report.tolerated += not stopped and not world.resumed
    try:
        if fault.kind not in PASSING and stopped:
            _refuses_everything(world)
        _judge_end(world)
        if stopped:
            _goes_on_after_a_restart(world)
    except Exception as error:
        report.violations.append(f"{script}: {fault} {world.faulty.struck[:2]}: {type(error).__name__}: {error}")
    return True


def _refuses_everything(world: FaultWorld) -> None:
    """A log that failed stays down until a restart, also when its disk is well again."""
    world.faulty.heal()
    for log in world.struck_logs():
        assert log.offline is not None, f"{log.topic_partition} is not offline"
        with pytest.raises(StorageError) as refusal:
            log.append(memoryview(encode([(world.clock.now_ms(), b"k", b"v")])), world.clock.now_ms())
        assert not refusal.value.retriable, "a log that is down promises to come back"


def _goes_on_after_a_restart(world: FaultWorld) -> None:
    """The disk is well again and so is the next process on this boot: what it acks is as good as ever.

    Pages of a failed sync count as written and are on no disk; only what is written again can be made durable.
    """
    world.faulty.heal()
    world.start()
    for ledger in world.living():
        world.append(ledger, keys=[b"after"], flush=True)
        world.append(ledger, keys=[b"after that"], size=700)
    _judge_end(world)


def _judge_end(world: FaultWorld) -> None:
    """Whatever was promised holds after a kill and after a power cut."""
    ledgers, disk = list(world.partitions.values()), world.disk
    states = [*disk.kill_states(), *list(disk.crash_states(subsets=4))[:FINAL_STATES]]
    for state in states:
        if state.torn and not state.power_cut:
            continue
        judge(disk.after(state), ledgers, CrashState(state.at, state.lost, state.torn, state.power_cut))
