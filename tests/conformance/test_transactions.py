"""Transactions as each client library runs them: what is committed is seen whole, what is aborted never."""

from __future__ import annotations

import random

import pytest
from tests.conformance.clients.base import ClientError
from tests.conformance.groups.stage import eventually
from tests.conformance.transactions.face import Can, MemberOf
from tests.conformance.transactions.fixtures import BrokerOf, set_transaction_version
from tests.conformance.transactions.kinds import KINDS, READERS, by, by_each
from tests.conformance.transactions.scene import Scene

from lowwater.errors import ErrorCode


@by_each()
def test_a_committed_transaction_is_seen_whole_and_an_aborted_one_never(scene: Scene) -> None:
    first, second = scene.topic(partitions=2), scene.topic(partitions=1)
    producer = scene.producer()
    for number, end in enumerate((producer.commit, producer.abort, producer.commit)):
        producer.begin()
        producer.send(first, b"%d a" % number, b"%d b" % number, partition=0)
        producer.send(first, b"%d c" % number, partition=1)
        producer.send(second, b"%d d" % number)
        end()
    scene.until_ended((first, 0), (first, 1), (second, 0))
    assert scene.view(first, 0) == [b"0 a", b"0 b", b"2 a", b"2 b"]
    assert scene.view(first, 1) == [b"0 c", b"2 c"]
    assert scene.view(second) == [b"0 d", b"2 d"]
    assert scene.view(first, 0, committed=False) == [b"%d %s" % (n, each) for n in range(3) for each in (b"a", b"b")]
    assert scene.view(second, committed=False) == [b"0 d", b"1 d", b"2 d"]


@by_each()
def test_readers_of_committed_records_wait_for_an_open_transaction(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    producer = scene.producer()
    scene.plain(topic, b"before")
    producer.begin()
    producer.send(topic, b"inside")
    scene.plain(topic, b"after")
    assert scene.last_stable(topic) == 1
    assert scene.view(topic) == [b"before"]
    assert scene.view(topic, committed=False) == [b"before", b"inside", b"after"]
    producer.commit()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"before", b"inside", b"after"]


@by_each()
def test_an_aborted_transaction_lets_the_records_behind_it_through(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    producer = scene.producer()
    producer.begin()
    producer.send(topic, b"inside")
    scene.plain(topic, b"after")
    assert scene.view(topic) == []
    producer.abort()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"after"]
    assert scene.view(topic, committed=False) == [b"inside", b"after"]


@by_each()
def test_empty_transactions_write_nothing(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    producer = scene.producer()
    for end in (producer.commit, producer.abort, producer.commit):
        producer.begin()
        end()
    producer.begin()
    producer.send(topic, b"inside")
    producer.commit()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"inside"]
    assert scene.log_end(topic) == 2


@by_each()
def test_the_next_instance_of_a_transactional_id_goes_on_where_the_last_one_ended(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    for number in range(3):
        producer = scene.producer()
        producer.begin()
        producer.send(topic, b"%d" % number)
        producer.commit()
        producer.close()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"0", b"1", b"2"]


@by_each(Can.GO_ON_AFTER_REFUSAL)
def test_a_refused_record_ends_its_transaction_and_the_producer_goes_on(scene: Scene) -> None:
    topic = scene.topic(partitions=1, **{"max.message.bytes": "1000"})
    producer = scene.producer()
    producer.begin()
    producer.send(topic, b"small")
    with pytest.raises(ClientError) as refusal:
        producer.send(topic, bytes(5000))
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE
    producer.abort()
    producer.begin()
    producer.send(topic, b"small again")
    producer.commit()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"small again"]


@by_each()
def test_many_transactions_of_many_producers_mix_in_the_same_partitions(scene: Scene) -> None:
    topic, draw = scene.topic(partitions=3), random.Random(scene.kind.name)
    producers = [scene.producer(id=f"{scene.transactional_id}-{number}") for number in range(3)]
    expected: list[list[bytes]] = [[], [], []]
    for step in range(8):
        for number, producer in enumerate(producers):
            producer.begin()
            for partition in draw.sample(range(3), draw.randint(1, 3)):
                values = [b"%d %d %d" % (step, number, each) for each in range(draw.randint(1, 4))]
                producer.send(topic, *values, partition=partition)
                expected[partition] += [value for value in values if (step + number) % 3]
        for number, producer in enumerate(producers):
            (producer.commit if (step + number) % 3 else producer.abort)()
    scene.until_ended(*[(topic, partition) for partition in range(3)])
    assert [scene.view(topic, partition) for partition in range(3)] == expected


