"""What our producer writes is what other clients read, with either broker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.clients import clients
from tests.conformance.clients.base import CODECS, Can, Driver, Received, Record
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

import lowwater
from lowwater import AsyncProducer, Producer, TopicPartition
from lowwater.client.errors import DeliveryError, FencedError, RecordTooLargeError, TransactionError, UnknownTopicError

TIMEOUT_MS = 60_000
NOW_MS = 1_700_000_000_000
RECORDS = [
    Record(b"value", b"key", (), NOW_MS),
    Record(b"", b"", (("h", b"x"), ("empty", b"")), NOW_MS + 1),
    Record(None, b"tombstone", (), NOW_MS - 70_000),
    Record(b"long " * 2_000, None, (("h", b"1"), ("h", b"2")), NOW_MS + 100_000),
    *(Record(b"%d" % number, b"k%d" % (number % 7), (), NOW_MS + number) for number in range(500)),
]

MakeProducer = Callable[..., Producer]


@pytest.fixture
def make(broker: UnderTest) -> Iterator[MakeProducer]:
    """`make(acks="1")`: producers that are closed with the test, without a word of what they lost."""
    made: list[Producer] = []

    def producer(**settings: Any) -> Producer:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        made.append(Producer(broker.bootstrap, given))
        return made[-1]

    yield producer
    for each in made:
        each.close(raise_failures=False)


def table_of(records: list[Record]) -> Any:
    return pa.table(
        {
            "key": pa.array([one.key for one in records], pa.binary()),
            "value": pa.array([one.value for one in records], pa.binary()),
            "timestamp": pa.array([one.timestamp_ms for one in records], pa.timestamp("ms", "UTC")),
            "headers": pa.array([list(one.headers) for one in records], pa.map_(pa.utf8(), pa.binary())),
        }
    )


def shape(received: Received) -> tuple[Any, ...]:
    record = received.record
    return received.offset, record.key, record.value, sorted(record.headers), record.timestamp_ms


def read_all(broker: UnderTest, topic: str, **options: Any) -> list[dict[str, Any]]:
    with lowwater.read(
        topic, bootstrap=broker.bootstrap, start="earliest", stop="latest", order="partition", **options
    ) as reader:
        rows: list[dict[str, Any]] = reader.to_table().to_pylist()
    return rows


def until_committed(broker: UnderTest, topic: str, values: list[bytes]) -> None:
    """Transactions are seen when their markers are written, soon after they are committed."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while (found := [row["value"] for row in read_all(broker, topic)]) != values:
        assert time.monotonic() < deadline, found


@clients(Can.HEADERS)
def test_tables_are_read_by_every_client(client: Driver, make: MakeProducer, new_topic: NewTopic) -> None:
    for codec in CODECS:
        topic = new_topic(f"table-{codec}")
        report = make(compression_type=codec, batch_size=4_000).send_table(topic, table_of(RECORDS)).wait(TIMEOUT_MS)
        assert report.offsets().to_pylist() == list(range(len(RECORDS)))
        expected = [shape(Received(offset, one)) for offset, one in enumerate(RECORDS)]
        assert [shape(one) for one in client.consume(topic, len(RECORDS))] == expected, codec


@pytest.mark.peer("confluent")
@pytest.mark.parametrize("client", ["confluent"], indirect=True)
def test_plain_records_are_read_by_another_client(client: Driver, make: MakeProducer, new_topic: NewTopic) -> None:
    topic = new_topic("plain")
    producer = make()
    for one in RECORDS:
        producer.send(topic, one.value, key=one.key, headers=one.headers, timestamp=one.timestamp_ms)
    when = datetime(2026, 5, 6, 7, 8, 9, 10_000, tzinfo=UTC)
    producer.send(topic, "text", key="clé", headers={"name": "Wert", "none": None}, timestamp=when)
    summary = producer.flush(TIMEOUT_MS)
    assert (summary.rows, summary.failed) == (len(RECORDS) + 1, 0)
    *others, last = client.consume(topic, len(RECORDS) + 1)
    assert [shape(one) for one in others] == [shape(Received(offset, one)) for offset, one in enumerate(RECORDS)]
    assert last.record == Record(
        b"text", "clé".encode(), (("name", b"Wert"), ("none", None)), int(when.timestamp() * 1000)
    )


