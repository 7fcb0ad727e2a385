"""Where `lowwater cat` prints something else than kcat: docs/differences.md names every one of these.

Each test shows both, so that a kcat that is mended is noticed.
"""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.conformance.cats.runs import QUICKLY, Done, cat, kcat
from tests.conformance.cats.shelf import Shelf, stocked
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

from lowwater.testing import Broker

pytestmark = [pytest.mark.peer("kcat"), pytest.mark.peer("confluent")]

LITTLE = struct.pack("<hi", 258, 3)


@pytest.fixture(scope="module")
def shelf(broker: UnderTest, new_topic: NewTopic) -> Shelf:
    return stocked(broker.bootstrap, new_topic)


@pytest.fixture(scope="module")
def small(broker: UnderTest, new_topic: NewTopic) -> str:
    """Two records: one with an empty key and value, and packed numbers with a NUL in a header."""
    from confluent_kafka import Producer

    topic = new_topic("small")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    producer.produce(topic, b"", key=b"")
    producer.produce(topic, LITTLE, key=b"k", headers=[("h", b"a\0b")])
    assert producer.flush(30) == 0
    return topic


def both(shelf: Shelf, topic: str, *arguments: str) -> tuple[Done, Done]:
    line = ("-C", "-b", shelf.bootstrap, "-t", topic, *arguments)
    return cat(*line), kcat(*line)


def test_z_prints_null_for_null_and_not_for_empty(shelf: Shelf, small: str) -> None:
    mine, theirs = both(shelf, small, "-eq", "-Z", "-c1", "-K:")
    assert mine.out == b":\n"
    assert theirs.out == b"NULL:NULL\n"


def test_o_prints_offsets(shelf: Shelf) -> None:
    mine, theirs = both(shelf, shelf.mixed, "-O", "-K:", "-c2")
    assert mine.out == b"0:k1:v1\n1::no key\n"
    assert theirs.out == b"k1:v1\n:no key\n"


def test_every_byte_can_be_written_in_a_format(shelf: Shelf) -> None:
    mine, theirs = both(shelf, shelf.mixed, "-c1", "-f", r"%s\xfe\x1ffoo")
    assert mine.out == b"v1\xfe\x1ffoo"
    assert theirs.out == b"v1fe\xffoo"


def test_nul_is_a_delimiter(shelf: Shelf) -> None:
    mine, theirs = both(shelf, shelf.mixed, "-c2", "-D", r"\x00")
    assert mine.out == b"v1\0no key\0"
    assert theirs.out == b"v1no key"


def test_headers_are_printed_whole(shelf: Shelf, small: str) -> None:
    mine, theirs = both(shelf, small, "-o1", "-c1", "-f", "%h")
    assert mine.out == b"h=a\0b"
    assert theirs.out == b"h=a"


def test_little_endian_numbers_are_unpacked(shelf: Shelf, small: str) -> None:
    mine, theirs = both(shelf, small, "-o1", "-c1", "-s", "value=<h i")
    assert mine.out == b"258 3\n"
    assert theirs.out == b"513 50331648\n"


def test_of_a_record_that_cannot_be_unpacked_nothing_is_printed(shelf: Shelf, small: str) -> None:
    mine, theirs = both(shelf, small, "-o1", "-c1", "-E", "-f", "[%s]", "-s", "value=h$")
    assert mine.out == b""
    assert theirs.out == b"[513"
    assert mine.err == theirs.err


@pytest.mark.parametrize("start", ["junk", "1.5", "-", "s@x"])
def test_a_start_that_cannot_be_read_is_not_the_beginning(shelf: Shelf, start: str) -> None:
    mine, theirs = both(shelf, shelf.mixed, "-eq", "-o", start)
    assert (mine.code, mine.out) == (1, b"")
    assert theirs.code == 0
    assert theirs.out


@pytest.mark.parametrize("line", ["-p x", "-c1x"])
def test_numbers_that_cannot_be_read_are_not_taken_for_others(shelf: Shelf, line: str) -> None:
    mine, theirs = both(shelf, shelf.mixed, "-eq", *line.split(" "))
    assert (mine.code, mine.out) == (1, b"")
    assert theirs.code == 0
    assert theirs.out


def test_start_positions_are_more_than_kcats(shelf: Shelf) -> None:
    line = ("-C", "-b", shelf.bootstrap, "-t", shelf.spread, "-eq", "-f", r"%p %o\n", "-o")
    assert cat(*line, f"{shelf.spread}[0]=1,latest").lines == [b"0 1", b"0 2"]
    assert cat(*line, "@1970-01-01T00:00:04.001Z").lines == [b"0 2", b"1 2"]
    assert cat(*line, "@1970-01-01", "--zone", "UTC", "-p1").lines == [b"1 0", b"1 1", b"1 2"]
    assert cat(*line, "-1h|earliest", "-X", "group.id=none").lines == [b"0 0", b"0 1", b"0 2", b"1 0", b"1 1", b"1 2"]


def test_a_start_for_a_partition_that_is_missing_is_not_the_beginning_of_the_others(shelf: Shelf) -> None:
    done = cat("-C", "-b", shelf.bootstrap, "-t", shelf.mixed, "-e", "-o", f"{shelf.mixed}[9]=3")
    complaint = f"% ERROR: Topic {shelf.mixed} (with partitions 0..0): partition 9 does not exist"
    assert done == (1, b"", (complaint,))


def test_a_group_may_start_and_stop_by_time(shelf: Shelf) -> None:
    line = ("-b", shelf.bootstrap, "-G", "by-time", shelf.spread, "-e", "-o", "s@1001", "-o", "e@4001")
    assert cat(*line, "-f", r"%p %o\n").lines == [b"0 1", b"1 0", b"1 1"]
    assert kcat(*line).code == 1