@by_each()
def test_a_transaction_may_be_larger_than_a_segment(scene: Scene) -> None:
    topic = scene.topic(partitions=1, **{"segment.bytes": str(1 << 20)})
    producer = scene.producer()
    for letter, end in ((b"a", producer.abort), (b"c", producer.commit)):
        producer.begin()
        for _ in range(8):
            producer.send(topic, letter * 180_000, letter * 180_000)
        end()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"c" * 180_000] * 16
    reader = scene.kind.reader(scene.broker.bootstrap)
    # From inside the aborted transaction, in a later segment than its first record.
    assert [value[:1] for _, value in reader.read((topic, 0), committed=True, start=12)] == [b"c"] * 16
    assert [value[:1] for _, value in reader.read((topic, 0), committed=False, start=12)] == [b"a"] * 4 + [b"c"] * 16


@by("confluent")
def test_compaction_drops_aborted_records_and_keeps_the_committed_ones(scene: Scene) -> None:
    compacted = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.001"}
    topic = scene.topic(partitions=1, **compacted)
    producer = scene.producer()
    plan = ((b"a", b"a1", True), (b"b", b"b1", True), (b"a", b"aborted", False), (b"b", b"b2", True))
    for key, value, commits in plan:
        producer.begin()
        producer.send(topic, value, key=key)
        (producer.commit if commits else producer.abort)()
    last = b""

    def is_compacted() -> bool:
        """A record more makes the broker begin a new segment, so that the one before can be compacted."""
        nonlocal last
        last = b"%d" % scene.log_end(topic)
        scene.plain(topic, last, key=b"rolls")
        left = scene.view(topic, committed=False)
        return b"b1" not in left and b"aborted" not in left

    eventually(is_compacted, "compacted")
    for kind in READERS:
        seen = [value for _, value in kind(scene.broker.bootstrap).read((topic, 0), committed=True)]
        assert seen[:2] == [b"a1", b"b2"], kind.name
        assert seen[-1] == last, kind.name


@pytest.mark.peer("kafka")
@pytest.mark.parametrize("name", ["java", "lowwater"])
def test_transactions_go_on_while_transaction_version_changes(name: str, transaction_broker: BrokerOf) -> None:
    [kind] = [kind for kind in KINDS if kind.name == name]
    with Scene(transaction_broker(0), kind) as scene:
        set_transaction_version(scene.broker, 0)  # another run may have left it at 2
        topic, producer = scene.topic(partitions=1), scene.producer()
        for level in (0, 1, 2, 1, 2):
            set_transaction_version(scene.broker, level)
            for end in (producer.commit, producer.abort):
                producer.begin()
                producer.send(topic, b"%d" % level)
                end()
        scene.until_ended((topic, 0))
        assert scene.view(topic) == [b"0", b"1", b"2", b"1", b"2"]
        assert scene.log_end(topic) == 20


@pytest.mark.peer("kafka")
@pytest.mark.parametrize("is_open", [False, True], ids=["between transactions", "in the middle of one"])
def test_our_producer_goes_on_when_transaction_version_is_lowered(is_open: bool, transaction_broker: BrokerOf) -> None:
    [kind] = [kind for kind in KINDS if kind.name == "lowwater"]
    with Scene(transaction_broker(0), kind) as scene:
        set_transaction_version(scene.broker, 2)
        topic, producer = scene.topic(partitions=1), scene.producer()
        for place in range(4):
            if place == 1 and not is_open:
                set_transaction_version(scene.broker, 1)
            producer.begin()
            producer.send(topic, b"%d" % place)
            if place == 1 and is_open:
                set_transaction_version(scene.broker, 1)
            if place:
                producer.send_offsets(MemberOf(scene.group), {(topic, 0): place})
            (producer.abort if place == 2 else producer.commit)()
        scene.until_ended((topic, 0))
        assert scene.view(topic) == [b"0", b"1", b"3"]
        assert scene.stable_offset((topic, 0)) == 3


@by("confluent")
def test_every_consumer_sees_the_same(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    producer = scene.producer()
    for number in range(6):
        producer.begin()
        producer.send(topic, b"%d" % number, b"%d again" % number)
        (producer.abort if number % 2 else producer.commit)()
    producer.begin()
    producer.send(topic, b"open")
    scene.plain(topic, b"plain")
    committed = [each for number in (0, 2, 4) for each in (b"%d" % number, b"%d again" % number)]
    everything = [each for number in range(6) for each in (b"%d" % number, b"%d again" % number)]
    for kind in READERS:
        reader = kind(scene.broker.bootstrap)
        assert [value for _, value in reader.read((topic, 0), committed=True)] == committed, kind.name
        seen = [value for _, value in reader.read((topic, 0), committed=False)]
        assert seen == [*everything, b"open", b"plain"], kind.name
        later = reader.read((topic, 0), committed=True, start=7)  # each transaction takes three offsets
        assert [value for _, value in later] == committed[3:], kind.name
    producer.abort()
