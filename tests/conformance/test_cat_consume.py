"""-C: the same command lines through kcat and `lowwater cat` print the same, tell the same and end the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance.cats.runs import cat, kcat, problem
from tests.conformance.cats.shelf import Shelf, stocked
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

from lowwater.cli.cat import tap

pytestmark = [pytest.mark.peer("kcat"), pytest.mark.peer("confluent")]


@pytest.fixture(scope="module")
def shelf(broker: UnderTest, new_topic: NewTopic) -> Shelf:
    return stocked(broker.bootstrap, new_topic)


PRINTING = [
    "-e",
    "-eq",
    "-c2",
    "-ec0",
    "-e -c100",
    "-ueq",
    "-e -K:",
    r"-e -K \t -D \x41\n",
    "-eq -K %o, -D %%;",
    r"-eq -D \r",
    "-eJ",
    "-eJ -D;",
    r"-eJ -f x%s\n",
    "-eJ -f %s",
    r"-e -f %t|%p|%o|%T|%k|%K|%s|%S|%h|%%\n",
    "-e -f %R%s",
    r"-e -f \t\x41\065\q\\%s\n",
    r"-e -f %s\n -K: -D;",
    "-e -f x",
    "-e -X topic.auto.offset.reset=earliest",
    "-e -X check.crcs=true",
    "-Ee",
]


@pytest.mark.parametrize("line", PRINTING)
def test_records_are_printed_alike_one_by_one_and_by_columns(
    shelf: Shelf, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.mixed, *line.split(" "))
    theirs = kcat(*arguments)
    assert cat(*arguments) == theirs
    monkeypatch.setattr(tap, "MANY_ROWS", 0)
    assert cat(*arguments) == theirs


@pytest.mark.parametrize("line", ["-C -e -t {} -b {}", "-b{1} -t{0} -eC", "-t {} -C -qe -b {}", "-Cqec1 -b {1} -t {0}"])
def test_options_come_in_any_order_and_stick_together(shelf: Shelf, line: str) -> None:
    arguments = line.format(shelf.mixed, shelf.bootstrap).split(" ")
    assert cat(*arguments) == kcat(*arguments)


STARTS = [
    "beginning",
    "end",
    "0",
    "3",
    "9",
    "-1",
    "-3",
    "-100",
    "s@0",
    "s@10003",
    "s@99999999999",
    "e@10004",
    "e@99999999999",
]


@pytest.mark.parametrize("start", STARTS)
def test_reading_starts_and_stops_alike(shelf: Shelf, start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.mixed, "-o", start, "-e", "-f", r"%o %T\n")
    theirs = kcat(*arguments)
    assert cat(*arguments) == theirs
    monkeypatch.setattr(tap, "MANY_ROWS", 0)
    assert cat(*arguments) == theirs


def test_a_start_and_a_stop(shelf: Shelf) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.mixed, "-o", "s@10002", "-o", "e@10005", "-f", r"%o %T\n")
    assert cat(*arguments) == kcat(*arguments)


SPREAD = [
    "-e",
    "-ep0",
    "-ep 2",
    "-e -p -1",
    "-e -o -1",
    "-e -o s@2001",
    "-ep1 -o s@2001",
    "-e -o e@3001",
    "-ep0 -o 1",
    "-e -o end",
]


@pytest.mark.parametrize("line", SPREAD)
def test_partitions_are_read_alike_in_whatever_turn(shelf: Shelf, line: str) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.spread, "-f", r"%p %o %s %T\n", *line.split(" "))
    mine, theirs = cat(*arguments), kcat(*arguments)
    assert (mine.code, mine.lines) == (theirs.code, theirs.lines)
    # Which end is the last differs from run to run.
    assert [each.removesuffix(": exiting") for each in mine.err] == [
        each.removesuffix(": exiting") for each in theirs.err
    ]
    assert sum(each.endswith(": exiting") for each in mine.err) == 1


def test_an_empty_topic_ends_at_once(shelf: Shelf) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.empty, "-e")
    assert cat(*arguments) == kcat(*arguments)


PACKED = [
    "-s value=bBhHiIqQcs -c1",
    "-s b",
    "-s key=h -K:",
    "-s value=h",
    "-s value=i",
    "-Es value=i",
    "-s h -J",
]


@pytest.mark.parametrize("line", PACKED)
def test_numbers_are_unpacked_alike(shelf: Shelf, line: str) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.packed, "-e", *line.split(" "))
    assert cat(*arguments) == kcat(*arguments)


def test_an_offset_outside_the_log_is_moved_to_its_end(shelf: Shelf) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.mixed, "-e", "-o", "100")
    mine, theirs = cat(*arguments), kcat(*arguments)
    assert mine[:2] == theirs[:2] == (0, b"")
    # librdkafka says so in its log, which is not compared.
    assert mine.err[:-1] == theirs.err
    assert (
        mine.err[-1]
        == f"% {shelf.mixed} [0]: offset 100 is not within [0, 9], reading goes on at 9 (auto.offset.reset)"
    )


def test_an_offset_outside_the_log_is_an_error_when_asked_for(shelf: Shelf) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.mixed, "-e", "-o", "100", "-X", "auto.offset.reset=error")
    mine, theirs = cat(*arguments), kcat(*arguments)
    assert mine[:2] == theirs[:2] == (1, b"")
    assert f"Topic {shelf.mixed} [0] error: " in problem(mine)
    assert f"Topic {shelf.mixed} [0] error: " in problem(theirs)


@pytest.mark.parametrize("line", ["-t no-such-topic -e", "-t no!topic -e", "-t {} -p 7 -e"])
def test_what_is_not_there_is_told_alike(shelf: Shelf, line: str) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, *line.format(shelf.spread).split(" "))
    assert cat(*arguments) == kcat(*arguments)


WRONG = ["-f %y", "-f a%", r"-D \xzz", "-s y", "-s value=", "extra"]


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_with_a_line_is_told_alike(shelf: Shelf, line: str) -> None:
    arguments = ("-C", "-b", shelf.bootstrap, "-t", shelf.mixed, *line.split(" "))
    mine, theirs = cat(*arguments), kcat(*arguments)
    assert mine[:2] == theirs[:2] == (1, b"")
    assert problem(mine) == problem(theirs) != ""


# Per topic, transactions one after the other: their records, and how they end.
TRANSACTIONS = {
    "committed": [([b"1", b"2"], "commit")],
    "aborted-at-the-end": [([b"1"], "commit"), ([b"2"], "abort")],
    "all-aborted": [([b"1"], "abort")],
    "open": [([b"1"], "commit"), ([b"2"], ""), ([b"3"], "commit")],
}


@pytest.fixture(scope="module")
def transactional(broker: UnderTest, new_topic: NewTopic) -> Iterator[dict[str, str]]:
    """Topics by what is at their end."""
    from confluent_kafka import Producer

    topics, open_ones = {}, []
    for name, transactions in TRANSACTIONS.items():
        topics[name] = new_topic(name)
        for number, (values, end) in enumerate(transactions):
            producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topics[name]}-{number}"})
            producer.init_transactions(60)
            producer.begin_transaction()
            for value in values:
                producer.produce(topics[name], value)
            assert producer.flush(60) == 0
            if end == "commit":
                producer.commit_transaction(60)
            elif end == "abort":
                producer.abort_transaction(60)
            else:
                open_ones.append(producer)
    yield topics
    for producer in open_ones:
        producer.abort_transaction(60)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("name", TRANSACTIONS)
def test_the_end_is_found_behind_transactions(
    shelf: Shelf, transactional: dict[str, str], name: str, isolation: str
) -> None:
    setting = f"isolation.level={isolation}"
    line = ("-C", "-b", shelf.bootstrap, "-t", transactional[name], "-e", "-X", setting, "-f", r"%o %s\n")
    assert cat(*line) == kcat(*line)
