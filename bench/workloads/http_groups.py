"""The HTTP API over many groups: how soon the list and a single lag answer, and what a look at all of them takes."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from typing import Any

from bench import group_frames, members, replay
from bench.plan import Run
from bench.report import number
from bench.subjects import LOWWATER, LOWWATER_SETTINGS, LowwaterBroker, Subject

TEXT = "the HTTP API over 10,000 groups: list and lag"
HEADER = ("asked", "median ms", "slowest ms")
GROUPS, QUICK_GROUPS = 10_000, 1_000
PARTITIONS = 4
RECORDS = 10
ROUNDS = 20
GOAL_MS = 1_000
PATIENCE_S = 120


def run(plan: Run) -> None:
    groups = GROUPS if plan.size.committed_offsets >= 1_000_000 else QUICK_GROUPS
    broker = LowwaterBroker(LOWWATER_SETTINGS)
    try:
        broker.start()
        subject = Subject(LOWWATER, broker, "", "")
        with subject.topic(PARTITIONS) as topic:
            _fill(subject.port, topic)
            _commit(subject.port, topic, groups)
            rows, looked_ms = _measure(subject.port, groups)
    finally:
        broker.discard()
    title = (
        f"{groups:,} groups of {PARTITIONS} partitions each, all behind; one look at all takes {number(looked_ms)} ms"
    )
    plan.report.table(title, HEADER, [(what, number(median), number(slowest)) for what, median, slowest in rows])
    for what, _, slowest in rows:
        plan.report.target(f"slowest answer, {what}, ms", slowest, GOAL_MS, at_least=False)


def _fill(port: int, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
    for place in range(PARTITIONS * RECORDS):
        producer.produce(topic, b"x", partition=place % PARTITIONS)
    producer.flush(30)


def _commit(port: int, topic: str, groups: int) -> None:
    members.await_coordinator(port)
    calls = [
        group_frames.commit(f"group-{place:05d}", -1, "", topic, dict.fromkeys(range(PARTITIONS), place % RECORDS))
        for place in range(groups)
    ]
    requests = iter([call.data for call in calls])
    with replay.connections(port, 4) as opened:
        pipelines = [replay.Pipeline(one, requests, calls[0].reply_size, calls[0].error_at) for one in opened]
        replay.drive(pipelines, 8, replay.total(groups))


def _measure(port: int, groups: int) -> tuple[list[tuple[str, float, float]], float]:
    command = [sys.executable, "-m", "lowwater.cli.main", "dashboard", "-b", f"127.0.0.1:{port}", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, "the dashboard did not start"
        url = found[0]
        _await_groups(url, groups)
        rows = [
            _timed("a page of 100 groups", f"{url}/consumer-groups?limit=100"),
            _timed("a page of 1,000 groups, by lag", f"{url}/consumer-groups?limit=1000&sort=lag"),
            _timed("the lag of a group", f"{url}/consumer-groups/group-00777/lag"),
        ]
        metrics = _get(f"{url}/metrics").decode()
        looked = re.search(r"^kafka_consumergroup_poll_time_ms (\S+)$", metrics, re.MULTILINE)
        assert looked is not None
        return rows, float(looked[1])
    finally:
        process.terminate()
        process.wait()


def _await_groups(url: str, groups: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if _json(f"{url}/consumer-groups?limit=1")["total"] == groups:
                return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError("the groups are not seen")
        time.sleep(0.2)


def _timed(what: str, url: str) -> tuple[str, float, float]:
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        _get(url)
        took.append(1000 * (time.perf_counter() - began))
    return what, statistics.median(took), max(took)


def _json(url: str) -> Any:
    return json.loads(_get(url))


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
        body: bytes = response.read()
        return body
