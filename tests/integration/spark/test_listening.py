"""How many seconds queries are behind that are not pipelines, by what a listener is told of them."""

from __future__ import annotations

import re
import threading
import time

from tests.fresh import fresh
from tests.reader.writing import Writer

from lowwater.spark.listening import Courses
from lowwater.spark.progress import Progress
from lowwater.testing import Broker
from lowwater.types import TopicPartition

PATIENCE_S = 60
HOUR_S = 3600


def progress(topic: str, batch: int, at: int, latest: int) -> Progress:
    def offset(place: int) -> dict[str, object]:
        return {"lowwater": 1, "lineage": "5f2c9a1e", "topics": {topic: {"at": {"0": place}}}}

    source = {"numInputRows": 1, "endOffset": offset(at), "latestOffset": offset(latest)}
    return Progress.of({"name": "q", "timestamp": "2026-03-05T09:00:00.000Z", "batchId": batch, "sources": [source]})


def seconds_behind(courses: Courses) -> float | None:
    found = re.search(r'^lowwater_spark_seconds_behind\{query="q"\} (.*)$', courses.prometheus(), re.MULTILINE)
    return None if found is None else float(found[1])


def test_seconds_are_known_after_a_look_at_the_oldest_unread_record(broker: Broker, writer: Writer) -> None:
    topic = fresh("listened")
    writer.create(topic, 1)
    now_ms = time.time_ns() // 1_000_000
    writer.write(TopicPartition(topic, 0), [now_ms - 2 * HOUR_S * 1000, now_ms - HOUR_S * 1000, now_ms])
    courses = Courses({"bootstrap.servers": broker.bootstrap})
    try:
        deadline = time.monotonic() + PATIENCE_S
        while seconds_behind(courses) is None:  # each is told what the look before it found
            assert time.monotonic() < deadline
            courses.add(progress(topic, 0, 1, 3))
            threading.Event().wait(0.02)
        assert HOUR_S <= (seconds_behind(courses) or 0) < HOUR_S + PATIENCE_S
        courses.add(progress(topic, 1, 3, 3))
        assert seconds_behind(courses) == 0
    finally:
        courses.close()


def test_without_a_broker_to_ask_lag_is_told_in_records_alone() -> None:
    courses = Courses()
    courses.add(progress("t", 0, 1, 3))
    assert seconds_behind(courses) is None
    assert 'lowwater_spark_records_behind{query="q"} 2' in courses.prometheus()
