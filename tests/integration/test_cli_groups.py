"""`lowwater groups` where it needs more than a command and a broker: a terminal, many groups, few requests."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import pytest
from confluent_kafka import Producer
from tests.conformance.command_line import lowwater, no_settings_of_the_user

from lowwater import Admin, NewTopic
from lowwater.client.admin import groups as group_listing
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.lag.journal import TOPIC as JOURNAL
from lowwater.testing import Broker
from lowwater.types import TopicPartition

__all__ = ["no_settings_of_the_user"]

LIMIT_S = 60
# The terminal has to be the program's own: else nobody tells it that the size has changed.
_RUN = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from lowwater.cli.main import main; main()"
_COMMANDS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Terminal:
    """A program in a terminal of a given size; what it draws is read until it shows what is waited for."""

    def __init__(self, columns: int, rows: int, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self._poll = select.poll()  # a test process may have more handles than select() can take
        self._poll.register(self._ours, select.POLLIN)
        self._size(theirs, columns, rows)
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _RUN, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        self._drawn = b""

    @staticmethod
    def _size(terminal: int, columns: int, rows: int) -> None:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(LIMIT_S)
        os.close(self._ours)

    def until(self, *expected: str) -> str:
        """The text drawn since the last wait, as soon as all of this was in it, in this order."""
        pattern = re.compile(".*?".join(map(re.escape, expected)), re.DOTALL)
        deadline = time.monotonic() + LIMIT_S
        while True:
            text = _COMMANDS.sub(b"\n", self._drawn).decode("utf-8", "replace")
            if pattern.search(text):
                self._drawn = b""
                return text
            left_s = deadline - time.monotonic()
            ready = self._poll.poll(max(left_s, 0) * 1000)
            assert ready, f"{expected} did not come; drawn was:\n{text[-3000:]}"
            with contextlib.suppress(OSError):  # how a terminal ends
                self._drawn += os.read(self._ours, 1 << 16)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """The kernel tells the program."""
        self._size(self._ours, columns, rows)

    def ended(self) -> int:
        drained = time.monotonic() + LIMIT_S
        while self._process.poll() is None and time.monotonic() < drained:
            ready = self._poll.poll(50)
            with contextlib.suppress(OSError):
                if ready:
                    os.read(self._ours, 1 << 16)
        return self._process.wait(LIMIT_S)


@pytest.fixture(scope="module")
def crowd() -> Iterator[Broker]:
    """Sixty groups, of which the n-th is n records behind."""
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("crowd", 1)]).checked()
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for _ in range(100):
            producer.produce("crowd", b"x", partition=0)
        assert producer.flush(LIMIT_S) == 0
        for number in range(60):
            admin.alter_group_offsets(f"group-{number:02}", {TopicPartition("crowd", 0): 100 - number}).checked()
        yield broker


def test_watch_shows_sorts_scrolls_follows_the_size_and_ends(crowd: Broker) -> None:
    with Terminal(100, 12, "groups", "watch", "-b", crowd.bootstrap, "--every", "1s") as terminal:
        terminal.until("60 groups, 1 to 8", "by status", "GROUP", "q quit")
        terminal.press("l")
        terminal.until("by lag", "group-59", "group-52")
        terminal.press("r")
        terminal.until("by lag, reversed", "group-00", "group-07")
        terminal.press("\x1b[6~")
        terminal.until("11 to 18", "group-10", "group-17")
        terminal.press("g")
        terminal.until("by group", "group-00", "group-07")
        terminal.press("p")
        terminal.until("60 partitions", "TOPIC", "crowd")
        terminal.press("p")
        terminal.until("60 groups")
        terminal.resize(60, 30)
        terminal.until("60 groups, 1 to 26", "group-00", "group-25")
        terminal.press("q")
        assert terminal.ended() == 0


def test_watch_is_live(crowd: Broker) -> None:
    with (
        Admin(crowd.bootstrap) as admin,
        Terminal(120, 20, "groups", "watch", "-b", crowd.bootstrap, "group-50", "--every", "1s") as terminal,
    ):
        terminal.until("group-50", "50")
        admin.alter_group_offsets("group-50", {TopicPartition("crowd", 0): 77}).checked()
        terminal.until("group-50", " 23 ")
        admin.alter_group_offsets("group-50", {TopicPartition("crowd", 0): 50}).checked()
        terminal.until("group-50", " 50 ")
        terminal.press("\x03")
        assert terminal.ended() in (0, 130)


def test_watch_needs_a_terminal(crowd: Broker) -> None:
    done = lowwater("groups", "watch", "-b", crowd.bootstrap)
    assert done.code == 2
    assert "--watch-for" in done.err


def test_sixty_groups_take_as_many_requests_as_one(crowd: Broker) -> None:
    before = crowd.requests()
    assert lowwater("groups", "lag", "-b", crowd.bootstrap).code in (0, 3)
    after = crowd.requests()
    counts = {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
    assert counts["OffsetFetch"] == 1
    assert counts["Fetch"] <= 3, counts
    assert counts["ListOffsets"] <= 4, counts
    assert sum(counts.values()) <= 20, counts


def test_all_groups_are_reset_and_each_is_undone(crowd: Broker) -> None:
    at = ("-b", crowd.bootstrap)
    wish = ("groups", "reset", "--all-groups", "--topic", "crowd", "--to", "earliest")
    assert lowwater(*wish, *at).out.count("→ 0") == 60
    assert lowwater(*wish, "--execute", *at).code == 0
    with Admin(crowd.bootstrap) as admin:
        one = TopicPartition("crowd", 0)
        names = [f"group-{number:02}" for number in range(60)]
        assert {each[one].offset for each in admin.group_offsets(names).checked().values()} == {0}
        assert lowwater("groups", "undo", *names, "--execute", *at).code == 0
        offsets = [each[one].offset for each in admin.group_offsets(names).checked().values()]
    assert offsets[:50] == [100 - number for number in range(50)]
    assert offsets[51:] == [100 - number for number in range(51, 60)]


def test_all_groups_of_which_some_are_not_known_are_not_all(crowd: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = group_listing.list_groups

    async def in_part(cluster: Cluster) -> Any:
        found = await whole(cluster)
        return replace(found, failed={7: ClientError("b:7 refuses connections")})

    monkeypatch.setattr(group_listing, "list_groups", in_part)
    reset = ("reset", "--all-groups", "--topic", "crowd", "--to", "earliest")
    for wish in (("export", "--all-groups"), reset, (*reset, "--export")):
        done = lowwater("groups", *wish, "-b", crowd.bootstrap)
        assert done.code == 1
        assert "broker 7: b:7 refuses connections" in done.err
        assert "these are not all groups" in done.err
        assert done.out.count("group-") == 60


def test_the_journal_of_changes_is_listed_only_with_the_topics_of_the_brokers_own() -> None:
    with Broker() as broker:
        broker.fill("orders", next=1)
        at = ("-b", broker.bootstrap)
        assert lowwater("groups", "reset", "one", "--topic", "orders", "--to", "latest", "--execute", *at).code == 0
        assert lowwater("topics", "list", "-q", *at).out == "orders\n"
        assert JOURNAL in lowwater("topics", "list", "-q", "--all", *at).out.splitlines()
        assert lowwater("topics", "list", "-q", JOURNAL, *at).out == f"{JOURNAL}\n"


def test_csv_is_exact_in_a_file_and_harmless_in_a_terminal() -> None:
    evil = "evil\x1b[2J"
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("t", 1)]).checked()
        for group in (evil, "good"):
            admin.alter_group_offsets(group, {TopicPartition("t", 0): 0}).checked()
        at = ("-b", broker.bootstrap)
        for wish in (("export", "--all-groups"), ("list", "--csv")):
            assert f"{evil}," in lowwater("groups", *wish, *at).out
            with Terminal(100, 20, "groups", *wish, *at) as terminal:
                terminal.until(r"evil\x1b[2J,")


def test_a_cluster_that_keeps_no_journal_changes_nothing_unless_told() -> None:
    with Broker(config={"auto.create.topics.enable": "false"}) as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("t", 1), NewTopic("__lowwater_offset_changes", 1)]).checked()
        admin.alter_configs({"__lowwater_offset_changes": {"max.message.bytes": "10"}}).checked()
        admin.alter_group_offsets("g", {TopicPartition("t", 0): 5}).checked()
        wish = ("groups", "reset", "g", "--topic", "t", "--to", "latest", "--execute", "-b", broker.bootstrap)
        done = lowwater(*wish)
        assert done.code == 1
        assert "the old offsets cannot be kept, so nothing was changed" in done.err
        assert admin.group_offsets(["g"])["g"][TopicPartition("t", 0)].offset == 5
        assert lowwater(*wish, "--no-undo").code == 0
        assert admin.group_offsets(["g"])["g"][TopicPartition("t", 0)].offset == 0
