"""The reader as people use it, on a real broker: ours, or with --against=kafka Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.under_test import UnderTest
from tests.reader.writing import PATIENCE_S, Writer

import lowwater
from lowwater import Lost, Reader, TopicPartition
from lowwater.client.arrow import SCHEMA
from lowwater.client.errors import (
    ClosedError,
    ConnectError,
    NotMemberError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
    UnknownTopicError,
)
from lowwater.client.topic_ids import id_text

TopicOf = Callable[..., str]


def times(batch: Any) -> list[int]:
    return batch.column("timestamp").cast("int64").to_pylist()  # type: ignore[no-any-return]


def read_times(reader: Reader, count: int) -> list[int]:
    """The times of the next rows, as they come."""
    found: list[int] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until:
        found += times(reader.poll(1000))
    return found


def committed(writer: Writer, group: str) -> dict[int, int]:
    offsets = writer.admin.group_offsets([group]).checked()[group]
    return {one.partition: each.offset for one, each in offsets.items()}


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


# -- ways to read


def test_a_loop_gives_every_row_in_order_and_ends_at_the_stop(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 300], [200, 400])
    with lowwater.read(topic, bootstrap=broker.bootstrap, stop="latest", batch_size=3) as reader:
        batches = list(reader)
        assert [time for batch in batches for time in times(batch)] == [100, 200, 300, 400]
        assert all(0 < batch.num_rows <= 3 for batch in batches)
        assert reader.is_finished
        assert list(reader) == []


def test_a_poll_that_brings_nothing_gives_a_batch_without_rows(broker: UnderTest, topic_of: TopicOf) -> None:
    with lowwater.read(topic_of([]), bootstrap=broker.bootstrap) as reader:
        batch = reader.poll(0)
        assert batch.num_rows == 0
        assert batch.schema == SCHEMA
        assert not reader.is_finished


def test_reading_goes_on_as_records_are_written(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    topic = topic_of([100])
    with lowwater.read(topic, bootstrap=broker.bootstrap) as reader:
        assert read_times(reader, 1) == [100]
        assert reader.is_live
        writer.write(TopicPartition(topic, 0), [200])
        assert read_times(reader, 1) == [200]


def test_a_table_ends_with_what_was_there_at_the_beginning(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 300], [200])
    with lowwater.read(topic, bootstrap=broker.bootstrap) as reader:
        writer.write(TopicPartition(topic, 0), [400])
        assert times(reader.to_table()) == [100, 200, 300]
        assert reader.positions == {TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 1}


def test_a_table_after_some_batches_has_what_is_left_by_now(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200, 300])
    with lowwater.read(topic, bootstrap=broker.bootstrap, batch_size=1) as reader:
        assert times(reader.poll(PATIENCE_S * 1000)) == [100]
        writer.write(TopicPartition(topic, 0), [400])
        assert times(reader.to_table()) == [200, 300, 400]


def test_a_table_of_nothing_has_the_columns(broker: UnderTest, topic_of: TopicOf) -> None:
    with lowwater.read(topic_of([], []), bootstrap=broker.bootstrap) as reader:
        table = reader.to_table()
    assert table.num_rows == 0
    assert table.schema == SCHEMA


def test_whatever_speaks_arrow_takes_the_reader_as_it_is(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 300], [200])
    with lowwater.read(topic, bootstrap=broker.bootstrap) as reader:
        assert times(pa.table(reader)) == [100, 200, 300]
    with lowwater.read(topic, bootstrap=broker.bootstrap, batch_size=2) as reader:
        stream = reader.to_reader()
        assert isinstance(stream, pa.RecordBatchReader)
        assert [batch.num_rows for batch in stream] == [2, 1]


def test_key_value_and_headers_are_as_they_were_written(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    from confluent_kafka import Producer

    topic = topic_of([])
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"", key=None, partition=0, timestamp=100, headers=[("a", b"1"), ("a", None)])
    producer.produce(topic, None, key=b"k", partition=0, timestamp=200)
    assert producer.flush(PATIENCE_S) == 0
    with lowwater.read(topic, bootstrap=broker.bootstrap) as reader:
        first, second = reader.to_table().to_pylist()
    assert (first["key"], first["value"], first["topic"], first["partition"]) == (None, b"", topic, 0)
    assert first["headers"] == [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert (second["key"], second["value"], second["offset"], second["headers"]) == (b"k", None, 1, [])
    assert second["timestamp"] == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=200)
    assert second["timestamp_type"] == 0


def test_single_partitions_can_be_read(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100], [200], [300])
    with lowwater.read([f"{topic}[0]", (topic, 2)], bootstrap=broker.bootstrap) as reader:
        assert times(reader.to_table()) == [100, 300]


def test_exact_ranges_can_be_read(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of(list(range(10)), list(range(10)))
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    ranges: Any = {"start": {one: 2, two: 9}, "stop": {one: 5, two: 9}}
    with lowwater.read([one, two], bootstrap=broker.bootstrap, order=None, **ranges) as reader:
        assert times(reader.to_table()) == [2, 3, 4]
        assert reader.positions == {one: 5, two: 9}


def test_a_time_to_start_at_and_one_to_stop_at(broker: UnderTest, topic_of: TopicOf) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    now_ms = int(now.timestamp() * 1000)
    topic = topic_of([now_ms - 7_200_000, now_ms - 1_800_000, now_ms - 60_000])
    given: Any = {"bootstrap": broker.bootstrap}
    with lowwater.read(topic, start="-1h", stop=timedelta(minutes=10), **given) as reader:
        assert times(reader.to_table()) == [now_ms - 1_800_000]
    with lowwater.read(topic, start=now - timedelta(hours=3), stop=now - timedelta(hours=1), **given) as reader:
        assert times(reader.to_table()) == [now_ms - 7_200_000]


def test_a_stop_that_is_still_to_come_is_waited_for(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    topic = topic_of([100], [])
    stop = datetime.now(UTC) + timedelta(seconds=1)
    stop_ms = int(stop.timestamp() * 1000)
    with lowwater.read(topic, bootstrap=broker.bootstrap, stop=stop) as reader:
        assert read_times(reader, 1) == [100]
        assert not reader.is_finished
        writer.write(TopicPartition(topic, 1), [200, stop_ms + 5_000, 300])
        assert [time for batch in reader for time in times(batch)] == [200, 300]
        assert reader.is_finished


@pytest.mark.parametrize("columns", [["value"], ["offset", "timestamp"], ["partition", "key", "topic"], "headers"])
def test_only_the_columns_that_are_asked_for_come(broker: UnderTest, topic_of: TopicOf, columns: Any) -> None:
    topic = topic_of([100, 200])
    names = [columns] if isinstance(columns, str) else columns
    with lowwater.read(topic, bootstrap=broker.bootstrap) as reader:
        whole = reader.to_table()
    with lowwater.read(topic, bootstrap=broker.bootstrap, columns=columns) as reader:
        assert reader.poll(0).schema.names == names or reader.stats.rows
    with lowwater.read(topic, bootstrap=broker.bootstrap, columns=columns) as reader:
        assert reader.to_table() == whole.select(names)


def test_a_partition_that_is_not_there_is_an_error_that_says_how_many_there_are(
    broker: UnderTest, topic_of: TopicOf
) -> None:
    topic = topic_of([100], [200])
    with pytest.raises(UnknownTopicError, match="2 partitions"):
        lowwater.read([f"{topic}[0]", f"{topic}[7]"], bootstrap=broker.bootstrap)


@pytest.mark.parametrize("wish", ["start", "stop"])
def test_a_start_or_stop_for_a_partition_that_is_not_there_is_no_way_to_read_all_of_the_topic(
    broker: UnderTest, topic_of: TopicOf, wish: str
) -> None:
    topic = topic_of([100], [200])
    asked: dict[str, Any] = {wish: {f"{topic}[1]": 0, f"{topic}[9]": 3}}
    with pytest.raises(UnknownTopicError, match=r"partition 9: .*; the topic has 2 partitions"):
        lowwater.read(topic, bootstrap=broker.bootstrap, **asked)


def test_a_topic_that_is_not_there_is_an_error_that_names_those_called_alike(
    broker: UnderTest, topic_of: TopicOf
) -> None:
    topic = topic_of([100])
    misspelt = topic.replace("topic", "tpoic")
    soon = {"topic.metadata.propagation.max.ms": 0, "allow.auto.create.topics": False}
    with pytest.raises(UnknownTopicError, match=f"did you mean .*{topic}.* Otherwise see which there are"):
        lowwater.read(misspelt, bootstrap=broker.bootstrap, config=soon)
    with pytest.raises(UnknownTopicError, match="; see which there are"):
        lowwater.read("nothing-is-called-like-this", bootstrap=broker.bootstrap, config=soon)


@pytest.mark.parametrize("stop", [None, "latest", 1])
def test_a_start_behind_the_end_is_an_error_whatever_the_stop(
    broker: UnderTest, topic_of: TopicOf, stop: str | int | None
) -> None:
    reader = lowwater.read(topic_of([100]), bootstrap=broker.bootstrap, start=5, stop=stop)
    with reader, pytest.raises(OffsetOutOfRangeError, match=r"\[0, 1\]"):
        reader.to_table()


def test_what_is_lost_is_told_up_to_the_stop(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    topic = topic_of([1, 2, 3, 4, 5])
    writer.admin.delete_records({TopicPartition(topic, 0): 4}).checked()
    given: Any = {"bootstrap": broker.bootstrap, "start": 1, "on_lost": "earliest"}
    with lowwater.read(topic, stop=3, **given) as reader:
        assert reader.to_table().num_rows == 0
        assert reader.lost == [Lost(topic, 0, 1, 3)]
    with lowwater.read(topic, stop=5, **given) as reader:
        assert times(reader.to_table()) == [5]
        assert reader.lost == [Lost(topic, 0, 1, 4)]


def test_a_topic_that_was_made_anew_is_not_taken_for_the_one_that_is_expected(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic, other = topic_of([100]), topic_of([200])
    [described] = writer.admin.describe_topics([topic]).checked().values()
    [another] = writer.admin.describe_topics([other]).checked().values()
    ids = [id_text(each.id) for each in (described, another)]
    given: Any = {"bootstrap": broker.bootstrap, "stop": "latest"}
    with lowwater.read(topic, topic_ids={topic: ids[0]}, **given) as reader:
        assert times(reader.to_table()) == [100]
    with pytest.raises(TopicRecreatedError, match=f"its id was {ids[1]}, now it is {ids[0]}") as raised:
        lowwater.read(topic, topic_ids={topic: ids[1]}, **given)
    assert (raised.value.topic, raised.value.expected_id, raised.value.found_id) == (topic, ids[1], ids[0])


@pytest.mark.only_against("lowwater")
def test_a_reader_outlives_a_restart_of_its_broker(own_broker: Callable[..., UnderTest]) -> None:
    broker = own_broker()
    writer = Writer(broker.bootstrap)
    writer.create("outlived", 1)
    writer.write(TopicPartition("outlived", 0), [100])
    with lowwater.read("outlived", bootstrap=broker.bootstrap, group="g") as reader:
        assert read_times(reader, 1) == [100]
        broker.restart()
        writer.write(TopicPartition("outlived", 0), [200])
        assert read_times(reader, 1) == [200]
        reader.commit()
        assert committed(writer, "g") == {0: 2}
    writer.close()


def test_a_reader_says_what_it_reads(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100], [])
    with lowwater.read(topic, bootstrap=broker.bootstrap) as reader:
        reader.to_table()
        assert repr(reader) == f"<Reader of {topic}: 2 partitions, 1 rows returned>"


# -- memory


def test_large_rows_and_partitions_far_apart_in_time_stay_within_the_bound(
    broker: UnderTest, topic_of: TopicOf
) -> None:
    from confluent_kafka import Producer

    topic = topic_of([], [], **{"max.message.bytes": "2000000"})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 2_000_000, "linger.ms": 0})
    for number in range(40):
        producer.produce(topic, b"x" * 1_000_000, partition=number % 2, timestamp=(number % 2) * 1_000 + number + 1)
        producer.flush(PATIENCE_S)
    bound = 8_000_000
    with lowwater.read(topic, bootstrap=broker.bootstrap, held_bytes_max=bound, stop="latest") as reader:
        held, found = 0, []
        for batch in reader:
            found += times(batch)
            held = max(held, reader.stats.held_bytes)
    assert found == [*range(1, 40, 2), *range(1_002, 1_041, 2)]
    # Of each partition a record may come that is larger than what there was room for.
    assert held <= bound + 2 * 1_000_000


def test_more_partitions_than_there_is_room_for_a_row_of_each_are_read_in_order_within_the_bound(
    broker: UnderTest, topic_of: TopicOf
) -> None:
    from confluent_kafka import Producer

    partitions, rounds, row = 40, 3, 200_000
    topic = topic_of(*[[] for _ in range(partitions)])
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for number in range(partitions * rounds):
        producer.produce(topic, b"x" * row, partition=7 * number % partitions, timestamp=number + 1)
        producer.flush(PATIENCE_S)
    bound = 3_000_000
    with lowwater.read(topic, bootstrap=broker.bootstrap, held_bytes_max=bound, stop="latest") as reader:
        held, found = 0, []
        for batch in reader:
            found += times(batch)
            held = max(held, reader.stats.held_bytes)
        assert reader.stats.late_rows == 0
    assert found == [*range(1, partitions * rounds + 1)]
    assert held <= 1.5 * bound < partitions * row


# -- the end


def test_a_reader_that_is_closed_says_so(broker: UnderTest, topic_of: TopicOf) -> None:
    reader = lowwater.read(topic_of([100]), bootstrap=broker.bootstrap)
    reader.close()
    reader.close()
    with pytest.raises(ClosedError):
        reader.poll()


def test_brokers_that_cannot_be_reached_are_an_error_that_says_where() -> None:
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1"):
        lowwater.read("orders", bootstrap="127.0.0.1:1", config={"default.api.timeout.ms": 300})


@pytest.mark.parametrize("has_group", [False, True])
def test_a_reader_that_is_forgotten_leaves_neither_sockets_nor_a_thread(
    broker: UnderTest, topic_of: TopicOf, has_group: bool
) -> None:
    topic = topic_of([100])
    reader = lowwater.read(topic, bootstrap=broker.bootstrap, group=f"{topic}-group" if has_group else None)
    assert read_times(reader, 1) == [100]
    driver = reader._driver
    del reader
    assert driver.open_sockets == 0
    thread = getattr(driver, "_thread", None)
    assert (thread is not None) is has_group
    until(lambda: thread is None or not thread.is_alive())


def test_an_option_that_is_not_there_is_named_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match="did you mean start"):
        lowwater.read("orders", strat="-1h")  # type: ignore[call-arg]


def test_a_table_ends_also_where_only_some_partitions_have_a_stop(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 200, 300], [150, 250])
    stop = {f"{topic}[0]": 2}
    table = lowwater.read(topic, bootstrap=broker.bootstrap, stop=stop).to_table()
    assert times(table) == [100, 150, 200, 250]
    with lowwater.read(topic, bootstrap=broker.bootstrap, stop=stop, batch_size=1) as reader:
        assert read_times(reader, 1) == [100]
        assert times(reader.to_table()) == [150, 200, 250]


# -- commits


def test_a_loop_that_comes_to_its_stop_has_committed_everything(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200], [300])
    group = f"{topic}-group"
    reader = lowwater.read(topic, bootstrap=broker.bootstrap, group=group, stop="latest", batch_size=2)
    assert [time for batch in reader for time in times(batch)] == [100, 200, 300]
    assert committed(writer, group) == {0: 2, 1: 1}
    reader.close()


@pytest.mark.parametrize("join", [True, False])
def test_a_start_that_was_never_stored_is_an_error_that_says_what_to_do(
    join: bool, broker: UnderTest, topic_of: TopicOf
) -> None:
    topic = topic_of([100])
    with pytest.raises(lowwater.LowwaterError, match=r"^the group has no committed offset .* stored\|earliest"):
        lowwater.read(topic, bootstrap=broker.bootstrap, group=f"{topic}-new", start="stored", join=join).to_table()


@pytest.mark.parametrize("setting", ["enable.auto.commit", "enable.auto.offset.store"])
def test_without_commits_of_its_own_a_reader_commits_when_it_is_told_to(
    setting: str, broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200])
    group = f"{topic}-group"
    given: Any = {"bootstrap": broker.bootstrap, "group": group, "stop": "latest", "config": {setting: False}}
    with lowwater.read(topic, **given) as reader:
        assert [time for batch in reader for time in times(batch)] == [100, 200]
    assert committed(writer, group) == {}
    with lowwater.read(topic, **given) as reader:
        assert [time for batch in reader for time in times(batch)] == [100, 200]
        reader.commit()
    assert committed(writer, group) == {0: 2}


def test_what_is_being_worked_on_is_not_committed_before_the_next_poll(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200, 300])
    group = f"{topic}-group"
    config = {"auto.commit.interval.ms": 20}
    with lowwater.read(topic, bootstrap=broker.bootstrap, group=group, batch_size=1, config=config) as reader:
        assert read_times(reader, 1) == [100]
        assert committed(writer, group) == {}
        assert read_times(reader, 1) == [200]
        until(lambda: committed(writer, group) == {0: 1})
    assert committed(writer, group) == {0: 2}


def test_after_an_exception_the_batch_at_which_it_happened_comes_again(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200, 300])
    given: Any = {"bootstrap": broker.bootstrap, "group": f"{topic}-group"}

    def fail_at_the_second_row() -> None:
        with lowwater.read(topic, batch_size=1, **given) as reader:
            assert read_times(reader, 1) == [100]
            assert read_times(reader, 1) == [200]
            raise RuntimeError("the caller fails")

    with pytest.raises(RuntimeError):
        fail_at_the_second_row()
    assert committed(writer, f"{topic}-group") == {0: 1}
    with lowwater.read(topic, stop="latest", **given) as reader:
        assert times(reader.to_table()) == [200, 300]


WHOLE: dict[str, Callable[[Reader], Any]] = {
    "to_table": Reader.to_table,
    "to_pandas": Reader.to_pandas,
    "to_polars": Reader.to_polars,
    "to_reader": lambda reader: reader.to_reader().read_all(),
    "arrow": pa.table,
}


@pytest.mark.parametrize("way", WHOLE)
def test_after_an_exception_a_table_at_which_it_happened_comes_again(
    way: str, broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200, 300])
    group = f"{topic}-group"
    given: Any = {"bootstrap": broker.bootstrap, "group": group, "config": {"auto.commit.interval.ms": 20}}

    def fail_to_load() -> None:
        with lowwater.read(topic, batch_size=1, **given) as reader:
            assert read_times(reader, 1) == [100]
            assert len(WHOLE[way](reader)) == 2
            raise RuntimeError("the caller fails")

    with pytest.raises(RuntimeError):
        fail_to_load()
    assert committed(writer, group) == {0: 1}, "who asks for a table is done with what he got before"
    with lowwater.read(topic, batch_size=1, **given) as reader:
        assert len(WHOLE[way](reader)) == 2
        assert committed(writer, group) == {0: 1}
    assert committed(writer, group) == {0: 3}


def test_who_asks_for_more_is_done_with_the_table_before(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    topic = topic_of([100, 200])
    group = f"{topic}-group"
    with lowwater.read(topic, bootstrap=broker.bootstrap, group=group) as reader:
        assert times(reader.to_table()) == [100, 200]
        assert committed(writer, group) == {}
        assert reader.to_table().num_rows == 0
        assert committed(writer, group) == {0: 2}


def test_what_was_gathered_for_a_table_that_was_interrupted_comes_again(
    broker: UnderTest, writer: Writer, topic_of: TopicOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_of([100, 200, 300])
    group = f"{topic}-group"
    with lowwater.read(topic, bootstrap=broker.bootstrap, group=group, batch_size=1) as reader:
        assert read_times(reader, 1) == [100]
        poll = reader._poll

        def interrupt(timeout_ms: float | None, *, is_done: bool = True) -> Any:
            if reader.stats.rows == 3:
                raise KeyboardInterrupt
            return poll(timeout_ms, is_done=is_done)

        monkeypatch.setattr(reader, "_poll", interrupt)
        with pytest.raises(KeyboardInterrupt):
            reader.to_table()
        monkeypatch.undo()
        assert times(reader.to_table()) == [200, 300]
        assert committed(writer, group) in ({}, {0: 1})
    assert committed(writer, group) == {0: 3}


def test_a_table_of_which_something_went_to_others_meanwhile_is_an_error(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 200], [])
    given: Any = {"bootstrap": broker.bootstrap, "group": f"{topic}-group", "batch_size": 1}
    with lowwater.read(topic, stop="latest", **given) as reader:
        batches = reader._rest()
        assert times(next(batches)) == [100]
        reader._driver.run(reader._reading.lost([TopicPartition(topic, 1)]))
        assert times(next(batches)) == [200]
        reader._driver.run(reader._reading.lost([TopicPartition(topic, 0)]))
        with pytest.raises(NotMemberError, match="went to others"):
            next(batches)


def test_the_others_of_a_group_wait_until_a_table_is_done_with(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 300], [200, 400])
    config = {"heartbeat.interval.ms": 100}
    given: Any = {"bootstrap": broker.bootstrap, "group": f"{topic}-group", "config": config, "batch_size": 1}
    with lowwater.read(topic, **given) as first:
        batches = first.to_reader()
        assert times(batches.read_next_batch()) == [100]
        with lowwater.read(topic, **given) as second:
            assert second.poll(500).num_rows == 0
            assert [time for batch in batches for time in times(batch)] == [200, 300, 400]
            assert second.poll(500).num_rows == 0
            first.close()
            assert times(second.to_table()) == []


@pytest.mark.parametrize("has_all", [True, False])
def test_whether_everything_was_read_is_known_behind_the_end_too(
    has_all: bool, broker: UnderTest, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200])
    given: Any = {"bootstrap": broker.bootstrap, "group": f"{topic}-group", "stop": "latest"}
    with lowwater.read(topic, batch_size=2 if has_all else 1, **given) as reader:
        assert read_times(reader, 1)[0] == 100
    assert reader.is_finished is has_all


def test_a_group_that_has_read_everything_has_nothing_left(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100], [200])
    given: Any = {"bootstrap": broker.bootstrap, "group": f"{topic}-group"}
    with lowwater.read(topic, **given) as reader:
        assert times(reader.to_table()) == [100, 200]
    with lowwater.read(topic, **given) as reader:
        assert times(reader.to_table()) == []
        assert reader.is_finished


def test_rows_and_offsets_go_into_one_transaction(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    source, sink = topic_of([100, 200, 300]), topic_of([])
    group = f"{source}-group"
    given: Any = {
        "bootstrap": broker.bootstrap,
        "group": group,
        "batch_size": 1,
        "config": {"enable.auto.commit": False},
    }
    producing = {"transactional.id": f"{source}-copy"}
    with lowwater.Producer(broker.bootstrap, producing) as producer, lowwater.read(source, **given) as reader:
        producer.init_transactions()
        for is_kept in (True, False):
            batch = reader.poll(PATIENCE_S * 1000)
            producer.begin_transaction()
            producer.send_table(sink, batch.select(["value", "timestamp"]))
            producer.send_offsets_to_transaction(reader.positions, group, by=reader.identity)
            producer.commit_transaction() if is_kept else producer.abort_transaction()
    assert committed(writer, group) == {0: 1}
    with lowwater.read(sink, bootstrap=broker.bootstrap) as reader:
        assert times(reader.to_table()) == [100]
