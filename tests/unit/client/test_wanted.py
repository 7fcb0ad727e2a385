"""What a reader is asked for, however it is written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lowwater.client.asked import ReadOptions, SharedOptions, ask
from lowwater.client.wanted import StopAt, moment_ms, start_position, stop_at, wanted
from lowwater.errors import ConfigError
from lowwater.positions.grammar import PositionError
from lowwater.positions.position import Ago, AtOffset, AtTime, BeforeEnd, Earliest, Latest, Stored
from lowwater.types import TopicPartition

ORDERS0 = TopicPartition("orders", 0)


def start_of(one: TopicPartition = ORDERS0, *, has_group: bool = False, **given: Any) -> str:
    return str(wanted("orders", **given).start(one, has_group=has_group))


# -- topics


@pytest.mark.parametrize(
    ("topics", "names", "partitions"),
    [
        ("orders", ("orders",), set()),
        (["orders", "rates", "orders"], ("orders", "rates"), set()),
        ("orders[3]", ("orders",), {("orders", 3)}),
        (ORDERS0, ("orders",), {ORDERS0}),
        (("orders", 0), ("orders",), {ORDERS0}),
        (["orders[0]", TopicPartition("rates", 1)], ("orders", "rates"), {ORDERS0, ("rates", 1)}),
        ({"orders": "-1h", "rates": "earliest"}, ("orders", "rates"), set()),
    ],
)
def test_topics_may_be_names_partitions_or_lists_of_them(topics: Any, names: Any, partitions: Any) -> None:
    found = wanted(topics)
    assert found.names == names
    assert found.partitions == partitions


def test_a_partition_beside_its_whole_topic_says_nothing_more() -> None:
    assert wanted(["orders", "orders[0]"]).partitions == frozenset()


def test_single_partitions_of_one_topic_leave_the_other_topics_whole() -> None:
    found = wanted(["orders[0]", "rates"])
    assert found.has(ORDERS0)
    assert not found.has(TopicPartition("orders", 1))
    assert found.has(TopicPartition("rates", 7))


def test_a_pattern_is_marked_or_named() -> None:
    assert wanted("^orders-.*").pattern == "^orders-.*"
    assert wanted(None, pattern="orders-.*").pattern == "orders-.*"


def test_a_pattern_may_stand_with_its_start() -> None:
    found = wanted({"^orders-.*": "-1h"})
    assert found.pattern == "^orders-.*"
    assert str(found.start(TopicPartition("orders-eu", 0), has_group=False)) == "-1h"
    found = wanted(None, pattern="orders-.*", start={"orders-.*": "-1h", "orders-us": "latest"}, stop={"orders-.*": 5})
    assert str(found.start(TopicPartition("orders-eu", 0), has_group=False)) == "-1h"
    assert str(found.start(TopicPartition("orders-us", 0), has_group=False)) == "latest"
    assert found.stop_of(TopicPartition("orders-us", 0)) == AtOffset(5)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"topics": None}, "no topic"),
        ({"topics": []}, "no topic"),
        ({"topics": "orders,rates"}, "as a list"),
        ({"topics": "or ders"}, "or ders"),
        ({"topics": "orders", "pattern": "x"}, "not both"),
        ({"topics": ["^a", "^b"]}, "one pattern"),
        ({"topics": None, "pattern": "("}, "no regular expression"),
        ({"topics": {"orders": "-1h"}, "start": "latest"}, "twice"),
    ],
)
def test_topics_that_cannot_be_understood_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        wanted(**given)


# -- starts


@pytest.mark.parametrize(
    ("start", "text"),
    [
        ("-1h", "-1h"),
        ("stored|-1h|earliest", "stored|-1h|earliest"),
        (17, "17"),
        (-5, "-5"),
        (np.int64(17), "17"),
        (np.int32(-5), "-5"),
        ({"orders": np.uint8(5)}, "5"),
        (timedelta(minutes=90), "-1h30m"),
        (datetime(2026, 11, 1, tzinfo=UTC), "s@1793491200000"),
        ({"orders": "latest"}, "latest"),
        ({"orders": "latest", "orders[0]": 5}, "5"),
        ({ORDERS0: 5}, "5"),
        ("latest,orders=3", "3"),
        (start_position("today"), "today"),
    ],
)
def test_a_start_is_text_a_number_a_time_or_one_for_each_topic(start: Any, text: str) -> None:
    assert start_of(start=start) == text


def test_without_a_start_everything_is_read_and_a_group_goes_on_where_it_left_off() -> None:
    assert start_of() == "earliest"
    assert start_of(has_group=True) == "stored|earliest"
    assert start_of(start={"orders[1]": "latest"}) == "earliest"


@pytest.mark.parametrize("zone", ["Europe/Berlim", "../etc", ""])
def test_a_zone_that_there_is_not_is_refused(zone: str) -> None:
    with pytest.raises(ConfigError, match="no time zone"):
        wanted("orders", start="today", zone=zone)


def test_a_date_without_a_zone_needs_one() -> None:
    assert start_of(start="@2026-11-01", zone="Europe/Berlin") == "s@1793487600000"
    with pytest.raises(PositionError, match="or state one by the argument zone"):
        wanted("orders", start="@2026-11-01")
    with pytest.raises(ConfigError, match="time zone"):
        wanted("orders", start=datetime(2026, 11, 1))


@pytest.mark.parametrize("start", [1.5, True, b"latest", object(), np.float64(5), np.True_, np.array([5, 6])])
def test_a_start_of_another_kind_is_refused(start: Any) -> None:
    with pytest.raises(ConfigError, match="a position is"):
        wanted("orders", start=start)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (timedelta(hours=-1), r"-3600000 ms ago is in the future; timedelta\(hours=1\)"),
        (timedelta(milliseconds=-1), "is in the future"),
        (timedelta.max, "longer ago than anything was written"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), "1969-12-31T23:59:59.999.* is before 1970.*earliest"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), "is before 1970"),
        (datetime.min.replace(tzinfo=UTC), "is before 1970"),
        (1 << 63, "larger than any offset"),
        (-(1 << 63), "larger than any offset"),
    ],
)
def test_what_is_no_time_or_offset_is_refused_and_does_not_mean_something_else(given: Any, says: str) -> None:
    for positions in ({"start": given}, {"start": {"orders": given}}, {"stop": given}, {"stop": {"orders": given}}):
        with pytest.raises(ConfigError, match=says):
            wanted("orders", **positions)


def test_the_ends_of_time_are_times() -> None:
    assert start_of(start=datetime(1970, 1, 1, tzinfo=UTC)) == "s@0"
    assert start_of(start=datetime.max.replace(tzinfo=UTC)) == "s@253402300799999"
    assert start_of(start=timedelta(0)) == "-0s"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"start": "ordres=latest"}, "start names 'ordres', which is not asked for; did you mean 'orders'?"),
        ({"start": "latest,ordres=earliest"}, "did you mean 'orders'?"),
        ({"start": {"ordres": "latest"}}, "did you mean 'orders'?"),
        ({"start": {TopicPartition("ordres", 0): 5}}, "did you mean 'orders'?"),
        ({"stop": {"ordres": "latest"}}, "stop names 'ordres', which is not asked for; did you mean 'orders'?"),
        ({"stop": {"ordres[0]": "latest"}}, "did you mean 'orders'?"),
        ({"start": "zebras=latest"}, "start names 'zebras', which is not asked for; these are: orders, rates"),
        ({"start": {"rates[1]": 5}}, "start names 'rates[1]', which is not asked for"),
    ],
)
def test_a_position_for_what_is_not_read_is_refused(given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        wanted(["orders", "rates[0]"], **given)


def test_with_a_pattern_topics_may_be_named_that_are_not_there_yet() -> None:
    assert wanted(None, pattern="^o", start="ordres=latest", stop={"orders": 5}).pattern == "^o"


# -- stops


@pytest.mark.parametrize(
    ("choice", "stop"),
    [
        (Latest(), StopAt(10)),
        (Earliest(), StopAt(0)),
        (AtOffset(7), StopAt(7)),
        (AtOffset(70), StopAt(70)),
        (BeforeEnd(3), StopAt(7)),
        (BeforeEnd(30), StopAt(0)),
        (AtTime(400), StopAt(10, 400)),
        (AtTime(600), StopAt(None, 600)),
        (Ago(100), StopAt(10, 400)),
    ],
)
def test_a_stop_is_an_offset_and_for_times_the_end_and_what_is_stamped_before(choice: Any, stop: StopAt) -> None:
    assert stop_at(choice, end=10, now_ms=500) == stop


def test_a_stop_may_differ_by_topic_and_partition() -> None:
    found = wanted(["orders", "rates"], stop={"orders": "latest", "orders[1]": 5})
    assert found.stop_of(ORDERS0) == Latest()
    assert found.stop_of(TopicPartition("orders", 1)) == AtOffset(5)
    assert found.stop_of(TopicPartition("rates", 0)) is None


def test_a_group_says_where_to_start_not_where_to_stop() -> None:
    with pytest.raises(PositionError, match="where to start"):
        wanted("orders", stop="stored")
    with pytest.raises(ConfigError, match="where to start"):
        stop_at(Stored(), end=10, now_ms=0)


# -- the other options


def test_every_option_is_explained_once() -> None:
    names = set(ask.__annotations__) - {"topics", "return"}
    assert names == set(ReadOptions.__annotations__) | set(SharedOptions.__annotations__)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"order": "time"}, "order"),
        ({"batch_size": 0}, "batch_size"),
        ({"held_bytes_max": 0}, "held_bytes_max"),
        ({"on_commit_failure": "ignore"}, "on_commit_failure"),
        ({"on_lost": "skip"}, "on_lost"),
        ({"columns": ["values"]}, "a column"),
        ({"columns": []}, "at least one"),
        ({"columns": ["key", "key"]}, "once each"),
        ({"start": "stored"}, "needs a group"),
        ({"group": "a", "config": {"group.id": "b"}}, "two groups"),
        ({"bootstrap": "a:1", "config": {"bootstrap.servers": "b:1"}}, "twice"),
        ({"cutoff": "latest"}, "no moment"),
        ({"config": {"fetch.max.byte": 1}}, "did you mean fetch.max.bytes"),
        ({"config": "sasl.password=hidden"}, "config is a mapping, {'fetch.min.bytes': 1}, not str$"),
        ({"config": {5: 1}}, "the name of a setting in config is text, not 5"),
        ({"bootstrap": b"a:1"}, "bootstrap.servers has to be text"),
        ({"batch_size": "5"}, "batch_size is a whole number, not '5'"),
        ({"batch_size": 5.0}, "batch_size is a whole number, not 5.0"),
        ({"batch_size": True}, "batch_size is a whole number, not True"),
        ({"held_bytes_max": "1 GB"}, "held_bytes_max is a whole number, not '1 GB'"),
        ({"start": {0: 10}}, r"start is given by topic or partition, 'orders' or 'orders\[0\]', not by 0"),
        ({"stop": {b"orders": 10}}, "stop is given by topic or partition.* not by b'orders'"),
        ({"columns": 5}, "columns is a list of key, .*, not 5"),
        ({"pattern": 5}, "pattern is a regular expression, as text, not 5"),
        ({"zone": 5}, "zone is the name of a time zone, or a tzinfo, not 5"),
        ({"topic_ids": "x"}, "topic_ids is a mapping of topics to their ids, not 'x'"),
    ],
)
def test_options_that_cannot_be_understood_are_refused(given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ask("orders", **given)


@pytest.mark.parametrize(
    ("topics", "says"),
    [
        (5, "topics is a name, a partition, a list of those, or a mapping to their starts, not 5"),
        (b"orders", "topics is a name, .* not b'orders'"),
        (["orders", 5], r"each of topics is a name or a partition, 'orders' or 'orders\[0\]', not 5"),
        ([b"orders"], "each of topics is a name or a partition, .* not b'orders'"),
        ({0: 10}, "each of topics is a name or a partition, .* not 0"),
        ([("orders", "0")], r"each of topics is a name or a partition, .* not \('orders', '0'\)"),
    ],
)
def test_topics_of_another_kind_are_refused(topics: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ask(topics)


@pytest.mark.parametrize(
    "topics", [ORDERS0, ("orders", np.int64(0)), iter(["orders[0]"]), [("orders", 0)], {"orders[0]": 5}]
)
def test_topics_are_looked_at_without_being_used_up(topics: Any) -> None:
    assert ask(topics).wanted.partitions == {ORDERS0}


def test_numbers_of_numpy_are_numbers() -> None:
    assert type(ask("orders", batch_size=np.int64(5)).options.batch_size) is int  # type: ignore[arg-type]


def test_brokers_are_those_given_or_those_of_the_config_or_the_local_one() -> None:
    assert ask("orders").config.list("bootstrap.servers") == ("localhost:9092",)
    assert ask("orders", bootstrap="a:1,b:2").config.list("bootstrap.servers") == ("a:1", "b:2")
    assert ask("orders", bootstrap=["a:1", "b:2"]).config.list("bootstrap.servers") == ("a:1", "b:2")
    assert ask("orders", config={"bootstrap.servers": "c:3"}).config.list("bootstrap.servers") == ("c:3",)


def test_a_cutoff_is_a_moment() -> None:
    assert moment_ms(17, now_ms=0) == 17
    assert moment_ms("-5m", now_ms=600_000) == 300_000
    assert moment_ms(datetime(1970, 1, 1, 0, 1, tzinfo=UTC), now_ms=0) == 60_000
    assert ask("orders", cutoff="-5m").cutoff_ms(600_000) == 300_000


# -- ids of topics


@pytest.mark.parametrize(
    "given",
    ["AAECAwQFBgcICQoLDA0ODw", "00010203-0405-0607-0809-0a0b0c0d0e0f", UUID(bytes=bytes(range(16))), bytes(range(16))],
    ids=["22 characters", "hexadecimal", "UUID", "bytes"],
)
def test_the_id_of_a_topic_may_be_written_as_tools_write_it(given: Any) -> None:
    assert wanted("orders", topic_ids={"orders": given}).topic_ids == {"orders": bytes(range(16))}


@pytest.mark.parametrize("given", ["", "orders", "AAECAwQFBgcICQoLDA0O*w", b"short"])
def test_what_is_no_id_of_a_topic_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="no id of a topic"):
        wanted("orders", topic_ids={"orders": given})
