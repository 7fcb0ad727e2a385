"""A producer and a real broker that refuses, delays, hangs up, restarts and is killed: each row is written once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import lowwater
from lowwater import Producer
from lowwater.client.errors import AbortableError, BadRowsError, ClosedError, DeliveryError, DeliveryTimeoutError
from lowwater.errors import ErrorCode
from lowwater.testing import Broker

TIMEOUT_MS = 60_000
PARTITIONS = 3


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker({"num.partitions": str(PARTITIONS)}) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


def rows(first: int, count: int) -> Any:
    """Numbered in their order; a key for each partition's sake."""
    numbers = range(first, first + count)
    return pa.table(
        {"key": [b"%d" % (number % 11) for number in numbers], "value": [b"%06d" % number for number in numbers]}
    )


def written(broker: Broker, topic: str) -> dict[int, list[bytes]]:
    """Values by partition, in the order of their offsets."""
    found: dict[int, list[bytes]] = {}
    with lowwater.read(topic, bootstrap=broker.bootstrap, start="earliest", stop="latest", order="partition") as reader:
        for row in reader.to_table().sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist():
            found.setdefault(row["partition"], []).append(row["value"])
    return found


def check(broker: Broker, topic: str, count: int) -> None:
    """Rows [0, count), each once, and within each partition in their order."""
    found = written(broker, topic)
    assert sorted(value for values in found.values() for value in values) == [
        b"%06d" % number for number in range(count)
    ]
    assert all(values == sorted(values) for values in found.values())


def test_requests_that_are_served_after_their_time_are_not_written_twice(broker: Broker) -> None:
    broker.faults.delay("Produce", 1_600, times=2)
    with Producer(broker.bootstrap, {"request.timeout.ms": 1_000, "batch.size": 5_000}) as producer:
        producer.send_table("late", rows(0, 2_000))
        assert producer.flush(TIMEOUT_MS).delivered == 2_000
    assert broker.faults.left("Produce") == 0
    check(broker, "late", 2_000)


def test_connections_that_break_lose_nothing(broker: Broker) -> None:
    with Producer(broker.bootstrap, {"batch.size": 5_000}) as producer:
        for number in range(5):
            broker.faults.drop("Produce")
            producer.send_table("broken", rows(number * 500, 500))
        assert producer.flush(TIMEOUT_MS).delivered == 2_500
    check(broker, "broken", 2_500)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    ],
)
def test_what_may_pass_is_tried_again(broker: Broker, code: ErrorCode) -> None:
    topic = f"again-{code.name.lower()}"
    with Producer(broker.bootstrap, {"batch.size": 3_000}) as producer:
        producer.send_table(topic, rows(0, 100)).wait(TIMEOUT_MS)
        broker.faults.fail("Produce", code, times=2)
        producer.send_table(topic, rows(100, 1_000))
        assert producer.flush(TIMEOUT_MS).delivered == 1_100
    check(broker, topic, 1_100)


def test_a_broker_that_restarts_under_way_has_every_row_once() -> None:
    with Broker({"num.partitions": str(PARTITIONS)}) as broker:
        with Producer(broker.bootstrap, {"batch.size": 5_000, "retry.backoff.ms": 20}) as producer:
            producer.send_table("restarted", rows(0, 1_000)).wait(TIMEOUT_MS)
            sending = threading.Thread(target=send_slices, args=(producer, "restarted", 1_000, 20))
            sending.start()
            broker.restart()
            broker.kill()
            broker.start()
            sending.join()
            assert producer.flush(TIMEOUT_MS).delivered == 3_000
        check(broker, "restarted", 3_000)


def send_slices(producer: Producer, topic: str, first: int, slices: int) -> None:
    for number in range(slices):
        producer.send_table(topic, rows(first + number * 100, 100))