def test_rows_of_a_key_keep_their_order_among_many_partitions(
    make: MakeProducer, broker: UnderTest, new_topic: NewTopic
) -> None:
    topic = new_topic("ordered", partitions=5)
    producer = make(batch_size=2_000)
    for start in range(0, 20_000, 2_500):
        numbers = range(start, start + 2_500)
        keys, values = [b"%d" % (number % 13) for number in numbers], [b"%05d" % number for number in numbers]
        producer.send_table(topic, pa.table({"key": keys, "value": values}))
        producer.send(topic, b"%05d+" % (start + 2_499), key=b"%d" % ((start + 2_499) % 13))
    summary = producer.flush(TIMEOUT_MS)
    assert summary.delivered == 20_008
    found: dict[bytes, list[bytes]] = {}
    for row in read_all(broker, topic):
        found.setdefault(row["key"], []).append(row["value"])
    assert sum(map(len, found.values())) == 20_008
    assert all(values == sorted(values) for values in found.values())


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_rows_are_written_whatever_is_waited_for(
    acks: str, make: MakeProducer, broker: UnderTest, new_topic: NewTopic
) -> None:
    topic = new_topic(f"acks-{acks}")
    producer = make(acks=acks)
    report = producer.send_table(topic, pa.table({"value": [b"%d" % number for number in range(100)]})).wait(TIMEOUT_MS)
    assert report.delivered == 100
    # With acks=0 nobody says when they are there: what is written behind them on the same connection comes later.
    assert report.offsets().null_count == (100 if acks == "0" else 0)
    if acks == "0":
        until_written(broker, topic, 100)
    assert [row["value"] for row in read_all(broker, topic)] == [b"%d" % number for number in range(100)]


def until_written(broker: UnderTest, topic: str, count: int) -> None:
    with lowwater.read(topic, bootstrap=broker.bootstrap, start="earliest", order=None) as reader:
        seen = 0
        while seen < count:
            batch = reader.poll(TIMEOUT_MS)
            assert batch is not None, f"only {seen} of {count} rows came"
            seen += batch.num_rows


def test_a_topic_that_is_missing_is_created_by_the_broker(
    make: MakeProducer, broker: UnderTest, fresh_name: str
) -> None:
    assert make().send_table(fresh_name, pa.table({"value": ["a"]})).wait(TIMEOUT_MS).delivered == 1
    assert [row["value"] for row in read_all(broker, fresh_name)] == [b"a"]


def test_a_topic_that_is_missing_and_must_not_be_created_is_an_error(make: MakeProducer, fresh_name: str) -> None:
    producer = make(allow_auto_create_topics=False, topic_metadata_propagation_max_ms=500)
    report = producer.send_table(fresh_name, pa.table({"value": ["a", "b"]})).wait(TIMEOUT_MS)
    assert isinstance(report.failures[0].error, UnknownTopicError)
    producer.send(fresh_name, "unseen")
    with pytest.raises(DeliveryError, match="3 of 3 rows") as caught:
        producer.flush(TIMEOUT_MS)
    assert caught.value.summary.failed == 3


def test_batches_too_large_for_their_topic_are_halved_and_a_record_too_large_is_named(
    make: MakeProducer, broker: UnderTest, new_topic: NewTopic
) -> None:
    topic = new_topic("small", **{"max.message.bytes": "2000"})
    values = [b"%03d" % number + b"x" * 97 for number in range(200)]
    values[120] = b"too large" * 500
    report = make().send_table(topic, pa.table({"value": values})).wait(TIMEOUT_MS)
    [failure] = report.failures
    assert isinstance(failure.error, RecordTooLargeError)
    assert list(failure.rows) == [120]
    assert "row 120" in str(failure.error)
    del values[120]
    assert [row["value"] for row in read_all(broker, topic)] == values
    assert report.offsets().to_pylist() == [*range(120), None, *range(120, 199)]


