"""Small requests per second: what a request costs before any record is touched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from bench import frames, procfs, replay
from bench.plan import Run
from bench.report import Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import LOWWATER, Subject
from bench.workloads.produce import present

TEXT = "small requests per second over 1, 50 and 500 connections"
HEADER = ("subject", "k requests/s", "broker CPU µs/request", "lowwater/peer", "CPU/peer's")
# (connections, requests in flight on each)
API_VERSIONS_SHAPES = ((1, 16), (1, 1), (50, 16), (50, 1), (500, 16), (500, 1))
METADATA_SHAPES = ((1, 16), (50, 1))
QUICK_SHAPES = ((1, 16), (50, 1), (500, 1))

# Where the reply has its (first) error code.
API_VERSIONS_ERROR_AT = 8


def run(plan: Run) -> None:
    subjects = present(plan.fleet.lowwater(), plan.fleet.mock(), plan.fleet.kafka())
    with contextlib.ExitStack() as stack:
        topics = {one.name: stack.enter_context(one.topic()) for one in subjects}
        rows: list[Row] = []
        for shape in QUICK_SHAPES if plan.quick else API_VERSIONS_SHAPES:
            rows += _scenario(plan, "ApiVersions v2", subjects, shape, lambda _: frames.api_versions())
        for shape in METADATA_SHAPES:
            rows += _scenario(
                plan, "Metadata v4, one topic", subjects, shape, lambda one: frames.metadata([topics[one.name]])
            )
    plan.report.table("small requests (client: epoll, one thread)", HEADER, rows[1:])


def _scenario(
    plan: Run, api: str, subjects: Sequence[Subject], shape: tuple[int, int], request: Callable[[Subject], bytes]
) -> list[Row]:
    connections, depth = shape
    title = f"{api}, {connections} connection{'s' if connections > 1 else ''} × {depth} in flight"
    seconds = plan.size.request_seconds
    storms = {one.name: _storm(one, request(one), connections, depth, seconds) for one in subjects}
    for storm in storms.values():
        storm()  # Warm-up: compiled codecs here, compiled byte code there.
    measured = interleave(storms, plan.size.request_rounds)
    plan.report.keep(title, measured)
    return _rows(title, subjects, measured)


def _storm(subject: Subject, request: bytes, connections: int, depth: int, seconds: float) -> Callable[[], Sample]:
    is_api_versions = request == frames.api_versions()

    def measure() -> Sample:
        size = replay.reply_size(subject.port, request)
        # Metadata has its error code behind a list of brokers: the constant size of the reply is check enough.
        error_at = API_VERSIONS_ERROR_AT if is_api_versions else None
        with replay.connections(subject.port, connections) as opened:
            pipelines = [replay.Pipeline(one, [request], size, error_at) for one in opened]
            before = procfs.cpu_seconds(subject.pid)
            load = replay.drive(pipelines, depth, replay.until(seconds))
            cpu = procfs.cpu_seconds(subject.pid) - before
        return {"requests_per_s": load.replies / load.seconds, "cpu_us_per_request": 1e6 * cpu / load.replies}

    return measure


def _rows(title: str, subjects: Sequence[Subject], measured: Measured) -> list[Row]:
    rows: list[Row] = [None, (title, *[""] * (len(HEADER) - 1))]
    for subject in subjects:
        ours = subject.name == LOWWATER
        rows.append(
            (
                f"  {subject.name}",
                number(measured.median(subject.name, "requests_per_s") / 1000),
                number(measured.median(subject.name, "cpu_us_per_request")),
                "" if ours else times(measured.ratios(LOWWATER, subject.name, "requests_per_s")),
                "" if ours else f"{number(measured.ratio(LOWWATER, subject.name, 'cpu_us_per_request'))}×",
            )
        )
    return rows