def test_records_of_many_threads_are_all_written_and_those_of_each_in_order(broker: Broker) -> None:
    def send(who: int) -> None:
        for number in range(1_000):
            producer.send("threads", b"%d %05d" % (who, number), key=b"%d" % who)

    with Producer(broker.bootstrap, {"linger.ms": 1}) as producer:
        threads = [threading.Thread(target=send, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert producer.flush(TIMEOUT_MS).delivered == 4_000
    found = written(broker, "threads")
    for who in range(4):
        own = [value for values in found.values() for value in values if value.startswith(b"%d " % who)]
        assert own == [b"%d %05d" % (who, number) for number in range(1_000)]


def test_plain_records_leave_without_being_asked_for(broker: Broker) -> None:
    with Producer(broker.bootstrap, {"linger.ms": 20}) as producer:
        assert producer.send("lingering", "alone").wait(TIMEOUT_MS).delivered == 1


def test_who_sends_waits_while_the_memory_is_full(broker: Broker) -> None:
    """A broker that does not answer holds up the caller, not the memory."""
    with Producer(broker.bootstrap, {"buffer.memory": 100_000, "linger.ms": 0}) as producer:
        producer.send("full", b"first").wait(TIMEOUT_MS)
        broker.faults.delay("Produce", 400, times=3)
        most = 0
        for _ in range(60):
            producer.send_table("full", pa.table({"value": [b"x" * 10_000] * 2, "partition": [0, 0]}))
            producer.send("full", b"y" * 1_000, partition=0)
            most = max(most, producer._core.used_bytes)
        assert most <= 100_000 + 2 * 21_000
        assert producer.flush(TIMEOUT_MS).delivered == 181


def test_rows_that_nobody_takes_in_time_are_told_to_whoever_flushes(broker: Broker) -> None:
    broker.faults.fail("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, times=1_000)
    producer = Producer(broker.bootstrap, {"delivery.timeout.ms": 1_000})
    producer.send_table("never", rows(0, 10))
    producer.send("never", "plain")
    with pytest.raises(DeliveryError, match="11 of 11 rows") as caught:
        producer.flush(TIMEOUT_MS)
    assert isinstance(caught.value.first, DeliveryTimeoutError)
    assert producer.flush(TIMEOUT_MS).rows == 0, "what was told is not told again"
    producer.send("never", "again")
    with pytest.raises(DeliveryError):
        producer.close()
    broker.faults.clear()


def test_rows_whose_report_was_waited_for_are_not_raised_again(broker: Broker) -> None:
    broker.faults.fail("Produce", ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=1)
    with Producer(broker.bootstrap) as producer:
        assert producer.send_table("seen", rows(0, 10).slice(0, 1)).wait(TIMEOUT_MS).failed == 1


def test_an_exception_within_the_block_is_the_one_that_is_seen(broker: Broker) -> None:
    def leave() -> None:
        with Producer(broker.bootstrap, {"delivery.timeout.ms": 300}) as producer:
            broker.faults.fail("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, times=100)
            producer.send("left", "lost")
            raise KeyError("the user's own")

    with pytest.raises(KeyError, match="the user's own"):
        leave()


def test_closing_within_a_time_gives_up_what_is_not_written(broker: Broker) -> None:
    producer = Producer(broker.bootstrap)
    producer.send("closing", "first").wait(TIMEOUT_MS)
    broker.faults.fail("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, times=1_000)
    report = producer.send_table("closing", rows(0, 10))
    with pytest.raises(lowwater.ClientError, match="not done within"):
        producer.close(timeout_ms=200)
    assert report.done
    assert isinstance(report.failures[0].error, ClosedError)
    with pytest.raises(ClosedError):
        producer.send("closing", "later")
    producer.close()


def test_what_cannot_be_sent_is_refused_by_the_call(broker: Broker) -> None:
    with Producer(broker.bootstrap) as producer:
        with pytest.raises(BadRowsError):
            producer.send("refused", 5)  # type: ignore[arg-type]
        with pytest.raises(BadRowsError, match="no Arrow table"):
            producer.send_table("refused", [b"a"])
        with pytest.raises(BadRowsError):
            producer.send_table("refused", pa.table({"value": [1.5]}))
        assert producer.flush(TIMEOUT_MS).rows == 0


def test_a_transaction_lives_through_trouble_or_is_aborted_as_a_whole(broker: Broker) -> None:
    with Producer(broker.bootstrap, {"transactional.id": "troubled"}) as producer:
        broker.faults.drop("InitProducerId")
        producer.begin_transaction()
        broker.faults.drop("Produce")
        broker.faults.fail("EndTxn", ErrorCode.CONCURRENT_TRANSACTIONS)
        broker.faults.drop("EndTxn")
        producer.send_table("troubled", rows(0, 500))
        producer.commit_transaction()
        producer.begin_transaction()
        broker.faults.fail("Produce", ErrorCode.INVALID_RECORD)
        producer.send_table("troubled", rows(500, 500))
        with pytest.raises(AbortableError, match="INVALID_RECORD"):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send_table("troubled", rows(500, 500))
    until_committed(broker, "troubled", 1_000)


def until_committed(broker: Broker, topic: str, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while sum(map(len, written(broker, topic).values())) < count:
        assert time.monotonic() < deadline
    check(broker, topic, count)
