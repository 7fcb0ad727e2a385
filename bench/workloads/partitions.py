"""Thousands of partitions in one broker, each with records: written and read by the C client, also after kill -9."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from bench import procfs, rdkafka
from bench.plan import Run
from bench.report import Row, number
from bench.subjects import LowwaterBroker
from bench.workloads.footprint import wait_for_metadata

TEXT = "many partitions in one broker, before and after a clean stop and a kill -9"
HEADER = ("step", "seconds", "records", "RSS MB", "anonymous MB", "file handles", "maps")
TOPIC = "many"
PER_PARTITION = 10


class Story:
    """The steps of one broker's life, each timed and with what the process holds afterwards."""

    def __init__(self, broker: LowwaterBroker, partitions: int) -> None:
        self._broker = broker
        self._partitions = partitions
        self.rows: list[Row] = []
        self.figures: dict[str, dict[str, float]] = {}

    def step(self, name: str, act: Callable[[], int | None]) -> None:
        started = time.perf_counter()
        records = act()
        seconds = time.perf_counter() - started
        figures: dict[str, float] = {"seconds": seconds}
        cells = ["", "", "", ""]
        if self._broker.process is not None:
            memory = procfs.memory(self._broker.pid)
            handles, maps = procfs.file_handles(self._broker.pid), procfs.maps(self._broker.pid)
            figures |= {"rss": memory.rss, "anonymous": memory.anonymous, "handles": handles, "maps": maps}
            cells = [number(memory.rss), number(memory.anonymous), str(handles), str(maps)]
        self.figures[name] = figures
        self.rows.append((name, number(seconds), "" if records is None else f"{records:,}", *cells))

    def client(self, action: str, **more: Any) -> int:
        """What librdkafka did in a process of its own; it fails unless every partition has all its records."""
        bootstrap = f"127.0.0.1:{self._broker.port}"
        done = rdkafka.run(action, bootstrap=bootstrap, topic=TOPIC, partitions=self._partitions, **more)
        return int(done["records"])

    def start(self) -> None:
        self._broker.start()
        wait_for_metadata(self._broker.port)


def run(plan: Run) -> None:
    with contextlib.ExitStack() as stack:
        broker = LowwaterBroker()
        stack.callback(broker.discard)
        story = Story(broker, plan.size.partitions)
        _live(story, broker)
    plan.report.keep("partitions", story.figures)
    plan.report.table(f"{plan.size.partitions:,} partitions, {PER_PARTITION} records each time", HEADER, story.rows)


def _live(story: Story, broker: LowwaterBroker) -> None:
    story.step("start, empty directory", story.start)
    story.step("create the topic", lambda: story.client("create"))
    story.step("produce, acks=all", lambda: story.client("spread", acks="all", per_partition=PER_PARTITION))
    story.step("read everything", lambda: story.client("gather", per_partition=PER_PARTITION))
    story.step("stop cleanly", broker.terminate)
    story.step("start after the clean stop", story.start)
    story.step("read everything", lambda: story.client("gather", per_partition=PER_PARTITION))
    story.step("produce, acks=1", lambda: story.client("spread", acks="1", per_partition=PER_PARTITION))
    story.step("kill -9", broker.kill)
    story.step("start after kill -9", story.start)
    story.step("read everything again", lambda: story.client("gather", per_partition=2 * PER_PARTITION))
