"""Consumers that wait for records: what 500 parked fetches cost while nothing happens."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Sequence

from bench import frames, procfs, replay
from bench.plan import Run
from bench.report import Row, number
from bench.rounds import Measured, Sample, interleave
from bench.subjects import Subject
from bench.workloads.produce import present

TEXT = "500 parked fetches, nothing to read: CPU and wake-ups of the broker"
HEADER = ("subject", "CPU % of a core", "wake-ups/s", "replies/s", "RSS MB")
FETCHES = 500
LONG_WAIT_MS = 60_000
# What consumers ask by default: they come back twice a second.
USUAL_WAIT_MS = 500


def run(plan: Run) -> None:
    subjects = present(plan.fleet.lowwater(), plan.fleet.kafka())
    scenes = {
        "no connection at all": (0, LONG_WAIT_MS),
        f"{FETCHES} fetches parked, max wait 60 s": (FETCHES, LONG_WAIT_MS),
        f"{FETCHES} fetches, max wait 500 ms, sent again": (FETCHES, USUAL_WAIT_MS),
    }
    rows: list[Row] = []
    for title, (fetches, wait_ms) in scenes.items():
        parked = {one.name: _idle(one, fetches, wait_ms, plan.size.parked_seconds) for one in subjects}
        measured = interleave(parked, 1)
        plan.report.keep(title, measured)
        rows += _rows(title, subjects, measured)
    plan.report.table("parked fetches", HEADER, rows[1:])


def _idle(subject: Subject, fetches: int, wait_ms: int, seconds: float) -> Callable[[], Sample]:
    def measure() -> Sample:
        with subject.topic() as topic, contextlib.ExitStack() as stack:
            request = frames.fetch(topic, {0: 0}, 1_000_000, wait_ms=wait_ms)
            handles = {}
            for connection in stack.enter_context(replay.connections(subject.port, fetches)):
                connection.sendall(request)
                handles[connection.fileno()] = connection
            # The requests are on their way; the broker has parked them when it is idle again.
            _answer_for(handles, request, 1.0)
            cpu, switches = procfs.cpu_seconds(subject.pid), procfs.switches(subject.pid).voluntary
            started = time.monotonic()
            replies = _answer_for(handles, request, seconds)
            elapsed = time.monotonic() - started
            return {
                "cpu_percent": 100 * (procfs.cpu_seconds(subject.pid) - cpu) / elapsed,
                "wake_ups_per_s": (procfs.switches(subject.pid).voluntary - switches) / elapsed,
                "replies_per_s": replies / elapsed,
                "rss_mb": procfs.memory(subject.pid).rss,
            }

    return measure


def _answer_for(handles: dict[int, socket.socket], request: bytes, seconds: float) -> int:
    """Send every fetch again when it is answered, as consumers do; return how many were."""
    poll = select.epoll()
    for handle in handles:
        poll.register(handle, select.EPOLLIN)
    replies, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for handle, _ in poll.poll(left):
            if not handles[handle].recv(4096):
                raise ConnectionError("the broker closed a parked connection")
            replies += 1
            handles[handle].sendall(request)
    poll.close()
    return replies


def _rows(title: str, subjects: Sequence[Subject], measured: Measured) -> list[Row]:
    rows: list[Row] = [None, (title, *[""] * (len(HEADER) - 1))]
    figures = ("cpu_percent", "wake_ups_per_s", "replies_per_s", "rss_mb")
    for subject in subjects:
        rows.append((f"  {subject.name}", *(number(measured.median(subject.name, one)) for one in figures)))
    return rows