def test_a_stop_ends_partitions_that_never_get_there(shelf: Shelf) -> None:
    line = ("-C", "-b", shelf.bootstrap, "-t", shelf.spread, "-o", "e@2001", "-f", r"%p %o\n")
    assert cat(*line)[:2] == (0, b"0 0\n1 0\n")
    with pytest.raises(subprocess.TimeoutExpired):
        kcat(*line, timeout_s=2)


def test_a_record_out_of_order_does_not_hide_those_behind_it(broker: UnderTest, new_topic: NewTopic) -> None:
    from confluent_kafka import Producer

    topic = new_topic("disordered")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for timestamp in (100, 300, 150, 400):
        producer.produce(topic, b"%d" % timestamp, timestamp=timestamp)
    assert producer.flush(30) == 0
    line = ("-C", "-b", broker.bootstrap, "-t", topic, "-o", "e@200")
    mine, theirs = cat(*line), kcat(*line)
    assert mine.out == b"100\n150\n"
    assert theirs.out == b"100\n"
    assert mine.err == theirs.err == (f"% Reached stop timestamp for topic {topic} [0] at offset 1: exiting",)


def test_a_start_before_the_end_is_not_before_the_beginning(broker: UnderTest, new_topic: NewTopic) -> None:
    from confluent_kafka import Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = new_topic("shortened")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for number in range(10):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    [deleted] = admin.delete_records([TopicPartition(topic, 0, 6)]).values()
    deleted.result(30)
    line = ("-C", "-b", broker.bootstrap, "-t", topic, "-eq", "-D,", "-o", "-5")
    assert cat(*line).out == b"6,7,8,9,"
    assert kcat(*line).out == b""


@pytest.mark.only_against("lowwater")
def test_an_end_that_compaction_has_emptied_is_an_end(own_broker: Callable[..., UnderTest]) -> None:
    inside = own_broker().process
    assert isinstance(inside, Broker)
    inside.fill("compacted", next=3)

    def empty_the_tail() -> None:
        log = inside.node.broker.partition("compacted", 0).log
        log.log_end = log.flushed_end = 8

    inside.call(empty_the_tail)
    line = ("-C", "-b", inside.bootstrap, "-t", "compacted", "-e", "-f", "%o,")
    assert cat(*line) == (0, b"0,1,2,", ("% Reached end of topic compacted [0] at offset 8: exiting",))
    with pytest.raises(subprocess.TimeoutExpired):
        kcat(*line, timeout_s=2)


def test_listing_and_asking_create_no_topic(broker: UnderTest, fresh_name: str) -> None:
    assert b"Unknown topic or partition" in cat("-L", "-b", broker.bootstrap, "-t", fresh_name).out
    assert cat("-Q", "-b", broker.bootstrap, "-t", f"{fresh_name}:0:0").code == 1
    assert f'"{fresh_name}"'.encode() not in cat("-L", "-b", broker.bootstrap).out


def test_a_partition_may_be_asked_for_twice(shelf: Shelf) -> None:
    line = ("-Q", "-b", shelf.bootstrap, "-t", f"{shelf.spread}:0:-2", "-t", f"{shelf.spread}:0:-1")
    assert cat(*line).out.decode() == f"{shelf.spread} [0] offset 0\n{shelf.spread} [0] offset 3\n"
    assert len(set(kcat(*line).out.splitlines())) == 1


def test_a_partition_that_is_missing_is_told_by_the_exit_code(shelf: Shelf) -> None:
    line = ("-Q", "-b", shelf.bootstrap, "-t", f"{shelf.spread}:0:0", "-t", "no-such-topic:0:77")
    mine, theirs = cat(*line), kcat(*line)
    assert mine.out.splitlines()[0] == b"no-such-topic [0] offset -1: Broker: Unknown topic or partition"
    assert theirs.out.splitlines()[0] == b"no-such-topic [0] offset 77: Broker: Unknown topic or partition"
    assert (mine.code, theirs.code) == (1, 0)


def test_offsets_are_asked_by_start_position_too(shelf: Shelf) -> None:
    query = f"{shelf.spread}:1:@1970-01-01T00:00:02.001Z"
    assert cat("-Q", "-b", shelf.bootstrap, "-t", query).out.decode() == f"{shelf.spread} [1] offset 1\n"


@pytest.mark.parametrize(("delimiter", "stdin"), [(r"\x00", b"a\0b"), (r"\r\n", b"a\r\nb\r\n")])
def test_input_is_cut_at_nul_and_at_carriage_returns(
    broker: UnderTest, new_topic: NewTopic, delimiter: str, stdin: bytes
) -> None:
    topic = new_topic("cut")
    assert cat("-P", "-b", broker.bootstrap, "-t", topic, "-D", delimiter, stdin=stdin).code == 0
    assert cat("-C", "-b", broker.bootstrap, "-t", topic, "-eq", "-D,").out == b"a,b,"


def test_input_is_sent_as_it_comes(broker: UnderTest, new_topic: NewTopic) -> None:
    """kcat waits for a kilobyte, or the end."""
    topic = new_topic("at-once")
    command = [sys.executable, "-m", "lowwater.cli.main", "cat", *QUICKLY, "-P", "-b", broker.bootstrap, "-t", topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert cat("-C", "-b", broker.bootstrap, "-t", topic, "-c1").out == b"one\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 0


def test_several_topics_are_read(shelf: Shelf) -> None:
    line = ("-C", "-b", shelf.bootstrap, "-t", shelf.spread, "-t", shelf.packed, "-eq", "-f", r"%t\n")
    mine, theirs = cat(*line), kcat(*line)
    assert {*mine.lines} == {shelf.spread.encode(), shelf.packed.encode()}
    assert {*theirs.lines} == {shelf.packed.encode()}
