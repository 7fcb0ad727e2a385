"""Sources that are aligned with each other's topics, and begin at other places in them: with a real broker."""

from __future__ import annotations

import pytest
from tests.fresh import fresh
from tests.reader.writing import Writer
from tests.spark.timed import PlannedStream

from lowwater.spark.option_table import OptionError
from lowwater.testing import Broker
from lowwater.types import TopicPartition

HOUR_MS = 3_600_000
T0 = 1_760_054_400_000  # midnight


@pytest.fixture
def topics(writer: Writer) -> tuple[str, str]:
    """A row an hour in each, of ten hours."""
    names = fresh("orders"), fresh("payments")
    for name in names:
        writer.create(name, 1)
        writer.write(TopicPartition(name, 0), [T0 + hour * HOUR_MS for hour in range(10)])
    return names


@pytest.fixture
def streams(broker: Broker, topics: tuple[str, str]):
    """A source of each topic, aligned with the other's."""
    made = []

    def make(**options) -> list[PlannedStream]:
        orders, payments = topics
        for topic, other in ((orders, payments), (payments, orders)):
            given = {"subscribe": topic, "alignWith": other, "cut": "2h", **options}
            made.append(PlannedStream(broker.bootstrap, **given))
            made[-1].stop_at_what_is_there()
        return made[-2:]

    yield make
    for stream in made:
        stream.close()


def test_a_start_says_where_topics_begin_that_are_only_aligned_with(streams, topics) -> None:
    orders, payments = topics
    both = streams(start=f"{orders}=s@{T0 + 7 * HOUR_MS},{payments}=s@{T0 + 3 * HOUR_MS}")
    read = [stream.all() for stream in both]
    cuts = [T0 + hour * HOUR_MS for hour in (4, 6, 8, 10)]
    assert [stream.cuts for stream in both] == [cuts, cuts]
    assert read[0] == [{}, {}, {TopicPartition(orders, 0): (7, 8)}, {TopicPartition(orders, 0): (8, 10)}]
    assert read[1][0] == {TopicPartition(payments, 0): (3, 4)}


def test_partitions_may_be_named_by_the_connectors_json_too(streams, topics) -> None:
    orders, payments = topics
    both = streams(startingOffsets=f'{{"{orders}": {{"0": 7}}, "{payments}": {{"0": 3}}}}')
    assert [len(stream.all()) for stream in both] == [4, 4]
    assert both[0].cuts == both[1].cuts


def test_others_begin_with_what_they_have_where_the_connectors_json_does_not_name_them(
    broker: Broker, topics: tuple[str, str]
) -> None:
    orders, payments = topics
    given = {"subscribe": orders, "alignWith": payments, "startingOffsets": f'{{"{orders}": {{"0": 7}}}}'}
    stream = PlannedStream(broker.bootstrap, cut="2h", **given)
    stream.batch()
    assert stream.cuts == [T0 + 2 * HOUR_MS]
    stream.close()


def test_from_one_group_both_begin_where_it_is(streams, topics, writer: Writer) -> None:
    orders, payments = topics
    group = fresh("group")
    at = {TopicPartition(orders, 0): 8, TopicPartition(payments, 0): 5}
    writer.admin.alter_group_offsets(group, at).checked()
    both = streams(start="stored|earliest", group=group, commitOffsets="false")
    read = [stream.all() for stream in both]
    assert both[0].cuts == both[1].cuts == [T0 + hour * HOUR_MS for hour in (6, 8, 10)]
    assert read[0][-1] == {TopicPartition(orders, 0): (8, 10)}


def test_a_topic_that_is_neither_read_nor_aligned_with_is_refused(streams) -> None:
    both = streams(start="elsewhere=5,earliest")
    with pytest.raises(OptionError, match="start names elsewhere, which is not read"):
        both[0].planner.initial_offset()
