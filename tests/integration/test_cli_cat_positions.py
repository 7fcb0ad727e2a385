"""Where `lowwater cat` starts, and what it leaves behind: with --order as without, and with -Q."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner
from tests.fresh import fresh

from lowwater import Admin, TopicPartition
from lowwater.cli.cat.command import command
from lowwater.client.blocking import BlockingDriver
from lowwater.positions.position import Today
from lowwater.testing import Broker
from lowwater.wire.records import Record

ORDERS = [(), ("--order", "timestamp"), ("--order", "partition")]
FEW0 = TopicPartition("few", 0)
FAR_EAST = "Etc/GMT-14"


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.fill("few", next=5, generate=lambda offset: Record(offset, 10 * offset, b"k", b"%d" % offset))
        running.fill("pair", 0, next=2, generate=lambda offset: Record(offset, 10 * offset, b"k", b"%d" % offset))
        running.fill("pair", 1, next=0)
        yield running


def cat(broker: Broker, *arguments: str) -> Done:
    done = CliRunner().invoke(command, ["-F", "none", "-b", broker.bootstrap, *arguments], prog_name="lowwater cat")
    return Done(done.exit_code, done.stdout, done.stderr)


def committed(broker: Broker, group: str) -> dict[TopicPartition, int]:
    with Admin(broker.bootstrap) as admin:
        return {one: each.offset for one, each in admin.group_offsets([group])[group].items()}


def commit(broker: Broker, group: str, offset: int) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.alter_group_offsets(group, {FEW0: offset}).checked()


# -- groups


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("setting", [(), ("-X", "enable.auto.commit=true")])
def test_reading_from_where_a_group_is_leaves_it_there(
    broker: Broker, order: tuple[str, ...], setting: tuple[str, ...]
) -> None:
    commit(broker, "kept", 2)
    line = ("-C", "-t", "few", "-o", "stored", "-X", "group.id=kept", *setting, "-eq", *order)
    assert cat(broker, *line) == Done(0, "2\n3\n4\n", "")
    assert committed(broker, "kept") == {FEW0: 2}


@pytest.mark.parametrize("order", ORDERS)
def test_a_topic_that_is_asked_for_from_its_beginning_is_read_from_there_whatever_the_group_has_read(
    broker: Broker, order: tuple[str, ...]
) -> None:
    commit(broker, "far", 4)
    line = ("-C", "-t", "few", "-t", "pair", "-o", "few=earliest,pair=stored|latest", "-X", "group.id=far", "-eq")
    assert cat(broker, *line, *order) == Done(0, "0\n1\n2\n3\n4\n", "")


@pytest.mark.parametrize("order", ORDERS)
def test_where_nothing_is_stored_auto_offset_reset_decides(broker: Broker, order: tuple[str, ...]) -> None:
    line = ("-C", "-t", "few", "-o", "stored", "-X", "group.id=nobody", "-eq", *order)
    assert cat(broker, *line) == Done(0, "", "")
    assert cat(broker, *line, "-X", "auto.offset.reset=earliest").out == "0\n1\n2\n3\n4\n"


@pytest.mark.parametrize("order", ORDERS)
def test_stored_needs_a_group(broker: Broker, order: tuple[str, ...]) -> None:
    done = cat(broker, "-C", "-t", "few", "-o", "stored", "-eq", *order)
    assert done.code == 1
    assert "-X group.id=" in done.err


# -- zones


@pytest.mark.parametrize("order", ORDERS)
def test_today_begins_at_midnight_of_the_zone_that_is_given(broker: Broker, order: tuple[str, ...]) -> None:
    midnight_ms = Today(ZoneInfo(FAR_EAST)).timestamp(time.time_ns() // 1_000_000)
    days = fresh("days")
    broker.fill(days, next=2, generate=lambda at: Record(at, midnight_ms - 1 + at, None, b"%d" % at))
    assert cat(broker, "-C", "-t", days, "-o", "today", "--zone", FAR_EAST, "-eq", *order) == Done(0, "1\n", "")


# -- ends


@pytest.mark.parametrize("order", ORDERS)
def test_the_end_of_each_partition_is_told(broker: Broker, order: tuple[str, ...]) -> None:
    done = cat(broker, "-C", "-t", "pair", "-e", *order)
    assert done.out == "0\n1\n"
    *first, last = done.err.splitlines()
    assert sorted([*first, last.removesuffix(": exiting")]) == [
        "% Reached end of topic pair [0] at offset 2",
        "% Reached end of topic pair [1] at offset 0",
    ]
    assert last.endswith(": exiting")


@pytest.mark.parametrize("order", ORDERS)
def test_no_end_is_told_when_enough_is_printed_before(broker: Broker, order: tuple[str, ...]) -> None:
    assert cat(broker, "-C", "-t", "few", "-e", "-c5", *order) == Done(0, "0\n1\n2\n3\n4\n", "")


# -- questions


def test_where_positions_lead_is_told_by_one_request(broker: Broker) -> None:
    before = broker.requests()["ListOffsets"]
    done = cat(broker, "-Q", "-t", "few:0:earliest", "-t", "pair:0:-1h", "-t", "pair:1:latest")
    assert done == Done(0, "few [0] offset 0\npair [0] offset 2\npair [1] offset 0\n", "")
    assert broker.requests()["ListOffsets"] - before == 2  # no record of pair is that young: its end


def test_where_a_group_is_is_told(broker: Broker) -> None:
    commit(broker, "told", 3)
    line = ("-Q", "-t", "few:0:stored", "-t", "pair:0:stored|earliest")
    assert cat(broker, *line, "-X", "group.id=told") == Done(0, "few [0] offset 3\npair [0] offset 0\n", "")
    assert "-X group.id=" in cat(broker, *line).err


def test_all_questions_have_one_now(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(1)
    monkeypatch.setattr(BlockingDriver, "now_ms", lambda _: next(hours) * 3_600_000)
    broker.fill("hourly", next=9, generate=lambda at: Record(at, at * 3_600_000, None, b""))
    done = cat(broker, "-Q", "-t", "hourly:0:-0s", "-t", "hourly:0:-0s", "-t", "hourly:0:-0s")
    assert len(set(done.out.splitlines())) == 1
