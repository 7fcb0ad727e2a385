"""Requests of group members per second: what a coordinator does all day."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from bench import connection, group_frames, members, procfs, replay
from bench.members import Crowd, Membership
from bench.plan import Run
from bench.report import Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import KAFKA, LOWWATER, Subject
from bench.workloads.produce import present

TEXT = "Join, Heartbeat, OffsetCommit and OffsetFetch per second over 1 and 50 connections"
HEADER = ("subject", "flush", "k requests/s", "broker CPU µs/request", "lowwater/peer", "CPU/peer's")
# (connections, requests in flight on each); a connection has a group with one member to itself.
SHAPES = ((1, 16), (50, 16), (50, 1))
QUICK_SHAPES = ((50, 16),)
OFFSETS_TOPIC = "__consumer_offsets"
FLUSH_EACH, FLUSH_NEVER = "flush.messages=1", "never (default)"
# Heartbeats run as fast as they can over 50 connections with 16 in flight; so does the rest.
GOALS_PER_S = {"Heartbeat v3": 100_000, "OffsetCommit v7": 50_000, "JoinGroup v5": 10_000}
GOAL_SHAPE = (50, 16)

MakeCall = Callable[[socket.socket, Membership, str], group_frames.Call]


@dataclass(frozen=True, slots=True)
class Api:
    """A request, whether its reply waits for the log, and how the table describes it."""

    name: str
    text: str
    writes: bool
    call: MakeCall


def _heartbeat(_: socket.socket, member: Membership, topic: str) -> group_frames.Call:
    return group_frames.Call(member.heartbeat(), group_frames.HEARTBEAT_REPLY_SIZE, group_frames.ERROR_AT)


def _commit(_: socket.socket, member: Membership, topic: str) -> group_frames.Call:
    return group_frames.commit(member.group, member.generation, member.member_id, topic, {0: 1})


def _fetch(opened: socket.socket, member: Membership, topic: str) -> group_frames.Call:
    connection.exchange(opened, _commit(opened, member, topic).data)
    return group_frames.fetch_offsets(member.group, topic, [0])


def _join(opened: socket.socket, member: Membership, topic: str) -> group_frames.Call:
    """The only member joins with other metadata each time: a rebalance begins, and a new generation is complete."""
    turns = tuple(group_frames.join(member.group, member.member_id, each) for each in members.METADATA)
    reply_size = 8 + len(connection.exchange(opened, turns[1]))
    return group_frames.Call(turns[0], reply_size, group_frames.ERROR_AT, turns)


APIS = (
    Api("Heartbeat v3", "", False, _heartbeat),
    Api("OffsetFetch v5", "one partition", False, _fetch),
    Api("OffsetCommit v7", "one partition", True, _commit),
    Api("JoinGroup v5", "the only member, changed: a generation each", True, _join),
)


def run(plan: Run) -> None:
    for subject in line_up(plan, writes=False):
        members.await_coordinator(subject.port)
    rows: list[Row] = []
    reached: dict[str, float] = {}
    for api in APIS:
        for shape in QUICK_SHAPES if plan.quick else SHAPES:
            for subjects in _pairs(plan, api.writes):
                measured = _scenario(plan, api, subjects, shape)
                rows += _rows(_title(api, shape), subjects, measured)
                if shape == GOAL_SHAPE and subjects[0].flush != FLUSH_NEVER:
                    reached[api.name] = measured.median(LOWWATER, "requests_per_s")
    plan.report.table("requests of group members (client: epoll, one thread)", HEADER, rows[1:])
    for name, goal in GOALS_PER_S.items():
        plan.report.target(f"{name} per second, 50 connections × 16", reached[name], goal)


def line_up(plan: Run, *, writes: bool) -> Sequence[Subject]:
    """Both with their defaults; where something is written, with what that means for it."""
    return present(plan.fleet.lowwater(flush="fsync" if writes else "–"), plan.fleet.kafka())


def _pairs(plan: Run, writes: bool) -> list[Sequence[Subject]]:
    """Equal durability with equal durability."""
    if not writes:
        return [[replace(one, flush="–") for one in line_up(plan, writes=False)]]
    kafka = plan.fleet.kafka()
    each = replace(kafka, flush=FLUSH_EACH) if kafka else None
    return [
        present(plan.fleet.lowwater(flush="fsync"), each),
        present(plan.fleet.lowwater("never", flush=FLUSH_NEVER), kafka),
    ]


def _title(api: Api, shape: tuple[int, int]) -> str:
    connections, depth = shape
    text = f" ({api.text})" if api.text else ""
    return f"{api.name}{text}, {connections} connection{'s' if connections > 1 else ''} × {depth} in flight"


def _scenario(plan: Run, api: Api, subjects: Sequence[Subject], shape: tuple[int, int]) -> Measured:
    seconds = plan.size.request_seconds
    storms = {one.name: _storm(one, api, shape, seconds) for one in subjects}
    for storm in storms.values():
        storm()  # Warm-up, as with all requests.
    measured = interleave(storms, plan.size.request_rounds)
    plan.report.keep(f"{_title(api, shape)}, {subjects[0].flush}", measured)
    return measured


def _storm(subject: Subject, api: Api, shape: tuple[int, int], seconds: float) -> Callable[[], Sample]:
    connections, depth = shape

    def measure() -> Sample:
        with contextlib.ExitStack() as stack:
            topic = stack.enter_context(subject.topic(1))
            stack.enter_context(flushing(subject))
            opened = stack.enter_context(replay.connections(subject.port, connections))
            joined = [Membership(f"{topic}-{number}") for number in range(connections)]
            Crowd(opened).play([one.enter() for one in joined])
            calls = [api.call(socket_, member, topic) for socket_, member in zip(opened, joined, strict=True)]
            pipelines = [
                replay.Pipeline(socket_, call.turns or [call.data], call.reply_size, call.error_at)
                for socket_, call in zip(opened, calls, strict=True)
            ]
            before = procfs.cpu_seconds(subject.pid)
            load = replay.drive(pipelines, depth, replay.until(seconds))
            cpu = procfs.cpu_seconds(subject.pid) - before
            leave(opened, joined)
        return {"requests_per_s": load.replies / load.seconds, "cpu_us_per_request": 1e6 * cpu / load.replies}

    return measure


@contextlib.contextmanager
def flushing(subject: Subject, topic: str = OFFSETS_TOPIC) -> Iterator[None]:
    """Kafka's internal topic under the durability that the subject names."""
    if subject.name != KAFKA or subject.flush != FLUSH_EACH:
        yield
        return
    with contextlib.closing(connection.connect(subject.port)) as opened:
        connection.exchange(opened, group_frames.set_topic_config(topic, "flush.messages", "1"))
        try:
            yield
        finally:
            off = str(2**63 - 1)
            connection.exchange(opened, group_frames.set_topic_config(topic, "flush.messages", off))


def leave(opened: Sequence[socket.socket], joined: Sequence[Membership]) -> None:
    for socket_, member in zip(opened, joined, strict=False):
        connection.exchange(socket_, group_frames.leave(member.group, member.member_id))


def _rows(title: str, subjects: Sequence[Subject], measured: Measured) -> list[Row]:
    rows: list[Row] = [None, (title, *[""] * (len(HEADER) - 1))]
    for subject in subjects:
        ours = subject.name == LOWWATER
        rows.append(
            (
                f"  {subject.name}",
                subject.flush,
                number(measured.median(subject.name, "requests_per_s") / 1000),
                number(measured.median(subject.name, "cpu_us_per_request")),
                "" if ours else times(measured.ratios(LOWWATER, subject.name, "requests_per_s")),
                "" if ours else f"{number(measured.ratio(LOWWATER, subject.name, 'cpu_us_per_request'))}×",
            )
        )
    return rows