def test_the_same_within_an_event_loop(broker: UnderTest, new_topic: NewTopic) -> None:
    topic = new_topic("async", partitions=2)

    async def write() -> None:
        async with AsyncProducer(broker.bootstrap) as producer:
            tables = [await producer.send_table(topic, table_of(RECORDS)) for _ in range(3)]
            for number in range(100):
                await producer.send(topic, f"plain {number}")
            summary = await producer.flush(TIMEOUT_MS)
            assert summary.delivered == 3 * len(RECORDS) + 100
            assert all(report.done for report in tables)

    asyncio.run(write())
    assert len(read_all(broker, topic)) == 3 * len(RECORDS) + 100


def test_transactions_within_an_event_loop(broker: UnderTest, new_topic: NewTopic, fresh_name: str) -> None:
    topic = new_topic("async-transactions")

    async def write() -> None:
        async with AsyncProducer(broker.bootstrap, {"transactional.id": fresh_name}) as producer:
            async with producer.transaction():
                await producer.send(topic, "committed")
                await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, f"group-{fresh_name}")
            await producer.begin_transaction()
            await producer.send(topic, "aborted")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, "committed too")

    asyncio.run(write())
    until_committed(broker, topic, [b"committed", b"committed too"])


def test_an_exception_aborts_its_transaction(
    make: MakeProducer, broker: UnderTest, new_topic: NewTopic, fresh_name: str
) -> None:
    topic = new_topic("exception")
    producer = make(transactional_id=fresh_name)

    def change_my_mind() -> None:
        with producer.transaction():
            producer.send(topic, "aborted")
            raise KeyError("changed my mind")

    with pytest.raises(KeyError, match="changed my mind"):
        change_my_mind()
    with producer.transaction():
        producer.send(topic, "committed")
    until_committed(broker, topic, [b"committed"])


END = """
import sys
from lowwater import Prepared, end_transaction
bootstrap, name, producer_id, epoch, commit = sys.argv[1:]
end_transaction(Prepared(name, int(producer_id), int(epoch)), bootstrap, commit=commit == "commit")
"""


def test_a_prepared_transaction_is_ended_by_another_process(
    make: MakeProducer, broker: UnderTest, new_topic: NewTopic, fresh_name: str
) -> None:
    topic = new_topic("prepared")
    for commit in ("commit", "abort"):
        producer = make(transactional_id=f"{fresh_name}-{commit}")
        producer.begin_transaction()
        producer.send(topic, commit)
        prepared = producer.prepare_transaction()
        producer.close()
        assert commit.encode() not in [row["value"] for row in read_all(broker, topic)]
        arguments = [broker.bootstrap, *map(str, prepared), commit]
        for _ in range(2):
            # Also when it is not known whether the first time was heard.
            subprocess.run([sys.executable, "-c", END, *arguments], check=True, timeout=60)
        with pytest.raises((TransactionError, FencedError)):
            lowwater.end_transaction(prepared, broker.bootstrap, commit=commit != "commit")
    until_committed(broker, topic, [b"commit"])


def test_a_prepared_transaction_of_a_producer_that_was_replaced_cannot_be_committed(
    make: MakeProducer, broker: UnderTest, new_topic: NewTopic, fresh_name: str
) -> None:
    topic = new_topic("replaced")
    producer = make(transactional_id=fresh_name)
    producer.begin_transaction()
    producer.send(topic, "of the first")
    prepared = producer.prepare_transaction()
    successor = make(transactional_id=fresh_name)
    successor.init_transactions()
    with pytest.raises(FencedError):
        lowwater.end_transaction(prepared, broker.bootstrap)
    with successor.transaction():
        successor.send(topic, "of the second")
    until_committed(broker, topic, [b"of the second"])
