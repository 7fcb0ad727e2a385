"""kill -9 and SIGSTOP under load: `python -m tests.crash.kill --kills 1000`.

Three client libraries send and tail while the broker is killed, stopped and started again; in the end everything is
read once more and judged. Prints kills, acked sends, each anomaly, and how long recovery took.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from tests.crash.broker_process import BrokerProcess
from tests.crash.load import workers
from tests.crash.recorder import Recorder
from tests.crash.values import name_of

from lowwater.testing.checker import Anomaly, FinalRead, check, tally
from lowwater.types import TopicPartition

TOPIC = "kills"
PARTITIONS = 4
ACKS_BETWEEN_KILLS = (50, 400)
STALL_TIMEOUT_S = 60
SETTINGS = {"log.segment.bytes": str(1 << 20), "log.index.interval.bytes": "512"}


@dataclass(slots=True)
class Report:
    kills: int = 0
    stops: int = 0
    acked: int = 0
    sends: int = 0
    anomalies: list[Anomaly] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    recovery_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in tally(self.anomalies).items())
        p50, p99 = (f"{_quantile(self.recovery_s, q) * 1000:.0f} ms" for q in (0.5, 0.99))
        head = f"kills {self.kills}, stops {self.stops}, sends {self.sends}, acked {self.acked}, {self.seconds:.0f} s"
        tail = f"errors {len(self.errors)}; recovery p50 {p50}, p99 {p99}"
        return "\n".join([head, kinds, tail, *map(str, self.anomalies[:10]), *self.errors[:10]])


def run(kills: int, *, seed: int, data_dir: Path) -> Report:
    """Kill the broker that often under load (half of the kills after a SIGSTOP or beside one), then judge."""
    for library in ("kafka", "aiokafka"):
        logging.getLogger(library).setLevel(logging.CRITICAL)  # they complain of every kill, hundreds of times
    began, draw, report, recorder = time.monotonic(), random.Random(seed), Report(), Recorder()
    broker = BrokerProcess(data_dir, SETTINGS)
    broker.start()
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    try:
        _create_topic(broker.bootstrap)
        load = workers(broker.bootstrap, partitions, recorder)
        for worker in load:
            worker.start()
        for _ in range(kills):
            _one_kill(broker, recorder, draw, report)
        for worker in load:
            worker.stop()
        final = {partition: read_all(broker.bootstrap, partition) for partition in partitions}
        broker.terminate()
    finally:
        if broker.is_running():
            broker.kill()
    history = recorder.history(final)
    report.acked, report.sends, report.errors = history.acked(), len(history.sends), recorder.errors
    report.anomalies, report.seconds = check(history), time.monotonic() - began
    return report


def _one_kill(broker: BrokerProcess, recorder: Recorder, draw: random.Random, report: Report) -> None:
    if not recorder.wait_for_acks(draw.randint(*ACKS_BETWEEN_KILLS), STALL_TIMEOUT_S):
        raise AssertionError(f"no progress for {STALL_TIMEOUT_S} s: {recorder.errors[-5:]}\n{broker.log_tail()}")
    way = draw.choice(("kill", "kill", "stop, then kill", "stop, go on, then kill"))
    if way != "kill":
        broker.pause()
        report.stops += 1
        # The clients meet a silent broker for a while: this is the fault itself, not a wait for something.
        threading.Event().wait(draw.uniform(0.01, 0.3))
    if way.endswith("go on, then kill"):
        broker.resume()
        recorder.wait_for_acks(draw.randint(1, 50), STALL_TIMEOUT_S)
    broker.kill()
    report.kills += 1
    report.recovery_s.append(broker.start())


def _create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def read_all(bootstrap: str, partition: TopicPartition) -> FinalRead:
    """The whole partition, from its log start to the log end of this moment."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
    )
    where = confluent_kafka.TopicPartition(*partition)
    log_start, log_end = consumer.get_watermark_offsets(where, timeout=30)
    where.offset = log_start
    consumer.assign([where])
    records: list[tuple[int, bytes]] = []
    while True:
        for message in consumer.consume(1000, timeout=0.1):
            error = message.error()
            if error is None:
                records.append((message.offset(), name_of(message.value() or b"")))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF and message.offset() >= log_end:
                consumer.close()
                return FinalRead(log_start, log_end, tuple(records))
            elif error.fatal() or not error.retriable():
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error.str()


def _quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lowwater-kill-") as folder:
        report = run(arguments.kills, seed=arguments.seed, data_dir=Path(folder) / "data")
    print(report)
    return int(bool(report.anomalies or report.errors))


if __name__ == "__main__":
    sys.exit(main())
