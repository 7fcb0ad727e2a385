"""A good client beside the attackers: librdkafka sends and reads all the time, and everything is written down."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import time

from confluent_kafka.admin import AdminClient, NewTopic
from tests.crash.kill import read_all
from tests.crash.load import ConfluentSender, ConfluentTail
from tests.crash.recorder import Recorder

from lowwater.testing.checker import Anomaly, check
from lowwater.types import TopicPartition
from lowwater.wire.frame import encode_request_header

PARTITIONS = 2
TIMEOUT_S = 60
PING_EVERY_S = 0.05


def create_topics(bootstrap: str, topics: dict[str, dict[str, str]]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, PARTITIONS, 1, config=config) for name, config in topics.items()]
    for created in admin.create_topics(wanted).values():
        created.result(TIMEOUT_S)


class _TimedRecorder(Recorder):
    """Notes when each ack came."""

    def __init__(self) -> None:
        super().__init__()
        self.acked_at = [time.monotonic()]

    def ended(self, ticket: int, offset: int | None, error: str | None = None) -> None:
        super().ended(ticket, offset, error)
        if offset is not None:
            self.acked_at.append(time.monotonic())


class Bystander:
    """Idempotent and acks=all; tails its own partitions."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        self._recorder = _TimedRecorder()
        self._workers = (
            ConfluentSender("good-sender", bootstrap, self.partitions, self._recorder),
            ConfluentTail("good-tail", bootstrap, self.partitions, self._recorder),
        )

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def wait_for_acks(self, count: int) -> bool:
        return self._recorder.wait_for_acks(count, TIMEOUT_S)

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    @property
    def acked(self) -> int:
        return self._recorder.acks

    @property
    def errors(self) -> list[str]:
        return self._recorder.errors

    def longest_silence_s(self) -> float:
        """The longest time in which no send was acked."""
        return max((later - earlier for earlier, later in itertools.pairwise(self._recorder.acked_at)), default=0.0)

    def anomalies(self, bootstrap: str) -> list[Anomaly]:
        """Read everything once more and compare with what was sent, acked and seen."""
        final = {partition: read_all(bootstrap, partition) for partition in self.partitions}
        return check(self._recorder.history(final))


class Pinger:
    """Asks for ApiVersions on one connection again and again: how long does the broker ever keep it waiting?"""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pinger", daemon=True)
        self.pings = 0
        self.longest_s = 0.0
        self.error: str | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT_S)
        self._socket.close()

    def _run(self) -> None:
        question = encode_request_header(18, 0, 1, "pinger")
        frame = struct.pack(">i", len(question)) + question
        try:
            while not self._stop.wait(PING_EVERY_S):
                self._ping(frame)
        except (OSError, EOFError) as error:
            self.error = f"ping {self.pings + 1} was not answered: {error!r}"

    def _ping(self, frame: bytes) -> None:
        began = time.monotonic()
        self._socket.sendall(frame)
        (size,) = struct.unpack(">i", self._exactly(4))
        self._exactly(size)
        self.pings += 1
        self.longest_s = max(self.longest_s, time.monotonic() - began)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise EOFError("the broker closed the connection")
            data += piece
        return data


def memory_bytes(pid: int) -> tuple[int, int]:
    """(what the process allocated itself, its largest resident size so far)."""
    anonymous = peak = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                anonymous = int(line.split()[1]) * 1024
            elif line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
    return anonymous, peak


class MemoryWatch:
    """Samples the process' own memory; a request that fills it does so for longer than one sample."""

    EVERY_S = 0.01

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
        self.before, _ = memory_bytes(pid)
        self.largest = self.before

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        return self.largest - self.before

    def _run(self) -> None:
        while not self._stop.wait(self.EVERY_S):
            self.largest = max(self.largest, memory_bytes(self._pid)[0])
