"""Looking into logs without Arrow: timestamps of offsets, rows of a range, a few records appended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.fresh import fresh

from lowwater import Admin, NewTopic
from lowwater.client.appending import append
from lowwater.client.errors import OffsetOutOfRangeError, UnknownTopicError
from lowwater.client.read_rows import read_rows
from lowwater.client.stamps import Place, Stamp, stamps
from lowwater.testing import Broker
from lowwater.types import TopicPartition

STAMP = 1_700_000_000_000
LIMIT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap, {"topic.metadata.propagation.max.ms": 500}) as found:
        yield found


def topic(admin: Admin, partitions: int = 1, **config: str) -> str:
    name = fresh("looked-at")
    admin.create_topics([NewTopic(name, partitions, config=config)]).checked()
    return name


def write(broker: Broker, name: str, count: int, size: int = 10, partition: int = 0, **config: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 100, **config})
    for number in range(count):
        producer.produce(name, bytes([number % 251]) * size, partition=partition, timestamp=STAMP + number)
    assert producer.flush(LIMIT_S) == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_offset_has_the_time_of_its_own_record(broker: Broker, admin: Admin, codec: str) -> None:
    one = TopicPartition(topic(admin), 0)
    write(broker, one.topic, 500, **{"compression.type": codec})
    places = [Place(one, offset) for offset in range(501)]
    found = admin._run(stamps(admin._cluster, places)).checked()
    assert [found[place] for place in places[:-1]] == [Stamp(offset, STAMP + offset) for offset in range(500)]
    assert found[places[-1]] is None


def test_offsets_that_lie_close_together_share_a_fetch(broker: Broker, admin: Admin) -> None:
    name = topic(admin, 3)
    for partition in range(3):
        write(broker, name, 100, partition=partition)
    before = broker.requests().get("Fetch", 0)
    places = [Place(TopicPartition(name, each), offset) for each in range(3) for offset in (0, 50, 99)]
    assert len(admin._run(stamps(admin._cluster, places))) == 9
    assert broker.requests()["Fetch"] - before == 1


def test_batches_that_are_larger_than_a_first_look_are_looked_into(broker: Broker, admin: Admin) -> None:
    name = topic(admin, 4)
    for partition in range(4):
        write(broker, name, 8, size=100_000, partition=partition, **{"batch.size": 900_000})
    places = [Place(TopicPartition(name, each), 7) for each in range(4)]
    found = admin._run(stamps(admin._cluster, places)).checked()
    assert {stamp.timestamp_ms for stamp in found.values() if stamp is not None} == {STAMP + 7}
    assert len(found) == 4


def test_what_is_wrong_with_one_place_does_not_keep_the_others_from_an_answer(broker: Broker, admin: Admin) -> None:
    one = TopicPartition(topic(admin), 0)
    write(broker, one.topic, 10)
    admin.delete_records({one: 4}).checked()
    aged, good, gone = Place(one, 2), Place(one, 5), Place(TopicPartition("not-there", 0), 0)
    found = admin._run(stamps(admin._cluster, [aged, good, gone]))
    assert found[good] == Stamp(5, STAMP + 5)
    assert isinstance(found.failed[aged], OffsetOutOfRangeError)
    assert isinstance(found.failed[gone], UnknownTopicError)


def test_rows_of_a_range_come_as_they_were_written(broker: Broker, admin: Admin) -> None:
    name = topic(admin, 2)
    for partition in range(2):
        write(broker, name, 300, size=20_000, partition=partition)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    found = admin._run(read_rows(admin._cluster, {first: (17, 290), second: (299, 1000)})).checked()
    assert [row.offset for row in found[first]] == list(range(17, 290))
    assert found[first][3].value == bytes([20]) * 20_000
    assert [row.offset for row in found[second]] == [299]
    few = admin._run(read_rows(admin._cluster, {first: (0, 300)}, rows_max=5)).checked()
    assert [row.offset for row in few[first]] == [0, 1, 2, 3, 4]


def test_rows_that_cannot_be_read_are_an_error_of_their_partition(broker: Broker, admin: Admin) -> None:
    one = TopicPartition(topic(admin), 0)
    write(broker, one.topic, 3)
    found = admin._run(read_rows(admin._cluster, {one: (0, 3), TopicPartition("not-there", 0): (0, 1)}))
    assert len(found[one]) == 3
    assert list(found.failed) == [TopicPartition("not-there", 0)]


def test_records_that_are_appended_are_there(admin: Admin) -> None:
    one = TopicPartition(topic(admin), 0)
    assert admin._run(append(admin._cluster, one, [(b"k", b"a"), (b"k", b"b")], STAMP)) == 0
    assert admin._run(append(admin._cluster, one, [(b"k", b"c")], STAMP + 1)) == 2
    rows = admin._run(read_rows(admin._cluster, {one: (0, 10)})).checked()[one]
    assert [(row.offset, row.timestamp_ms, row.key, row.value) for row in rows] == [
        (0, STAMP, b"k", b"a"),
        (1, STAMP, b"k", b"b"),
        (2, STAMP + 1, b"k", b"c"),
    ]
    with pytest.raises(UnknownTopicError):
        admin._run(append(admin._cluster, TopicPartition("not-there", 0), [(b"k", b"v")], STAMP))
