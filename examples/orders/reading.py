"""What is there after a run, read without Lowwater: topics and the group by confluent-kafka, files as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

from examples.orders.expected import Batch, Hour, Partition, Record, Sums

PATIENCE_S = 60


class UnreadableError(Exception):
    """Something is not there, or not as it has to be."""


# ---- topics


def read_logs(bootstrap: str, topics: Sequence[str]) -> dict[Partition, dict[int, Record]]:
    """Every record of the topics, by partition and offset."""
    logs: dict[Partition, dict[int, Record]] = {}
    for message in _messages(bootstrap, topics):
        log = logs.setdefault((message.topic(), message.partition()), {})
        log[message.offset()] = Record(message.timestamp()[1], message.value())
    return logs


def read_dead_letters(bootstrap: str, topic: str) -> list[tuple[Partition, int, bytes | None]]:
    """Where each came from, as its headers say, and its value."""
    letters = []
    for message in _messages(bootstrap, [topic]):
        headers = dict(message.headers() or ())
        source, partition = headers["lowwater.topic"].decode(), int(headers["lowwater.partition"])
        letters.append(((source, partition), int(headers["lowwater.offset"]), message.value()))
    return letters


def read_committed(bootstrap: str, group: str, partitions: Sequence[Partition]) -> dict[Partition, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        asked = [TopicPartition(topic, number) for topic, number in partitions]
        return {(one.topic, one.partition): one.offset for one in consumer.committed(asked, timeout=PATIENCE_S)}
    finally:
        consumer.close()


def _messages(bootstrap: str, topics: Sequence[str]) -> Iterator[Any]:
    settings = {"group.id": "check", "enable.auto.commit": False, "auto.offset.reset": "error", "log_level": 0}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    try:
        left = _ends(consumer, topics)
        consumer.assign([TopicPartition(topic, number, start) for (topic, number), (start, _) in left.items()])
        while left:
            message = consumer.poll(PATIENCE_S)
            if message is None or message.error():
                raise UnreadableError(f"{sorted(left)} cannot be read to their end: {message and message.error()}")
            yield message
            one = (message.topic(), message.partition())
            if one in left and message.offset() + 1 >= left[one][1]:
                del left[one]
    finally:
        consumer.close()


def _ends(consumer: Consumer, topics: Sequence[str]) -> dict[Partition, tuple[int, int]]:
    """[start, end) of the partitions with records in them."""
    ends = {}
    for topic in topics:
        for number in consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions:
            start, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE_S)
            if end > start:
                ends[topic, number] = (start, end)
    return ends


# ---- Spark's checkpoint and files


def read_batches(checkpoint: Path) -> list[Batch]:
    """The finished micro-batches: which offsets each read, and the watermark it ran with."""
    numbers = sorted(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    batches: list[Batch] = []
    at: dict[Partition, int] = {}
    for number in numbers:
        _, metadata, *sources = (checkpoint / "offsets" / str(number)).read_text().split("\n")
        ranges = {}
        for source in sources:
            if source in ("", "-"):
                continue
            ends, begins = _offsets(json.loads(source))
            # A batch without anything new has the offset of the one before, where partitions began included.
            ranges |= {one: (at.get(one, begins.get(one, 0)), end) for one, end in ends.items()}
        at |= {one: end for one, (_, end) in ranges.items()}
        batches.append(Batch(ranges, json.loads(metadata)["batchWatermarkMs"]))
    return batches


def _offsets(told: Mapping[str, Any]) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """Where a batch ends, and where the partitions begin that it is the first to read."""
    ends, begins = {}, {}
    for topic, entry in told["topics"].items():
        ends |= {(topic, int(number)): offset for number, offset in entry["at"].items()}
        begins |= {(topic, int(number)): offset for number, offset in entry.get("begin", {}).items()}
    return ends, begins


def read_hours(folder: Path) -> dict[Hour, Sums]:
    """The result. A row that is there twice is an error."""
    hours: dict[Hour, Sums] = {}
    for file in _written_files(folder):
        for row in pq.ParquetFile(file).read().to_pylist():
            hour = Hour(int(row["hour"].replace(tzinfo=UTC).timestamp() * 1000), row["country"])
            if hour in hours:
                raise UnreadableError(f"{hour} is there twice")
            hours[hour] = Sums(*(row[name] for name in Sums._fields))
    return hours


def _written_files(folder: Path) -> list[Path]:
    """Those that finished micro-batches wrote, by the list that Spark keeps beside them."""
    log = folder / "_spark_metadata"
    if not log.is_dir():
        return []
    names = {file.name for file in log.iterdir() if not file.name.startswith(".")}
    compacted = max((int(name.removesuffix(".compact")) for name in names if name.endswith(".compact")), default=-1)
    batches = [log / f"{compacted}.compact"] if compacted >= 0 else []
    batches += [log / name for name in names if name.isdigit() and int(name) > compacted]
    entries = [json.loads(line) for batch in batches for line in batch.read_text().splitlines()[1:] if line]
    return sorted(Path(unquote(urlsplit(entry["path"]).path)) for entry in entries if entry["action"] == "add")
