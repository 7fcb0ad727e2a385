"""Readers of records as Arrow, each run in a process of its own: `python -m bench.readers JSON` prints JSON."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench import dropping, procfs
from bench.subjects import ROOT

RUN_TIMEOUT_S = 120
POLL_MS = 1_000
# kafkars and kafkarrow wait for all of it when there is less than a batch, also at the end of the topic.
MANAGER_POLL_MS = 10
PATIENCE_S = 8.0  # for the first row
BATCH_ROWS = 65_536
CONFLUENT_BATCH_ROWS = 10_000

# librdkafka waits for a second before it fetches again for a queue that is full, and its queues are soon full.
TUNED = {
    "fetch.queue.backoff.ms": "1",
    "queued.min.messages": "1000000",
    "queued.max.messages.kbytes": "1048576",
    "fetch.max.bytes": "52428800",
}

LOWWATER, KAFKARS, KAFKARROW, CONFLUENT = "lowwater", "kafkars 0.0.8", "kafkarrow 0.1.1", "confluent-kafka"
DROPPING = "bytes dropped"


@dataclass(frozen=True, slots=True)
class Task:
    """Read `records` of a topic from its beginning, for at most `seconds_max`."""

    reader: str
    bootstrap: str
    topic: str
    partitions: int
    records: int
    ordered: bool = True
    tuned: bool = True
    seconds_max: float = 10.0
    is_order_checked: bool = False
    options: Mapping[str, Any] | None = None
    """More arguments for Lowwater's reader."""


class ReaderFailedError(Exception):
    """A reader that did not do what it was asked to. Others can be measured all the same."""


def run(task: Task, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Do it in a new process; return what it measured."""
    command = [sys.executable, "-m", "bench.readers", json.dumps(asdict(task))]
    settings = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=RUN_TIMEOUT_S, env=settings)
    except subprocess.TimeoutExpired:
        raise ReaderFailedError(f"{task.reader} was not done in {RUN_TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise ReaderFailedError(f"{task.reader} failed:\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def first_batch(bootstrap: str, topic: str, environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds until a new process has Lowwater's first batch: from its first import, and from the reader's creation."""
    program = f"""
import time
began = time.perf_counter()
import lowwater
created = time.perf_counter()
with lowwater.read({topic!r}, bootstrap={bootstrap!r}, stop="latest") as reader:
    next(iter(reader))
    now = time.perf_counter()
    print(now - began, now - created)
"""
    settings = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=settings, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"no first batch:\n{done.stderr[-4000:]}")
    whole_s, first_batch_s = map(float, done.stdout.split())
    return {"whole_s": whole_s, "first_batch_s": first_batch_s}


# -- the readers: each an iterator of Arrow batches


def lowwater(task: Task) -> Iterator[Any]:
    from lowwater import read
    from lowwater.client import columns  # noqa: F401  (what a reader loads behind is there when the clock starts)

    yield None
    order: Any = "timestamp" if task.ordered else None
    options = task.options or {}
    with read(task.topic, bootstrap=task.bootstrap, stop="latest", order=order, **options) as reader:
        yield from reader


def by_manager(module: str) -> Callable[[Task], Iterator[Any]]:
    """kafkars and its successor kafkarrow, which have the same surface."""

    def batches(task: Task) -> Iterator[Any]:
        package = importlib.import_module(module)
        yield None
        config = {"bootstrap.servers": task.bootstrap, "group.id": "bench", **(TUNED if task.tuned else {})}
        topics = [package.SourceTopic.from_earliest(task.topic)]
        manager = package.ConsumerManager(config, topics, **({"batch_size": BATCH_ROWS} if task.tuned else {}))
        while True:
            yield manager.poll(MANAGER_POLL_MS)

    return batches


def confluent(task: Task) -> Iterator[Any]:
    """consume(), and its messages as the same columns that Lowwater gives."""
    import confluent_kafka

    from lowwater.client.arrow import SCHEMA

    yield None
    config = {"bootstrap.servers": task.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({**config, **(TUNED if task.tuned else {})})
    consumer.assign([confluent_kafka.TopicPartition(task.topic, index, 0) for index in range(task.partitions)])
    while True:
        yield _as_arrow(consumer.consume(CONFLUENT_BATCH_ROWS, POLL_MS / 1000), task.topic, SCHEMA)


def bytes_dropped(task: Task) -> Iterator[Any]:
    """What the broker and a connection allow: nothing is checked, ordered or kept."""
    yield None
    yield from dropping.rows(task.bootstrap, task.topic, task.partitions, task.records)


def _as_arrow(messages: list[Any], topic: str, schema: Any) -> Any:
    """By column, which is what Python does fastest."""
    import numpy as np
    import pyarrow as pa

    count = len(messages)
    times = [message.timestamp() for message in messages]
    headers = [message.headers() for message in messages]
    names = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([topic]))
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        names,
        pa.array([message.partition() for message in messages], pa.int32()),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([one[1] for one in times], pa.int64()).cast(schema.field("timestamp").type),
        pa.array([one[0] - 1 for one in times], pa.int8()),
        pa.array([one or [] for one in headers] if any(headers) else [[]] * count, schema.field("headers").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


READERS: dict[str, Callable[[Task], Iterator[Any]]] = {
    LOWWATER: lowwater,
    KAFKARS: by_manager("kafkars"),
    KAFKARROW: by_manager("kafkarrow"),
    CONFLUENT: confluent,
    DROPPING: bytes_dropped,
}


# -- measuring


def measure(task: Task) -> dict[str, Any]:
    """From the creation of the reader until all records are there, or the time is over."""
    batches = READERS[task.reader](task)
    next(batches)
    began, cpu_began = time.perf_counter(), time.process_time()
    first_at = last_at = began
    rows = newest = late = 0
    for batch in batches:
        now = time.perf_counter()
        if batch is not None and batch.num_rows:
            first_at, last_at = first_at if rows else now, now
            rows += batch.num_rows
            if task.is_order_checked:
                newest, found = _out_of_order(batch, newest)
                late += found
        if rows >= task.records or now - began > (task.seconds_max if rows else PATIENCE_S):
            break
    return {
        "rows": rows,
        "rows_per_s": rows / (last_at - began) if rows else 0.0,
        "cpu_ns_per_row": (time.process_time() - cpu_began) * 1e9 / max(rows, 1),
        "first_batch_s": first_at - began,
        "seconds": last_at - began,
        "peak_mb": procfs.memory(os.getpid()).peak_rss,
        "out_of_order": late,
    }


def _out_of_order(batch: Any, newest: int) -> tuple[int, int]:
    """The newest timestamp so far, and how many rows are older than one before them."""
    import numpy as np

    times = batch.column("timestamp").cast("int64").to_numpy()
    before = np.maximum.accumulate(np.concatenate(([newest], times)))
    return int(before[-1]), int((times < before[:-1]).sum())


def main() -> None:
    print(json.dumps(measure(Task(**json.loads(sys.argv[1])))), flush=True)
    # Consumers that are cut off in the middle take their time to close, which nobody asked for.
    os._exit(0)


if __name__ == "__main__":
    main()
