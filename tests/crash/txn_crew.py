"""Worker processes that are killed, paused and started again, what they tell, and what they are fed with."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import confluent_kafka
from peers import places, processes
from tests.conformance.transactions.confluent import QUIET
from tests.crash.recorder import Recorder
from tests.crash.txn_worker import INPUT, INPUT_PARTITIONS, LIBRARIES, OUTPUT_PARTITIONS, VALUE_BYTES, output_of
from tests.crash.values import value_of

from lowwater.types import TopicPartition

# Members of a group share its partitions; where a worker chooses them itself one has them all.
WORKERS = {"confluent": 2, "confluent-848": 2, "kafka-python": 1, "aiokafka": 1, "java": 1}
LOOK_AGAIN_S = 0.05
FEED_EACH = 8
AHEAD_MAX = 300
THAW_AT_THE_LATEST_S = 3.0
# After two kills in a row kafka-python 3.0 can keep a batch for ever and ask nothing more of the broker; its process is
# then killed, and how often is counted.
HANGS_AFTER_S = {"kafka-python": 5.0}
# After many kills a consumer of librdkafka 2.16 can go on asking for its coordinator, be told where it is, and never
# connect to it. It is killed and counted likewise. Nobody else is helped so.
SILENT_AFTER_S = {"confluent": 20.0, "confluent-848": 20.0}
SEND_TIMEOUT_S = 60
_runs = itertools.count(1)


class Ledger(Recorder):
    """Also what each library has done, and what befell the workers."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def count(self, what: str, more: int = 1) -> None:
        with self.progress:
            self.counts[what] += more
            self.progress.notify_all()

    def committed(self, library: str, records: int) -> None:
        with self.progress:
            self.counts["transactions"] += 1
            self.done[library] += records
            self.progress.notify_all()

    def wait_for(self, what: str, more: int, timeout_s: float) -> bool:
        with self.progress:
            goal, deadline = self.counts[what] + more, time.monotonic() + timeout_s
            return self.progress.wait_for(lambda: self.counts[what] >= goal, deadline - time.monotonic())

    def wait_for_each(self, timeout_s: float) -> set[str]:
        """Until every library has committed something more; those that did not."""
        with self.progress:
            before = Counter(self.done)
            left = lambda: {each for each in LIBRARIES if self.done[each] == before[each]}  # noqa: E731
            self.progress.wait_for(lambda: not left(), timeout_s)
            return left()


@dataclass(frozen=True, slots=True)
class Zombie:
    """A frozen process that another has taken the place of."""

    process: subprocess.Popen[bytes]
    listener: threading.Thread

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        processes.kill_group(self.process)
        self.listener.join(SEND_TIMEOUT_S)


