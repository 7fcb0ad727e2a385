"""Suite 8: file handles run out, readers stop reading; whoever behaves is served, and nothing acked is lost."""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.raw import Wire
from tests.crash.broker_process import BrokerProcess
from tests.crash.plain_client import (
    FETCH_VERSION,
    connect,
    create_topic,
    fetch_request,
    produce,
    produce_request,
    read_all,
)

from lowwater.errors import ErrorCode

pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit is not here")

HANDLES = 100
DATA_BYTES_MAX = 512 << 20
READERS = 60
PIPELINED = 8
RECORD = 900_000
SLOWEST_MS = 2000


@contextlib.contextmanager
def limited_broker(data_dir: Path, limit: str, **settings: str) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(data_dir, {name.replace("_", "."): value for name, value in settings.items()})
    broker.start(prefix=("prlimit", limit, "--"))
    try:
        yield broker
    finally:
        if broker.is_running():
            broker.kill()


def flood(bootstrap: str, count: int) -> list[socket.socket]:
    """Connections that say nothing; those that the broker cannot take stay in its queue or fail."""
    host, _, port = bootstrap.rpartition(":")
    taken = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            taken.append(socket.create_connection((host, int(port)), timeout=1))
    return taken


def until_served(bootstrap: str, deadline_s: float = 30) -> Wire:
    """A connection that gets an answer."""
    deadline = time.monotonic() + deadline_s
    while True:
        wire = connect(bootstrap)
        wire.socket.settimeout(2)
        try:
            read_all(wire, "orders")
            return wire
        except (OSError, ConnectionError) as error:
            wire.socket.close()
            if time.monotonic() > deadline:
                raise AssertionError("no new connection was served") from error


def test_without_file_handles_old_connections_are_served_and_new_ones_later(tmp_path: Path) -> None:
    with limited_broker(tmp_path / "data", f"--nofile={HANDLES}") as broker:
        with connect(broker.bootstrap) as wire:
            create_topic(wire, "orders", 1)
            create_topic(wire, "late", 30)
            acked = {produce(wire, "orders", f"{number}".encode())[1]: f"{number}".encode() for number in range(20)}
            crowd = flood(broker.bootstrap, 3 * HANDLES)
            assert len(crowd) > HANDLES
            for number in range(60):
                value = f"{number}-".encode().ljust(20_000, b".")
                code, offset = produce(wire, "orders", value)
                assert code == 0
                acked[offset] = value
            # Each of these needs a file of its own, so some may be refused.
            outcomes = {produce(wire, "late", b"x", partition=partition)[0] for partition in range(30)}
            assert outcomes <= {0, ErrorCode.KAFKA_STORAGE_ERROR}
            for one in crowd:
                one.close()
        with until_served(broker.bootstrap) as wire:
            assert read_all(wire, "orders") == acked
            assert produce(wire, "orders", b"after")[0] == 0
            assert {produce(wire, "late", b"x", partition=partition)[0] for partition in range(30)} == {0}
        assert broker.terminate() == 0


def test_readers_that_do_not_read_cost_neither_memory_nor_the_others(tmp_path: Path) -> None:
    with limited_broker(tmp_path / "data", f"--data={DATA_BYTES_MAX}") as broker, connect(broker.bootstrap) as wire:
        create_topic(wire, "orders", 1)
        acked = {}
        for number in range(40):
            value = f"{number}-".encode().ljust(RECORD, b".")
            code, offset = produce(wire, "orders", value)
            assert code == 0
            acked[offset] = value
        sleepers = [connect(broker.bootstrap) for _ in range(READERS)]
        for sleeper in sleepers:
            for _ in range(PIPELINED):
                sleeper.send(fetch_request("orders", 0, max_bytes=32 << 20), FETCH_VERSION)
        took_ms = []
        for number in range(100):
            began = time.monotonic()
            code, offset = produce(wire, "orders", b"%d" % number)
            took_ms.append((time.monotonic() - began) * 1000)
            assert code == 0
            acked[offset] = b"%d" % number
        print(f"p99 of a good client {sorted(took_ms)[98]:.1f} ms, peak memory {peak_mib(broker.pid)} MiB")
        assert sorted(took_ms)[98] < SLOWEST_MS
        assert read_all(wire, "orders") == acked
        assert peak_mib(broker.pid) < DATA_BYTES_MAX >> 20
        for sleeper in sleepers:
            sleeper.socket.close()
        assert broker.terminate() == 0


def peak_mib(pid: int) -> int:
    """The most memory the process had, without the pages of files that it maps."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith(("VmHWM", "Rss"))}
    return (int(fields["VmHWM"]) - int(fields["RssFile"])) >> 10


def test_producers_that_do_not_read_their_answers_are_bounded(tmp_path: Path) -> None:
    with limited_broker(tmp_path / "data", f"--data={DATA_BYTES_MAX}") as broker, connect(broker.bootstrap) as wire:
        create_topic(wire, "orders", 1)
        deaf = connect(broker.bootstrap)
        deaf.socket.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 2000:
                deaf.send(produce_request("orders", b"x" * 1000, acks=1), 9)
                sent += 1
        assert sent > 100
        assert produce(wire, "orders", b"good")[0] == 0
        assert peak_mib(broker.pid) < DATA_BYTES_MAX >> 20
        deaf.socket.close()
        assert broker.terminate() == 0
