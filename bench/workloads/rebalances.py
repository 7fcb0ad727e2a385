"""Rebalances: many small groups at once, and one large group."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

from bench import group_frames, members, procfs, replay
from bench.members import Crowd, Membership, Script
from bench.plan import Run
from bench.report import Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import LOWWATER, Subject
from bench.workloads.group_requests import line_up

TEXT = "rebalances per second over 1,000 groups of two; one group of 1,000 members"
MANY_HEADER = ("subject", "flush", "rebalances/s", "CPU ms/rebalance", "lowwater/peer", "CPU/peer's")
LARGE_HEADER = ("subject", "flush", "all in and synced after ms", "broker CPU ms", "lowwater/peer's time")
GOAL_PER_S = 1000

_numbers = itertools.count(1)


def run(plan: Run) -> None:
    subjects = line_up(plan, writes=True)
    for subject in subjects:
        members.await_coordinator(subject.port)
    many = {one.name: _many(one, plan.size.rebalancing_groups, plan.size.rebalance_seconds) for one in subjects}
    large = {one.name: _large(one, plan.size.large_group) for one in subjects}
    for measure in large.values():
        measure()  # Warm-up.
    _report_many(plan, subjects, interleave(many, plan.size.request_rounds))
    _report_large(plan, subjects, interleave(large, plan.size.request_rounds))


class Pair:
    """Two members of a group that make it rebalance, again and again: each joins with changed metadata."""

    def __init__(self, group: str) -> None:
        self.members = (Membership(group), Membership(group))
        self._ready = 0

    def _is_complete(self) -> bool:
        first, second = self.members
        return first.generation == second.generation > 0

    def begin(self) -> list[Script]:
        def script(member: Membership) -> Script:
            yield from member.enter()
            yield from member.stay(lambda: not self._is_complete())

        return [script(member) for member in self.members]

    def rebalance(self, end: float) -> list[Script]:
        """Until that time. Whoever is done first helps the other to its end."""
        self._ready = 0

        def script(member: Membership) -> Script:
            turn = 0
            while time.perf_counter() < end:
                turn += 1
                yield from member.enter(members.METADATA[turn % 2])
            self._ready += 1
            yield from member.stay(lambda: self._ready < len(self.members), members.METADATA[turn % 2])

        return [script(member) for member in self.members]

    @property
    def generation(self) -> int:
        return max(member.generation for member in self.members)


def leave(member: Membership) -> Script:
    yield group_frames.leave(member.group, member.member_id)


def _many(subject: Subject, groups: int, seconds: float) -> Callable[[], Sample]:
    def measure() -> Sample:
        name = f"many-{next(_numbers)}"
        pairs = [Pair(f"{name}-{number}") for number in range(groups)]
        with replay.connections(subject.port, 2 * groups) as opened:
            crowd = Crowd(opened)
            crowd.play([script for pair in pairs for script in pair.begin()])
            before, cpu = sum(pair.generation for pair in pairs), procfs.cpu_seconds(subject.pid)
            end = time.perf_counter() + seconds
            took = crowd.play([script for pair in pairs for script in pair.rebalance(end)])
            rebalances = sum(pair.generation for pair in pairs) - before
            cpu = procfs.cpu_seconds(subject.pid) - cpu
            crowd.play([leave(member) for pair in pairs for member in pair.members])
        return {"rebalances_per_s": rebalances / took, "cpu_ms_per_rebalance": 1000 * cpu / rebalances}

    return measure


class LargeGroup:
    """The first member waits for the others to join, then joins again: one rebalance for all."""

    def __init__(self, group: str, size: int) -> None:
        self.first = Membership(group)
        self.others = [Membership(group) for _ in range(size - 1)]
        self._joining = 0

    def scripts(self) -> list[Script]:
        return [self._lead(), *(self._follow(member) for member in self.others)]

    def _lead(self) -> Script:
        while self._joining < len(self.others):
            yield self.first.heartbeat()
        yield from self.first.enter()
        yield from self.first.stay(lambda: not self._is_complete())

    def _follow(self, member: Membership) -> Script:
        asked = group_frames.joined((yield group_frames.join(member.group, "", members.METADATA[0])))
        member.member_id = asked.member_id
        self._joining += 1
        yield from member.enter()
        yield from member.stay(lambda: not self._is_complete())

    def _is_complete(self) -> bool:
        return all(member.generation == self.first.generation for member in self.others)


def _large(subject: Subject, size: int) -> Callable[[], Sample]:
    def measure() -> Sample:
        group = LargeGroup(f"large-{next(_numbers)}", size)
        with replay.connections(subject.port, size) as opened:
            crowd = Crowd(opened)
            crowd.play([group.first.enter()])
            cpu = procfs.cpu_seconds(subject.pid)
            took = crowd.play(group.scripts())
            cpu = procfs.cpu_seconds(subject.pid) - cpu
            crowd.play([leave(member) for member in (group.first, *group.others)])
        return {"stable_ms": 1000 * took, "cpu_ms": 1000 * cpu}

    return measure


def _report_many(plan: Run, subjects: Sequence[Subject], measured: Measured) -> None:
    plan.report.keep("many groups", measured)
    rows: list[Row] = []
    for subject in subjects:
        ours = subject.name == LOWWATER
        rows.append(
            (
                subject.name,
                subject.flush,
                number(measured.median(subject.name, "rebalances_per_s")),
                number(measured.median(subject.name, "cpu_ms_per_rebalance")),
                "" if ours else times(measured.ratios(LOWWATER, subject.name, "rebalances_per_s")),
                "" if ours else f"{number(measured.ratio(LOWWATER, subject.name, 'cpu_ms_per_rebalance'))}×",
            )
        )
    groups = plan.size.rebalancing_groups
    title = f"{groups:,} groups of two, {2 * groups:,} connections; a rebalance is two Joins and two Syncs"
    plan.report.table(title, MANY_HEADER, rows)
    plan.report.target("rebalances per second", measured.median(LOWWATER, "rebalances_per_s"), GOAL_PER_S)


def _report_large(plan: Run, subjects: Sequence[Subject], measured: Measured) -> None:
    plan.report.keep("one large group", measured)
    rows: list[Row] = []
    for subject in subjects:
        ours = subject.name == LOWWATER
        rows.append(
            (
                subject.name,
                subject.flush,
                number(measured.median(subject.name, "stable_ms")),
                number(measured.median(subject.name, "cpu_ms")),
                "" if ours else times(measured.ratios(LOWWATER, subject.name, "stable_ms")),
            )
        )
    title = f"one group of {plan.size.large_group:,} members: from the first Join until each has its assignment"
    plan.report.table(title, LARGE_HEADER, rows)
