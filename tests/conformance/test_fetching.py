"""What our client finds out about offsets, and what its fetcher brings, from Lowwater and from Apache Kafka alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from tests.conformance.conftest import NewTopic
from tests.conformance.creating import create_topic, wait_for_leaders
from tests.conformance.fetching import LIMIT_MS, NOW_MS, Client, Reading, client
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.client.errors import ClientError, OffsetOutOfRangeError, TopicRecreatedError, UnknownTopicError
from lowwater.client.fetching.events import AtEnd, Failed, Reset
from lowwater.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Found, list_offsets, list_offsets_many, resolve
from lowwater.client.watching import TopicWatch
from lowwater.positions.grammar import parse_start
from lowwater.types import TopicPartition


@pytest.fixture
def ours(broker: UnderTest) -> Iterator[Client]:
    with client(broker.bootstrap) as made:
        yield made


def partitions(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


# ---- offsets


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", 7),
        ("latest", 30),
        ("12", 12),
        ("99", 99),
        ("-5", 25),
        ("-500", 7),
        (f"s@{NOW_MS + 15}", 15),
        (f"s@{NOW_MS}", 7),
        (f"s@{NOW_MS + 5_000}", 30),
        (f"s@{NOW_MS + 5_000}|earliest", 7),
        (f"s@{NOW_MS + 5_000}|s@{NOW_MS + 29}", 29),
    ],
)
def test_every_kind_of_start_becomes_the_same_offset_at_both_brokers(
    ours: Client, lookup: TopicPartition, start: str, expected: int
) -> None:
    wishes = {lookup: parse_start(start)}
    found = ours.run(resolve(ours.cluster, wishes, now_ms=NOW_MS, ends=True))
    assert (found.starts, found.ends) == ({lookup: expected}, {lookup: 30})


@pytest.fixture(scope="module")
def lookup(broker: UnderTest, new_topic: NewTopic) -> TopicPartition:
    """Thirty records in three batches, a millisecond apart; the first seven are deleted."""
    one = TopicPartition(new_topic("lookup"), 0)
    with client(broker.bootstrap) as made:
        for first in range(0, 30, 10):
            made.write(one, 10, at_ms=NOW_MS + first)
        made.delete_records(one, 7)
    return one


def test_what_may_stand_for_a_time_is_answered(ours: Client, lookup: TopicPartition) -> None:
    asked = [
        {lookup: EARLIEST},
        {lookup: LATEST},
        {lookup: MAX_TIMESTAMP},
        {lookup: NOW_MS + 17},
        {lookup: NOW_MS + 99},
    ]
    found = ours.run(list_offsets_many(ours.cluster, asked))
    assert [each[lookup].offset for each in found] == [7, 30, 29, 17, -1]
    assert [each[lookup].timestamp_ms for each in found] == [-1, -1, NOW_MS + 29, NOW_MS + 17, -1]


def test_a_partition_that_is_not_there_is_an_error_and_not_past_the_end(ours: Client, lookup: TopicPartition) -> None:
    with pytest.raises(UnknownTopicError) as caught:
        ours.run(list_offsets(ours.cluster, {lookup: LATEST, TopicPartition(lookup.topic, 5): LATEST}))
    assert (caught.value.partition, "the topic has 1 partitions" in str(caught.value)) == (5, True)


def test_empty_partitions_begin_where_they_end(ours: Client, new_topic: NewTopic) -> None:
    wishes = dict.fromkeys(partitions(new_topic("empty", partitions=3), 3), parse_start("-10"))
    found = ours.run(resolve(ours.cluster, wishes, now_ms=NOW_MS, ends=True))
    assert found.starts == found.ends == dict.fromkeys(wishes, 0)


def test_stored_needs_a_group(ours: Client, lookup: TopicPartition) -> None:
    with pytest.raises(ClientError, match="needs a group"):
        ours.run(resolve(ours.cluster, {lookup: parse_start("stored")}, now_ms=NOW_MS))


@pytest.mark.only_against("lowwater")
def test_a_thousand_partitions_are_resolved_with_two_requests(own_broker: Callable[..., UnderTest]) -> None:
    under_test = own_broker()
    create_topic(under_test.address, "many", partitions=1_000)
    many = partitions("many", 1_000)
    with client(under_test.bootstrap) as ours:
        ours.write(many[17], 10)
        ours.write(many[512], 20)
        before = under_test.process.requests()  # type: ignore[attr-defined]
        asked_for_committed: list[int] = []

        async def committed(wanted: frozenset[TopicPartition]) -> dict[TopicPartition, int | None]:
            asked_for_committed.append(len(wanted))
            return {one: 5 if one.partition == 17 else None for one in wanted}

        wishes = dict.fromkeys(many, parse_start("stored|-3"))
        found = ours.run(resolve(ours.cluster, wishes, now_ms=NOW_MS, ends=True, committed=committed))
        after = under_test.process.requests()  # type: ignore[attr-defined]
    assert {one.partition: at for one, at in found.starts.items() if at} == {17: 5, 512: 17}
    assert {one.partition: at for one, at in found.ends.items() if at} == {17: 10, 512: 20}
    assert after["ListOffsets"] - before.get("ListOffsets", 0) == 2
    assert asked_for_committed == [1_000]


# ---- fetching


def test_all_rows_of_all_partitions_come_in_order(ours: Client, new_topic: NewTopic) -> None:
    all_ = partitions(new_topic("rows", partitions=4), 4)
    for number, one in enumerate(all_):
        for _ in range(number * 3):
            ours.write(one, 50, value=b"x" * 500)
    reading = Reading(ours, dict.fromkeys(all_, 0), tell_ends=True).until_events(4)
    assert reading.offsets == {one: [*range(150 * number)] for number, one in enumerate(all_)}
    assert sorted(reading.events) == [AtEnd(one, 150 * number) for number, one in enumerate(all_)]
    bounds = reading.fetcher.bounds(all_[2])
    assert bounds == (0, 300, 300)
    ours.write(all_[0], 3)
    reading.until_events(5)
    assert reading.offsets[all_[0]] == [0, 1, 2]
    reading.close()


@pytest.mark.parametrize("version", [4, 6, 7, 11, 12, 13, 16, 18])
def test_every_version_brings_the_same(
    ours: Client, new_topic: NewTopic, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lowwater.client.fetching.asker._VERSIONS", (version, version))
    all_ = partitions(new_topic(f"fetch-v{version}", partitions=2), 2)
    for _ in range(3):
        ours.write(all_[0], 10)
    reading = Reading(ours, {all_[0]: 12, all_[1]: 0}, tell_ends=True).until_events(2)
    ours.write(all_[1], 4)
    reading.until_events(3)
    assert reading.offsets == {all_[0]: [*range(12, 30)], all_[1]: [0, 1, 2, 3]}
    reading.close()


def test_a_record_larger_than_what_one_fetch_brings_still_comes(broker: UnderTest, new_topic: NewTopic) -> None:
    all_ = partitions(new_topic("large", partitions=2), 2)
    with client(broker.bootstrap, max_partition_fetch_bytes=1_000, fetch_max_bytes=2_000) as ours:
        for one in all_:
            for size in (10, 300_000, 10):
                ours.write(one, 1, value=b"x" * size)
        reading = Reading(ours, dict.fromkeys(all_, 0)).until_rows(6)
        assert reading.offsets == {one: [0, 1, 2] for one in all_}
        reading.close()


def test_paused_partitions_bring_nothing_and_go_on(ours: Client, new_topic: NewTopic) -> None:
    first, second = partitions(new_topic("pause", partitions=2), 2)
    ours.write(first, 5)
    reading = Reading(ours, {first: 0, second: 0}, tell_ends=True).until_events(2)
    reading.fetcher.pause([first])
    ours.write(second, 1)
    reading.until_events(3)  # from here on nothing is on its way for the first
    ours.write(first, 5)
    ours.write(second, 1)
    reading.until_events(4)
    assert reading.offsets == {first: [0, 1, 2, 3, 4], second: [0, 1]}
    reading.fetcher.resume([first])
    reading.until_rows(12)
    assert reading.offsets[first] == [*range(10)]
    reading.close()


def test_a_seek_reads_again_or_skips(ours: Client, new_topic: NewTopic) -> None:
    [one] = partitions(new_topic("seek"), 1)
    ours.write(one, 10)
    reading = Reading(ours, {one: 0}, tell_ends=True).until_events(1)
    reading.fetcher.seek(one, 7)
    reading.until_events(2)
    assert reading.offsets[one] == [*range(10), 7, 8, 9]
    reading.close()


def test_many_idle_partitions_do_not_hide_the_one_that_has_something(ours: Client, new_topic: NewTopic) -> None:
    many = partitions(new_topic("idle", partitions=100), 100)
    reading = Reading(ours, dict.fromkeys(many, 0), tell_ends=True).until_events(100)
    for one in (many[99], many[3], many[50]):
        ours.write(one, 2)
        reading.until_events(len(reading.events) + 1)
        assert reading.offsets[one] == [0, 1]
    reading.close()


# ---- out of range


def test_out_of_range_is_an_error_with_the_bounds(ours: Client, lookup: TopicPartition) -> None:
    for offset in (3, 31):
        reading = Reading(ours, {lookup: offset}).until_events(1)
        [failed] = reading.events
        assert isinstance(failed, Failed)
        error = failed.error
        assert isinstance(error, OffsetOutOfRangeError)
        assert (error.offset, error.log_start, error.log_end) == (offset, 7, 30)
        reading.close()


@pytest.mark.parametrize(("policy", "offset", "position"), [("earliest", 3, 7), ("latest", 3, 30), ("earliest", 99, 7)])
def test_a_reset_says_what_is_lost(
    ours: Client, lookup: TopicPartition, policy: str, offset: int, position: int
) -> None:
    reading = Reading(ours, {lookup: offset}, reset=policy, tell_ends=True).until_events(2)
    assert reading.events == [Reset(lookup, offset, position, 7, 30), AtEnd(lookup, 30)]
    assert reading.offsets[lookup] == [*range(position, 30)]
    reading.close()


def test_records_that_are_deleted_under_a_reader_are_told_as_lost(ours: Client, new_topic: NewTopic) -> None:
    one, other = partitions(new_topic("overtaken", partitions=2), 2)
    ours.write(one, 10)
    reading = Reading(ours, {one: 0, other: 0}, reset="earliest", tell_ends=True).until_events(2)
    reading.fetcher.pause([one])
    ours.write(other, 1)
    reading.until_events(3)  # from here on nothing is on its way for the first
    for _ in range(3):
        ours.write(one, 10)
    ours.delete_records(one, 25)
    reading.fetcher.resume([one])
    reading.until_events(5)
    assert reading.events[3:] == [Reset(one, 10, 25, 25, 40), AtEnd(one, 40)]
    assert reading.offsets[one] == [*range(10), *range(25, 40)]
    reading.close()


# ---- topics that change


def test_a_deleted_topic_is_an_error(broker: UnderTest, new_topic: NewTopic) -> None:
    first, second = TopicPartition(new_topic("deleted"), 0), TopicPartition(new_topic("kept"), 0)
    with client(broker.bootstrap, topic_metadata_propagation_max_ms=1_000) as ours:
        reading = Reading(ours, {first: 0, second: 0}, tell_ends=True).until_events(2)
        ours.delete_topic(first.topic)
        reading.until_events(3)
        failed = reading.events[-1]
        assert isinstance(failed, Failed)
        assert (failed.partition, type(failed.error)) == (first, UnknownTopicError)
        ours.write(second, 1)
        reading.until_rows(1)
        reading.close()


def test_a_topic_that_is_made_anew_is_an_error(broker: UnderTest, new_topic: NewTopic) -> None:
    [one] = partitions(new_topic("anew"), 1)
    with client(broker.bootstrap, topic_metadata_propagation_max_ms=LIMIT_MS) as ours:
        ours.write(one, 5)
        reading = Reading(ours, {one: 0}, tell_ends=True).until_events(1)
        ours.delete_topic(one.topic)
        create_again(broker, one.topic)
        reading.until_events(2)
        failed = reading.events[-1]
        assert isinstance(failed, Failed)
        assert isinstance(failed.error, TopicRecreatedError)
        reading.fetcher.seek(one, 0)
        ours.write(one, 3)
        reading.until_rows(8)
        assert reading.offsets[one] == [*range(5), 0, 1, 2]
        reading.close()


def create_again(broker: UnderTest, topic: str) -> None:
    """Apache Kafka deletes in the background: until it has, the name is taken."""
    deadline = time.monotonic() + LIMIT_MS / 1000
    while True:
        try:
            create_topic(broker.address, topic)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        else:
            return


def test_partitions_that_are_added_are_seen(broker: UnderTest, new_topic: NewTopic, fresh_name: str) -> None:
    topic = new_topic(f"{fresh_name}-watched")
    with client(broker.bootstrap) as ours:
        by_name = TopicWatch(ours.cluster, [topic])
        by_pattern = TopicWatch(ours.cluster, pattern=f"{fresh_name}-.*")
        for watch in (by_name, by_pattern):
            seen = ours.run(watch.look())
            assert (seen.added, seen.gone, list(seen.topics)) == ([TopicPartition(topic, 0)], [], [topic])
            assert not ours.run(watch.look()).is_different
        create_topic(broker.address, f"{fresh_name}-another", partitions=2)
        assert not ours.run(by_name.look()).is_different
        assert ours.run(by_pattern.look()).added == partitions(f"{fresh_name}-another", 2)
        ours.delete_topic(f"{fresh_name}-another")
        deadline = time.monotonic() + LIMIT_MS / 1000
        gone: list[TopicPartition] = []
        while not gone and time.monotonic() < deadline:
            gone = ours.run(by_pattern.look()).gone
        assert gone == partitions(f"{fresh_name}-another", 2)


def test_topics_that_are_not_there_cannot_be_watched(broker: UnderTest, fresh_name: str) -> None:
    with client(broker.bootstrap, topic_metadata_propagation_max_ms=500) as ours, pytest.raises(UnknownTopicError):
        ours.run(TopicWatch(ours.cluster, [fresh_name]).look())


# ---- transactions


@pytest.mark.peer("confluent")
def test_open_transactions_hold_back_and_aborted_records_never_come(
    ours: Client, broker: UnderTest, new_topic: NewTopic
) -> None:
    from confluent_kafka import Producer

    [one] = partitions(new_topic("transactions"), 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": one.topic, "log_level": 0})
    producer.init_transactions(60)
    ours.write(one, 2, value=b"plain")
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(3):
            producer.produce(one.topic, b"%s %d" % (end.__name__.encode(), number), partition=0)
        producer.flush(60)
        end(60)
    reading = Reading(ours, {one: 0}, isolation="read_committed").until_rows(5)
    committed = [b"plain"] * 2 + [b"commit_transaction %d" % number for number in range(3)]
    assert reading.values[one] == committed
    producer.begin_transaction()
    producer.produce(one.topic, b"open", partition=0)
    producer.flush(60)
    ours.write(one, 1, value=b"behind")
    everything = Reading(ours, {one: 0}, isolation="read_uncommitted").until_rows(10)
    assert everything.values[one][-2:] == [b"open", b"behind"]
    everything.close()
    ends = ours.run(list_offsets(ours.cluster, {one: LATEST}, isolation="read_committed"))
    assert ends == {one: Found(everything.offsets[one][-2], -1, ends[one].leader_epoch)}
    assert reading.values[one] == committed
    producer.commit_transaction(60)
    reading.until_rows(7)
    assert reading.values[one] == [*committed, b"open", b"behind"]
    reading.close()


# ---- brokers that go away


def test_a_broker_that_is_started_again_is_read_on_from_where_it_was(own_broker: Callable[..., UnderTest]) -> None:
    under_test = own_broker()
    create_topic(under_test.address, "again", partitions=2)
    all_ = partitions("again", 2)
    with client(under_test.bootstrap) as ours:
        for one in all_:
            ours.write(one, 10)
        reading = Reading(ours, dict.fromkeys(all_, 0), tell_ends=True).until_events(2)
        under_test.restart()
        with Wire(under_test.address) as wire:
            wait_for_leaders(wire, "again", 2)
        # The connection that rows are written on stands again.
        ours.run(ours.cluster.retry.run(lambda left_ms: ours.cluster.refresh(["again"], left_ms)))
        for one in all_:
            ours.write(one, 5)
        reading.until_rows(30)
        assert reading.offsets == {one: [*range(15)] for one in all_}
        assert [event for event in reading.events if not isinstance(event, AtEnd)] == []
        reading.close()
