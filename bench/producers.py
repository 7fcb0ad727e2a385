"""Producers of an Arrow table, each run in a process of its own: `python -m bench.producers JSON` prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from bench import layouts, procfs
from bench.subjects import ROOT

RUN_TIMEOUT_S = 120
FLUSH_S = 60
LOOP_ROWS = 10_000  # between two polls for delivery reports
TABLE_ROWS = 100_000

LOWWATER, CONFLUENT, FROM_ARROW = "lowwater", "confluent-kafka", "confluent-kafka, from the table"
# Larger batches and queues; what is out of the box is linger 5 ms, batches of 1 MB and 10,000 records.
CONFLUENT_TUNED = {
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "batch.num.messages": 1_000_000,
    "queue.buffering.max.messages": 10_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
}
LOWWATER_TUNED = {"linger.ms": 20, "batch.size": 1_000_000}


@dataclass(frozen=True, slots=True)
class Task:
    """Write `records` records, keyed, for their acknowledgement by all."""

    producer: str
    bootstrap: str
    topic: str
    records: int
    record_bytes: int
    broker_pid: int
    codec: str = "none"
    tuned: bool = True


def run(task: Task) -> dict[str, Any]:
    """Do it in a new process; return what it measured."""
    command = [sys.executable, "-m", "bench.producers", json.dumps(asdict(task))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=RUN_TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{task.producer} failed:\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


# -- the producers: each prepares, and returns what is measured


def lowwater(task: Task, tables: list[Any]) -> Callable[[], None]:
    """A table at a time; delivery reports for each as a whole."""
    import lowwater

    config = {"compression.type": task.codec, "acks": "all", **(LOWWATER_TUNED if task.tuned else {})}
    producer = lowwater.Producer(task.bootstrap, config=config)
    producer.send_table(task.topic, tables[0].slice(0, 1))
    producer.flush().raise_failures()

    def send() -> None:
        for table in tables:
            producer.send_table(task.topic, table)
        producer.flush().raise_failures()

    return send


def confluent(task: Task, tables: list[Any]) -> Callable[[], None]:
    """The loop over produce(), rows as Python objects made before the clock starts."""
    rows = [row for table in tables for row in _rows(table)]
    produce = _confluent(task)
    return lambda: produce([rows])


def confluent_from_arrow(task: Task, tables: list[Any]) -> Callable[[], None]:
    """The same, rows taken out of the table as they are needed."""
    produce = _confluent(task)
    return lambda: produce(map(_rows, tables))


def _rows(table: Any) -> list[tuple[bytes, bytes, int]]:
    columns = [table.column("key"), table.column("value"), table.column("timestamp").cast("int64")]
    return list(zip(*(one.to_pylist() for one in columns), strict=True))


def _confluent(task: Task) -> Callable[[Any], None]:
    import confluent_kafka

    settings = {
        "acks": "all",
        "enable.idempotence": True,
        "compression.type": task.codec,
        "partitioner": "murmur2_random",
    }
    tuned = CONFLUENT_TUNED if task.tuned else {}
    producer = confluent_kafka.Producer({"bootstrap.servers": task.bootstrap, **settings, **tuned})
    failed: list[Any] = []

    def on_delivery(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    def send(parts: Any) -> None:
        topic, produce, left = task.topic, producer.produce, LOOP_ROWS
        for rows in parts:
            for key, value, timestamp in rows:
                try:
                    produce(topic, value, key, timestamp=timestamp, on_delivery=on_delivery)
                except BufferError:
                    producer.poll(1)
                    produce(topic, value, key, timestamp=timestamp, on_delivery=on_delivery)
                left -= 1
                if not left:
                    producer.poll(0)
                    left = LOOP_ROWS
        if producer.flush(FLUSH_S) or failed:
            raise RuntimeError(f"not everything was delivered: {failed[:1]}")

    send([[(b"first", b"", 0)]])
    return send


PRODUCERS: dict[str, Callable[[Task, list[Any]], Callable[[], None]]] = {
    LOWWATER: lowwater,
    CONFLUENT: confluent,
    FROM_ARROW: confluent_from_arrow,
}


def measure(task: Task) -> dict[str, Any]:
    """From the first row to the last acknowledgement; connections and metadata are there before."""
    import numpy as np

    now_ms = time.time_ns() // 1_000_000
    times = now_ms - task.records + np.arange(task.records)
    whole = layouts.table(task.records, task.record_bytes, times)
    tables = [whole.slice(first, TABLE_ROWS) for first in range(0, task.records, TABLE_ROWS)]
    send = PRODUCERS[task.producer](task, tables)
    broker_began = procfs.cpu_seconds(task.broker_pid)
    began, cpu_began = time.perf_counter(), time.process_time()
    send()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return {
        "rows_per_s": task.records / seconds,
        "cpu_ns_per_row": cpu_seconds * 1e9 / task.records,
        "seconds": seconds,
        "broker_cores": (procfs.cpu_seconds(task.broker_pid) - broker_began) / seconds,
        "peak_mb": procfs.memory(os.getpid()).peak_rss,
    }


def main() -> None:
    print(json.dumps(measure(Task(**json.loads(sys.argv[1])))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
