"""Topics and records that go while they are read, and while others wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.under_test import UnderTest
from tests.reader.writing import PATIENCE_S, Writer

import lowwater
from lowwater import Lost, Reader, TopicPartition
from lowwater.client.errors import OffsetOutOfRangeError, UnknownTopicError

TopicOf = Callable[..., str]
# One batch at a time, so that most of a topic is still to come when it goes.
ONE_BY_ONE = {"fetch.max.bytes": 1, "max.partition.fetch.bytes": 1}
SOON = {"metadata.max.age.ms": 500, "topic.metadata.propagation.max.ms": 1000}
ROWS = 200


def places(batch: Any) -> list[tuple[str, int, int]]:
    """(topic, partition, offset) of each row."""
    return list(zip(*(batch.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True))


def read_into(found: list[tuple[str, int, int]], reader: Reader, count: int | None = None) -> None:
    """Until there are as many, or until it raises."""
    until = time.monotonic() + PATIENCE_S
    while (count is None or len(found) < count) and time.monotonic() < until:
        found += places(reader.poll(1000))


def early_and_late(topic_of: TopicOf) -> tuple[str, str, list[tuple[str, int, int]]]:
    """A topic that others wait for, one that waits, of two partitions, and the order of that one's rows."""
    early = topic_of([*range(ROWS)])
    late = topic_of([10_000, 10_002, 10_004], [10_001, 10_003, 10_005])
    return early, late, [(late, number % 2, number // 2) for number in range(6)]


def test_rows_that_waited_for_a_topic_that_is_deleted_come_in_order_once_it_is_dropped(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    early, late, in_order = early_and_late(topic_of)
    config = {**ONE_BY_ONE, **SOON}
    with lowwater.read([early, late], bootstrap=broker.bootstrap, batch_size=1, config=config) as reader:
        found: list[tuple[str, int, int]] = []
        read_into(found, reader, 3)
        writer.admin.delete_topics([early]).checked()
        for _ in range(2):
            with pytest.raises(UnknownTopicError) as raised:
                read_into(found, reader)
            assert raised.value.topic == early
        assert found == [(early, 0, offset) for offset in range(len(found))], "nobody overtakes it"
        assert len(found) < ROWS
        assert not reader.is_live
        reader.drop(early)
        rest: list[tuple[str, int, int]] = []
        read_into(rest, reader, 6)
        assert rest == in_order
        assert (reader.is_live, reader.late_rows, reader.lost) == (True, 0, [])


def test_records_that_go_while_they_are_read_are_an_error_with_the_bounds_and_others_wait(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    early, late, in_order = early_and_late(topic_of)
    with lowwater.read([early, late], bootstrap=broker.bootstrap, batch_size=1, config=ONE_BY_ONE) as reader:
        found: list[tuple[str, int, int]] = []
        read_into(found, reader, 3)
        writer.admin.delete_records({TopicPartition(early, 0): ROWS - 5}).checked()
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError) as raised:
                read_into(found, reader)
            assert (raised.value.topic, raised.value.partition, raised.value.offset) == (early, 0, len(found))
            assert (raised.value.log_start, raised.value.log_end) == (ROWS - 5, ROWS)
        assert found == [(early, 0, offset) for offset in range(len(found))]
        assert len(found) < ROWS - 5
        reader.seek(early, 0, "earliest")
        rest: list[tuple[str, int, int]] = []
        read_into(rest, reader, 11)
        assert rest == [(early, 0, offset) for offset in range(ROWS - 5, ROWS)] + in_order
        assert (reader.is_live, reader.late_rows) == (True, 0)


@pytest.mark.parametrize(("on_lost", "goes_on"), [("earliest", ROWS - 5), ("latest", ROWS)])
def test_with_a_reset_the_range_that_went_is_told_to_the_offset_and_others_wait(
    on_lost: Any, goes_on: int, broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    early, late, in_order = early_and_late(topic_of)
    given: Any = {"bootstrap": broker.bootstrap, "batch_size": 1, "config": ONE_BY_ONE, "on_lost": on_lost}
    with lowwater.read([early, late], **given) as reader:
        found: list[tuple[str, int, int]] = []
        read_into(found, reader, 3)
        writer.admin.delete_records({TopicPartition(early, 0): ROWS - 5}).checked()
        while (late, 1, 2) not in found:
            read_into(found, reader, len(found) + 1)
        [lost] = reader.lost
        assert lost == Lost(early, 0, lost.first, goes_on)
        assert 3 <= lost.first < ROWS - 5
        came = [*range(lost.first), *range(goes_on, ROWS)]
        assert found == [(early, 0, offset) for offset in came] + in_order
        assert (reader.is_live, reader.late_rows) == (True, 0)
        assert reader.stats.lost_offsets == goes_on - lost.first
