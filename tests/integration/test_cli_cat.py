"""`lowwater cat` as a process: pipes, signals, records as they come, and what it needs installed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lowwater.testing import Broker
from lowwater.wire.records import Record

TIMEOUT_S = 100
CAT = [sys.executable, "-m", "lowwater.cli.main", "cat", "-F", "none", "-m60"]
WITHOUT_EXTRA = """
import sys
sys.modules.update(dict.fromkeys(("numpy", "numba", "pyarrow", "llvmlite")))
from lowwater.cli.main import main
main()
"""
ROWS = 30_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.fill("many", next=ROWS, generate=lambda offset: Record(offset, offset, None, b"%099d" % offset))
        running.fill("few", next=3, generate=lambda offset: Record(offset, offset, b"k", b"%d" % offset))
        yield running


def run(*arguments: str, stdin: bytes = b"", command: list[str] = CAT) -> tuple[int, bytes, bytes]:
    done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT_S)
    return done.returncode, done.stdout, done.stderr


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*CAT, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_reader_that_has_seen_enough_ends_it_quietly(broker: Broker) -> None:
    with started("-C", "-b", broker.bootstrap, "-t", "many") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"%099d\n" % 0
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("mode", [["-C", "-t", "few"], ["-G", "interrupted", "few", "-o", "beginning"]])
def test_a_signal_ends_it_with_0(broker: Broker, mode: list[str], number: signal.Signals) -> None:
    with started("-b", broker.bootstrap, *mode, "-q") as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
        process.send_signal(number)
        rest, err = process.communicate(timeout=TIMEOUT_S)
        assert (rest, err, process.returncode) == (b"", b"", 0)


def test_an_interrupted_member_has_committed_what_it_printed(broker: Broker) -> None:
    line = ("-b", broker.bootstrap, "-G", "careful", "few", "-q", "-X", "auto.offset.reset=earliest")
    with started(*line) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 0
    assert run(*line, "-e") == (0, b"", b"")


def test_records_are_printed_as_they_come(broker: Broker) -> None:
    broker.fill("live", next=1, generate=lambda offset: Record(offset, offset, None, b"old"))
    with started("-C", "-b", broker.bootstrap, "-t", "live", "-q") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"old\n"
        assert run("-P", "-b", broker.bootstrap, "-t", "live", stdin=b"new") == (0, b"", b"")
        assert process.stdout.readline() == b"new\n"


def test_an_interrupted_transaction_is_aborted(broker: Broker) -> None:
    line = ("-P", "-b", broker.bootstrap, "-t", "half", "-X", "transactional.id=half")
    with subprocess.Popen([*CAT, *line], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"never\n")
        process.stdin.flush()
        assert process.stderr.readline() == b"% Using transactional producer\n"
        everything = ("-X", "isolation.level=read_uncommitted")
        assert wait_for_record(broker, "half", *everything) == b"never\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == b"% Aborting transaction due to termination signal\n"
        assert process.wait(TIMEOUT_S) == 0
    assert run("-C", "-b", broker.bootstrap, "-t", "half", "-eq") == (0, b"", b"")


def wait_for_record(broker: Broker, topic: str, *arguments: str) -> bytes:
    """The first one, of a topic that may not be there yet."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        code, out, _ = run("-C", "-b", broker.bootstrap, "-t", topic, "-c1", *arguments)
        if code == 0:
            return out
    raise TimeoutError(topic)


@pytest.mark.parametrize("mode", [["-C", "-t"], ["-G", "group"]])
def test_a_topic_that_is_not_there_is_told_with_one_that_sounds_alike(broker: Broker, mode: list[str]) -> None:
    code, out, err = run("-b", broker.bootstrap, "-e", *mode, "mny")
    first, second = err.decode().splitlines()
    assert (code, out, second) == (1, b"", "% did you mean many?")
    assert first.startswith("% ERROR: Topic mny error: ")
    assert first.endswith("Broker: Unknown topic or partition")


def test_what_goes_in_comes_out(broker: Broker) -> None:
    stdin = b"".join(b"%d:%s\n" % (number, b"x" * (number % 100)) for number in range(5_000))
    told = b"% 5000 messages delivered to echo [0], offsets 0 to 4999\n"
    assert run("-P", "-b", broker.bootstrap, "-t", "echo", "-K:", "-z", "lz4", "-v", stdin=stdin) == (0, b"", told)
    assert run("-C", "-b", broker.bootstrap, "-t", "echo", "-K:", "-eq") == (0, stdin, b"")


def test_reading_needs_no_extra(broker: Broker) -> None:
    command = [sys.executable, "-c", WITHOUT_EXTRA, "cat", "-F", "none"]
    line = ("-C", "-b", broker.bootstrap, "-t", "few", "-e", "-J")
    assert run(*line, command=command) == run(*line)
    assert (
        run("-b", broker.bootstrap, "-G", "plain", "few", "-eq", "-o", "beginning", command=command)[1] == b"0\n1\n2\n"
    )


def test_producing_without_the_extra_says_what_to_install(broker: Broker) -> None:
    command = [sys.executable, "-c", WITHOUT_EXTRA, "cat", "-F", "none"]
    code, out, err = run("-P", "-b", broker.bootstrap, "-t", "few", stdin=b"x", command=command)
    assert (code, out) == (1, b"")
    assert b"pip install 'lowwater[reader]'" in err


def test_a_broker_that_is_not_there_is_told_soon() -> None:
    for mode in (["-C", "-t", "few"], ["-P", "-t", "few"]):
        code, out, err = run("-b", "127.0.0.1:1", *mode, "-m1")
        assert (code, out) == (1, b"")
        assert b"% ERROR: 127.0.0.1:1 refuses connections" in err


def test_partitions_are_printed_in_the_order_of_time_when_asked_for(broker: Broker) -> None:
    for partition in range(2):
        times = {offset: 10 * offset + 5 * partition for offset in range(3)}
        broker.fill(
            "timed", partition, next=3, generate=lambda at, times=times: Record(at, times[at], None, b"%d" % times[at])
        )
    line = ("-C", "-b", broker.bootstrap, "-t", "timed", "-eq", "-D,", "--order", "timestamp")
    assert run(*line) == (0, b"0,5,10,15,20,25,", b"")
    assert run(*line, "-c1", "-o", "s@10", "-p1") == (0, b"15,", b"")
