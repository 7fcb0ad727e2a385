"""A Kafka Streams application that counts words exactly once, what is fed to it, and what it has to say."""

from __future__ import annotations

import random
import subprocess
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from peers import java, places, processes

SOURCE = Path(__file__).resolve().parent / "java" / "StreamsCount.java"
INPUT, OUTPUT = "lines", "counts"
PARTITIONS = 3
TIMEOUT_S = 90
WORDS = tuple("abcdefghijklmnopqrstuvwxyz"[:17])
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


class Application:
    """One instance, which can be killed and started again; its stores are in memory and come back from the broker."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115  as long as the application

    def __enter__(self) -> Application:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def start(self) -> None:
        libs = [places.STREAMS_LIBS]
        arguments = (self.bootstrap, "word-count", INPUT, OUTPUT, str(self.folder))
        classes = java.compiled(SOURCE, libs)
        command = java.command("StreamsCount", *arguments, classes=classes, libs=libs)
        self.process = processes.start(command, stdout=subprocess.DEVNULL, stderr=self.stderr)

    def kill(self) -> None:
        assert self.process is not None
        processes.kill_group(self.process)

    def complaints(self) -> str:
        self.stderr.seek(0)
        return "\n".join(self.stderr.read().decode(errors="replace").splitlines()[-30:])


class Feed:
    """Sends lines of random words, and knows how often it has sent each."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self.sent: Counter[str] = Counter()
        self._draw = random.Random(seed)
        self._producer = Producer({**QUIET, "bootstrap.servers": bootstrap, "enable.idempotence": True})

    def send(self, lines: int) -> None:
        """Returns when all are acknowledged."""
        failed: list[Any] = []
        for number in range(lines):
            words = self._draw.choices(WORDS, k=5)
            self.sent.update(words)
            line = " ".join(words).encode()
            self._producer.produce(
                INPUT, line, partition=number % PARTITIONS, on_delivery=lambda error, _: failed.append(error)
            )
        assert self._producer.flush(TIMEOUT_S) == 0
        assert not any(failed), failed


class Tail:
    """Reads committed counts as they come, by word, in a thread."""

    def __init__(self, bootstrap: str) -> None:
        self.news = threading.Condition()
        self.counts: defaultdict[str, list[int]] = defaultdict(list)
        self.total = 0
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                **QUIET,
                "bootstrap.servers": bootstrap,
                "group.id": "tail",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stopping.is_set():
            messages = [each for each in self._consumer.consume(500, timeout=0.1) if each.error() is None]
            with self.news:
                for message in messages:
                    self.counts[message.key().decode()].append(int(message.value()))
                self.total += len(messages)
                self.news.notify_all()

    def until(self, total: Callable[[], int], otherwise: Callable[[], str]) -> None:
        """Wait for that many counts."""
        deadline = time.monotonic() + TIMEOUT_S
        with self.news:
            came = self.news.wait_for(lambda: self.total >= total(), deadline - time.monotonic())
            assert came, f"{self.total} of {total()} counts within {TIMEOUT_S} s\n{otherwise()}"

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(TIMEOUT_S)
        self._consumer.close()


def each_counted_once(feed: Feed, tail: Tail) -> None:
    """Every word went 1, 2, 3 … up to what plain Python counted: nothing lost, nothing twice, nothing aborted seen."""
    expected = {word: list(range(1, count + 1)) for word, count in feed.sent.items()}
    assert dict(tail.counts) == expected