class WorkerProcess:
    """One place in the crew: its transactional id stays, its processes come and go."""

    def __init__(self, library: str, slot: int, bootstrap: str, ledger: Ledger) -> None:
        self.library = library
        self.name = f"{library}-{slot}"
        self.bootstrap = bootstrap
        self.ledger = ledger
        self.partitions = [index for index in range(INPUT_PARTITIONS) if index % WORKERS[library] == slot]
        self.began_at: float | None = None
        self.heard_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None

    def start(self) -> None:
        self.began_at, self.heard_at = None, time.monotonic()
        own = ",".join(map(str, self.partitions))
        where = (self.library, self.bootstrap, f"group-{self.library}", own)
        command = [sys.executable, "-m", "tests.crash.txn_worker", self.name, str(next(_runs)), *where]
        path = os.pathsep.join([str(places.ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        self._process = processes.start(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def hangs(self) -> bool:
        """Whether its transaction lasts, or it says nothing, longer than its library is trusted to take."""
        now, began_at, never = time.monotonic(), self.began_at, float("inf")
        lasts_s = now - began_at if began_at is not None else 0.0
        is_silent = now - self.heard_at > SILENT_AFTER_S.get(self.library, never)
        return is_silent or lasts_s > HANGS_AFTER_S.get(self.library, never)

    def kill(self) -> None:
        """kill -9; all that it said is heard."""
        if self._process is not None and self._listener is not None:
            processes.kill_group(self._process)
            self._listener.join(SEND_TIMEOUT_S)

    def replace_frozen(self) -> Zombie:
        """Freeze the process and start another in its place."""
        assert self._process is not None
        assert self._listener is not None
        zombie = Zombie(self._process, self._listener)
        self._process.send_signal(signal.SIGSTOP)
        self.start()
        return zombie

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        open_tickets: dict[str, list[int]] = {}
        assert process.stdout is not None
        for text in process.stdout:
            if not text.endswith(b"\n"):
                return  # It was killed in the middle of a word.
            self._hear(json.loads(text), open_tickets)
        process.wait()

    def _hear(self, line: dict[str, Any], tickets: dict[str, list[int]]) -> None:
        transaction = line.get("transaction", "")
        self.heard_at = time.monotonic()
        if line["event"] == "sending":
            self.began_at = time.monotonic()
            tickets[transaction] = [self._sending(transaction, *each) for each in line["records"]]
        elif line["event"] == "committed":
            self.began_at = None
            for ticket, offset in zip(tickets[transaction], line["offsets"], strict=True):
                self.ledger.ended(ticket, offset)
            self.ledger.committed(self.library, len(line["offsets"]))
        elif line["event"] == "aborted":
            for ticket in tickets[transaction]:
                self.ledger.aborted(ticket)
            self.ledger.count("aborts")
        elif line["event"] == "ended":
            self.ledger.reasons[f"{self.library}: {line['why'][:100]}"] += 1

    def _sending(self, transaction: str, partition: int, name: str) -> int:
        where = TopicPartition(output_of(self.library), partition)
        return self.ledger.sending(self.name, where, name.encode(), idempotent=True, transaction=transaction)


class Crew:
    """Workers of each library; those that end by themselves are replaced."""

    def __init__(self, bootstrap: str, ledger: Ledger) -> None:
        self.ledger = ledger
        self.workers = [
            WorkerProcess(library, slot, bootstrap, ledger) for library in LIBRARIES for slot in range(WORKERS[library])
        ]
        self._guard = threading.Lock()
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._zombies: list[Zombie] = []

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        self._watcher.start()

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_AGAIN_S):
            with self._guard:
                for worker in self.workers:
                    if worker.hangs():
                        self.ledger.count("hangs")
                        worker.kill()
                    if not worker.is_running():
                        self.ledger.count("restarts")
                        worker.start()

    def kill_one(self, number: int) -> None:
        with self._guard:
            worker = self.workers[number % len(self.workers)]
            worker.kill()
            worker.start()

    def freeze_one(self, number: int) -> None:
        """A worker stops in the middle of something, and goes on when another has taken its place."""
        with self._guard:
            worker = self.workers[number % len(self.workers)]
            zombie = worker.replace_frozen()
        self.ledger.wait_for("transactions", 20, THAW_AT_THE_LATEST_S)
        zombie.thaw()
        self._zombies.append(zombie)

    def kill_all(self) -> None:
        """All at once, and nobody comes back."""
        self._stopping.set()
        self._watcher.join()
        for zombie in self._zombies:
            zombie.kill()
        for worker in self.workers:
            worker.kill()


class Feed:
    """Sends input without end, but never much more than the slowest library has worked off."""

    def __init__(self, bootstrap: str, ledger: Ledger) -> None:
        self.ledger = ledger
        self.sent = 0
        self._producer = confluent_kafka.Producer(
            {**QUIET, "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2}
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(SEND_TIMEOUT_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            for partition in range(INPUT_PARTITIONS):
                for _ in range(FEED_EACH):
                    self.sent += 1
                    value = value_of(b"%d" % self.sent, VALUE_BYTES)
                    self._producer.produce(INPUT, value, partition=partition, on_delivery=self._delivered)
            if self._producer.flush(SEND_TIMEOUT_S):
                self.ledger.failed("feed", "not acknowledged")
                return
            self._wait_for_the_slowest()

    def _wait_for_the_slowest(self) -> None:
        while not self._stopping.wait(LOOK_AGAIN_S):
            if self.sent - min(self.ledger.done[library] for library in LIBRARIES) < AHEAD_MAX:
                return

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.ledger.failed("feed", error)


class Tail:
    """Reads committed output of all libraries as it comes, in a thread: the checker judges what it saw."""

    def __init__(self, bootstrap: str, ledger: Ledger) -> None:
        self.ledger = ledger
        self._consumer = confluent_kafka.Consumer(
            {
                **QUIET,
                "bootstrap.servers": bootstrap,
                "group.id": "tail",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        places = [TopicPartition(output_of(each), index) for each in LIBRARIES for index in range(OUTPUT_PARTITIONS)]
        self._consumer.assign([confluent_kafka.TopicPartition(*place, 0) for place in places])
        for place in places:
            self.ledger.polled("tail", place, [], sought=0)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(SEND_TIMEOUT_S)
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(200, timeout=LOOK_AGAIN_S):
                if message.error() is None:
                    place = TopicPartition(message.topic(), message.partition())
                    self.ledger.polled("tail", place, [(message.offset(), message.value())])
