"""An assignor of a package that is installed beside the broker, asked for by real consumers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

PACKAGE = Path(__file__).resolve().parents[1] / "packages" / "active_standby"
TIMEOUT_S = 60
PARTITIONS = 4


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the example package in it, as pip installs it, and one that cannot be imported."""
    where = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")
    for file in PACKAGE.glob("*.*"):
        (source / file.name).write_bytes(file.read_bytes())
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(where), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    _install_broken(where)
    return where


def _install_broken(where: Path) -> None:
    (where / "broken_assignor.py").write_text("import a_module_that_nobody_has\n")
    information = where / "broken_assignor-2.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-assignor\nVersion: 2.1\n")
    (information / "entry_points.txt").write_text("[lowwater.assignors]\nbroken = broken_assignor:Broken\n")


@pytest.fixture
def bootstrap(site: Path, tmp_path: Path) -> Iterator[str]:
    """A broker that has the package; its log is at `tmp_path/log`."""
    settings = {
        "group.consumer.assignors": "uniform,active-standby,broken",
        "group.consumer.heartbeat.interval.ms": "100",
        "group.consumer.min.heartbeat.interval.ms": "100",
    }
    command = [sys.executable, "-m", "lowwater.cli.main", "broker", "--no-http", "--port", "0"]
    command += ["--data-dir", str(tmp_path / "data")]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    with (tmp_path / "log").open("w") as log:
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        try:
            assert broker.stdout is not None
            address = broker.stdout.readline().split("kafka=")[1].split()[0]
            admin = AdminClient({"bootstrap.servers": address})
            admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(TIMEOUT_S)
            yield address
        finally:
            broker.terminate()
            broker.communicate(timeout=TIMEOUT_S)


class Member(Consumer):
    """A consumer of the new protocol that asks for an assignor."""

    def __init__(self, bootstrap: str, assignor: str) -> None:
        super().__init__(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"group-{assignor}",
                "group.protocol": "consumer",
                "group.remote.assignor": assignor,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self.subscribe(["t"])

    def has(self) -> int:
        """How many partitions it was given."""
        self.poll(0.05)
        return len(self.assignment())


def await_loads(members: Sequence[Member], wanted: list[int]) -> None:
    """Poll until the members have that many partitions each."""
    deadline = time.monotonic() + TIMEOUT_S
    while (found := [member.has() for member in members]) != wanted:
        assert time.monotonic() < deadline, f"{found}, not {wanted}"


def test_consumers_are_assigned_by_the_package_they_name(bootstrap: str) -> None:
    first = Member(bootstrap, "active-standby")
    await_loads([first], [PARTITIONS])
    with contextlib.closing(Member(bootstrap, "active-standby")) as second:
        for _ in range(20):
            assert [first.has(), second.has()] == [PARTITIONS, 0]
        first.close()
        await_loads([second], [PARTITIONS])


def test_a_package_that_cannot_be_imported_stops_neither_the_broker_nor_other_groups(
    bootstrap: str, tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        broken = Member(bootstrap, "broken")
        stack.callback(broken.close)
        deadline = time.monotonic() + TIMEOUT_S
        complaint = "assignor 'broken' (broken_assignor:Broken) of broken-assignor 2.1 cannot be loaded: "
        while complaint not in (tmp_path / "log").read_text():
            assert broken.has() == 0
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        members = [Member(bootstrap, "uniform") for _ in range(2)]
        for member in members:
            stack.callback(member.close)
        await_loads(members, [PARTITIONS // 2] * 2)
