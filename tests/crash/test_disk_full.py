"""Suite 8: a real file system runs full under a real broker; it says so, loses nothing, and goes on when freed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.raw import Wire
from tests.crash.broker_process import BrokerProcess
from tests.crash.plain_client import connect, create_topic, produce, read_all

from lowwater.errors import ErrorCode

SIZE = "24m"
RECORD = 200_000
TRIES = 400


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_refuses_loses_nothing_and_serves_again_when_freed(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(8 << 20))
    broker = BrokerProcess(small_disk / "data", {"log.segment.bytes": str(4 << 20)})
    broker.start()
    try:
        with connect(broker.bootstrap) as wire:
            create_topic(wire, "orders", 2)
            acked = fill(wire)
            assert len(acked[0]) > 10
            refusals = {produce(wire, "orders", b"x" * RECORD, partition=number % 2)[0] for number in range(6)}
            assert refusals == {ErrorCode.KAFKA_STORAGE_ERROR}
            assert {number: read_all(wire, "orders", number) for number in acked} == acked
            ballast.unlink()
            for number in acked:
                code, offset = produce(wire, "orders", b"after", partition=number)
                assert code == 0
                acked[number][offset] = b"after"
            assert {number: read_all(wire, "orders", number) for number in acked} == acked
        broker.kill()
        broker.start()
        with connect(broker.bootstrap) as wire:
            assert {number: read_all(wire, "orders", number) for number in acked} == acked
            assert produce(wire, "orders", b"and on")[0] == 0
        assert broker.terminate() == 0
    finally:
        if broker.is_running():
            broker.kill()


def fill(wire: Wire) -> dict[int, dict[int, bytes | None]]:
    """Send to two partitions until both are refused; what was acked, by offset."""
    acked: dict[int, dict[int, bytes | None]] = {0: {}, 1: {}}
    refused: set[int] = set()
    for number in range(TRIES):
        partition = number % 2
        value = f"{number}-".encode().ljust(RECORD, b".")
        code, offset = produce(wire, "orders", value, partition=partition)
        if code == 0:
            acked[partition][offset] = value
            continue
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        refused.add(partition)
        if len(refused) == 2:
            return acked
    raise AssertionError("the disk did not fill up")


def test_a_broker_killed_on_a_full_disk_starts_again_once_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(16 << 20))
    broker = BrokerProcess(small_disk / "data")
    broker.start()
    try:
        with connect(broker.bootstrap) as wire:
            create_topic(wire, "orders", 2)
            acked = fill(wire)
        broker.kill()
        ballast.unlink()
        broker.start()
        with connect(broker.bootstrap) as wire:
            assert {number: read_all(wire, "orders", number) for number in acked} == acked
            assert produce(wire, "orders", b"again")[0] == 0
    finally:
        if broker.is_running():
            broker.kill()
