"""Many groups that do nothing but stay: what it costs to keep them, and whether any heartbeat is missed."""

from __future__ import annotations

import itertools
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence

from bench import members, procfs, replay
from bench.members import Crowd, Membership
from bench.plan import Run
from bench.report import Row, number
from bench.rounds import Sample, interleave
from bench.subjects import LOWWATER, Subject
from bench.workloads.group_requests import line_up
from bench.workloads.rebalances import Pair, leave

TEXT = "10,000 groups with two members each held for a minute"
HEADER = (
    "subject",
    "RSS MB",
    "more than before",
    "KB/member",
    "CPU % of a core",
    "heartbeats/s",
    "missed",
    "slowest ms",
)
# As consumers do by default; a heartbeat is missed when its answer is an error or comes after the next is due.
INTERVAL_S = 3.0
CONNECTIONS = 50

_numbers = itertools.count(1)


def run(plan: Run) -> None:
    subjects = line_up(plan, writes=False)
    for subject in subjects:
        members.await_coordinator(subject.port)
    held = {one.name: _held(one, plan.size.held_groups, plan.size.held_seconds) for one in subjects}
    measured = interleave(held, 1)
    plan.report.keep("held groups", measured)
    figures = ("rss", "grown", "kb_per_member", "cpu_percent", "heartbeats_per_s", "missed", "slowest_ms")
    rows: list[Row] = [
        (one.name, *(number(measured.median(one.name, figure)) for figure in figures)) for one in subjects
    ]
    groups, seconds = plan.size.held_groups, plan.size.held_seconds
    plan.report.table(f"{groups:,} groups of two for {seconds:.0f} s, a heartbeat every 3 s each", HEADER, rows)
    plan.report.target("missed heartbeats", measured.median(LOWWATER, "missed"), 0, at_least=False)


def _held(subject: Subject, groups: int, seconds: float) -> Callable[[], Sample]:
    def measure() -> Sample:
        before = procfs.memory(subject.pid).rss
        name = f"held-{next(_numbers)}"
        pairs = [Pair(f"{name}-{number}") for number in range(groups)]
        with replay.connections(subject.port, 2 * CONNECTIONS) as opened:
            # Members of a pair wait for each other, so both must have a connection at the same time.
            Crowd(opened).play([script for pair in pairs for script in pair.begin()])
            joined = [member for pair in pairs for member in pair.members]
            rss = procfs.memory(subject.pid).rss
            cpu, started = procfs.cpu_seconds(subject.pid), time.perf_counter()
            beats = Beats(opened, joined)
            beats.run(seconds)
            cpu = procfs.cpu_seconds(subject.pid) - cpu
            elapsed = time.perf_counter() - started
            Crowd(opened).play([leave(member) for member in joined])
        return {
            "rss": rss,
            "grown": rss - before,
            "kb_per_member": 1000 * (rss - before) / len(joined),
            "cpu_percent": 100 * cpu / elapsed,
            "heartbeats_per_s": beats.answered / elapsed,
            "missed": beats.missed,
            "slowest_ms": 1000 * beats.slowest,
        }

    return measure


class Beats:
    """Sends every member's heartbeat on time, spread over the interval and the connections."""

    def __init__(self, opened: Sequence[socket.socket], joined: Sequence[Membership]) -> None:
        self.answered = self.missed = 0
        self.slowest = 0.0
        self._requests = [member.heartbeat() for member in joined]
        self._opened = opened
        self._waiting: dict[int, list[float]] = {one.fileno(): [] for one in opened}
        self._rest = {one.fileno(): b"" for one in opened}
        self._handles = {one.fileno(): one for one in opened}

    def run(self, seconds: float) -> None:
        poll = select.epoll()
        for handle in self._handles:
            poll.register(handle, select.EPOLLIN)
        started = time.perf_counter()
        sent, pace = 0, len(self._requests) / INTERVAL_S
        while (now := time.perf_counter()) < started + seconds or any(self._waiting.values()):
            due = int(min(now - started, seconds) * pace)
            while sent < due:
                self._send(sent, started + sent / pace)
                sent += 1
            for handle, _ in poll.poll(0.005):
                self._receive(handle)
        poll.close()

    def _send(self, number: int, due: float) -> None:
        connection = self._opened[number % len(self._opened)]
        self._waiting[connection.fileno()].append(due)
        connection.sendall(self._requests[number % len(self._requests)])

    def _receive(self, handle: int) -> None:
        data = self._rest[handle] + self._handles[handle].recv(1 << 16)
        now, size = time.perf_counter(), 14
        count = len(data) // size
        for at in range(0, count * size, size):
            took = now - self._waiting[handle][at // size]
            self.slowest = max(self.slowest, took)
            self.missed += took > INTERVAL_S or struct.unpack_from(">h", data, at + 12)[0] != 0
        self.answered += count
        del self._waiting[handle][:count]
        self._rest[handle] = data[count * size :]
