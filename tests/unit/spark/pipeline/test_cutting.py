"""Sources of pipelines that are cut: what each is told, so that those of one query choose the same moments."""

import pytest
from tests.unit.spark.pipeline.files import model_of, problems, spoilt

from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.checking import warnings
from lowwater.spark.pipeline.source_options import dead_letter_reading, reading_options
from lowwater.spark.pipeline.together import at_one_moment

CUT = """\
name = "shop"
checkpoint = "run/checkpoint"
cut = "10m"
[kafka]
bootstrap.servers = "localhost:9092"
[source.orders]
topics = "orders"
[source.payments]
topics = ["payments", "refunds"]
[[step]]
name = "paid"
sql = "SELECT * FROM orders o JOIN payments p ON o.key = p.key"
[sink.out]
from = "paid"
format = "noop"
"""
ORDERS, PAYMENTS = 'topics = "orders"\n', 'topics = ["payments", "refunds"]\n'
NOW_MS = 1_763_380_800_000
DAY_MS = 86_400_000


def source(which, more, text=CUT):
    return spoilt(which, which + more + "\n", text)


def told(text=CUT):
    model = model_of(text)
    return [reading_options(model, each, query=model.sources) for each in model.sources]


def alone(text):
    """The same with sources that no query reads together."""
    text = spoilt('"SELECT * FROM orders o JOIN payments p ON o.key = p.key"', '"TABLE orders"', text)
    return text + '[sink.other]\nfrom = "payments"\nformat = "noop"\n'


# ---- what each is told


def test_sources_of_one_query_are_cut_at_the_same_moments():
    orders, payments = told()
    assert (orders["cut"], payments["cut"]) == ("600000ms", "600000ms")
    assert (orders["alignWith"], payments["alignWith"]) == ("payments,refunds", "orders")


def test_each_is_told_where_the_topics_of_all_of_them_begin():
    text = source(PAYMENTS, 'start = "refunds=-3d|latest,-30d"', source(ORDERS, 'start = "-7d|earliest"'))
    orders, payments = told(text)
    assert orders["start"] == payments["start"]
    assert orders["start"] == "orders=-1w|earliest,payments=-4w2d,refunds=-3d|latest"


def test_topics_that_a_start_does_not_name_begin_at_their_end():
    assert told(source(PAYMENTS, 'start = "refunds=-3d"'))[0]["start"].startswith(
        "orders=stored|earliest,payments=latest"
    )


def test_times_that_count_from_now_count_from_the_same_moment():
    model = model_of(source(PAYMENTS, 'start = "refunds[0]=today,stored|-7d"'))
    payments = at_one_moment(model.sources[1], NOW_MS)
    today_ms = NOW_MS // DAY_MS * DAY_MS
    assert payments.start == f"stored|s@{NOW_MS - 7 * DAY_MS},refunds[0]=s@{today_ms}"
    options = reading_options(model, payments, query=(model.sources[0], payments))
    assert SourceOptions.parse(options, streaming=True).start.positions.needs_group


def test_times_without_a_zone_have_that_of_their_source():
    more = 'start = "@2026-11-01"\noptions = { timeZone = "Europe/Berlin" }'
    assert "payments=s@1793487600000" in told(source(PAYMENTS, more))[0]["start"]


def test_limits_of_aligned_sources_count_together():
    both = source(PAYMENTS, "limit = 1000", source(ORDERS, "limit = 500"))
    assert [each["maxOffsetsPerTrigger"] for each in told(both)] == ["1500", "1500"]


def test_sources_that_share_some_topics_have_one_limit():
    more = "limit = 1000\noptions = { commitOffsets = false }\n"
    text = source(PAYMENTS, "limit = 1000", spoilt(ORDERS, f'topics = ["orders", "payments", "refunds"]\n{more}', CUT))
    assert [each["maxOffsetsPerTrigger"] for each in told(text)] == ["2000", "2000"]


def test_sources_of_the_same_topics_have_the_limit_of_each():
    again = 'topics = "orders"\nlimit = 500\noptions = { commitOffsets = false }\n'
    text = spoilt(PAYMENTS, again, source(ORDERS, "limit = 500"))
    assert [each["maxOffsetsPerTrigger"] for each in told(text)] == ["500", "500"]


def test_alignment_can_be_left_out():
    text = source('cut = "10m"\n', "align = false", source(PAYMENTS, "limit = 1000"))
    orders, payments = told(text)
    assert (orders["cut"], orders["start"]) == ("600000ms", "stored|earliest")
    assert "alignWith" not in orders
    assert (payments["maxOffsetsPerTrigger"], orders.get("maxOffsetsPerTrigger")) == ("1000", None)


def test_a_source_that_is_read_alone_is_aligned_with_nothing():
    model = model_of(CUT)
    options = reading_options(model, model.sources[0])
    assert (options["cut"], options["start"]) == ("600000ms", "stored|earliest")
    assert "alignWith" not in options


def test_without_a_cut_nothing_is_aligned():
    assert all(
        "cut" not in options and "alignWith" not in options for options in told(spoilt('cut = "10m"\n', "", CUT))
    )


def test_a_source_by_pattern_follows_the_others_which_do_not_wait_for_it():
    text = spoilt(PAYMENTS, 'pattern = "pay.*"\nstart = "-7d"\n', CUT)
    orders, payments = told(text)
    assert (payments["alignWith"], payments["start"]) == ("orders", "-1w,orders=stored|earliest")
    assert "alignWith" not in orders
    [warning] = warnings(model_of(text))
    assert warning == "source.payments: it reads by pattern, so the other sources of out are cut without it"


def test_partitions_that_a_pattern_begins_elsewhere_are_not_told_to_who_does_not_follow_them():
    orders, payments = told(spoilt(PAYMENTS, 'pattern = "pay.*"\nstart = "earliest,pay[0]=5"\n', CUT))
    assert (orders["start"], payments["start"]) == (
        "orders=stored|earliest",
        "earliest,orders=stored|earliest,pay[0]=5",
    )


# ---- how long they wait


def test_a_source_of_a_pipeline_with_a_cut_may_have_an_idle_timeout():
    text = source(ORDERS, 'options = { idleTimeout = "1s" }', alone(CUT))
    model = model_of(text)
    assert reading_options(model, model.sources[0])["idleTimeout"] == "1s"
    assert warnings(model) == []


def test_the_idle_timeout_of_all_stands_beside_the_cut():
    text = source('cut = "10m"\n', 'idle_timeout = "30s"')
    assert [each["idleTimeout"] for each in told(text)] == ["30000ms", "30000ms"]


@pytest.mark.parametrize("key", ['idle_timeout = "30s"', "align = true"])
def test_keys_that_count_with_a_cut_are_refused_without(key):
    [problem] = problems(spoilt('cut = "10m"', key, CUT))
    assert "counts only with cut" in str(problem)


def test_dead_letters_are_read_without_cuts():
    """No watermark is behind them, and nobody who reads them waits for other partitions."""
    text = source(ORDERS, 'options = { idleTimeout = "1s", alignWith = "payments" }', alone(CUT))
    model = model_of(text)
    options = dead_letter_reading(model, model.sources[0])
    assert not {"cut", "idletimeout", "alignwith"} & {name.lower() for name in options}
    assert (options["includeHeaders"], options["commitOffsets"]) == ("true", "false")
    assert SourceOptions.parse(options, streaming=True).cut_ms is None


@pytest.mark.parametrize(
    ("start", "left"),
    [
        ("orders=-1w,payments=-4w,refunds[1]=5", "orders=-1w"),
        ("payments=-4w", "latest"),
        ("payments=-4w,today", "today"),
        ("orders=-7d,earliest", "orders=-7d,earliest"),
    ],
)
def test_dead_letters_begin_where_their_source_does_whatever_else_its_start_names(start, left):
    more = f'start = "{start}"\noptions = {{ alignWith = "payments,refunds" }}'
    model = model_of(source(ORDERS, more, alone(CUT)))
    assert dead_letter_reading(model, model.sources[0])["start"] == left


def test_so_they_do_where_it_is_an_option():
    more = 'options = { alignWith = "payments", start = "orders=-1w,payments=-4w" }'
    model = model_of(source(ORDERS, more, alone(CUT)))
    assert dead_letter_reading(model, model.sources[0])["start"] == "orders=-1w"


# ---- what cannot be cut together


@pytest.mark.parametrize(
    ("which", "more", "path", "what"),
    [
        (ORDERS, 'options = { cut = "5m" }', "source.orders.options.cut", "the key cut, at the top"),
        (ORDERS, 'options = { idletimeout = "5s" }', "source.orders.options.idletimeout", "the key idle_timeout"),
        (ORDERS, "options = { maxOffsetsPerTrigger = 5 }", "source.orders.options.maxOffsetsPerTrigger", "key limit"),
        (PAYMENTS, 'options = { alignWith = "x" }', "source.payments.options.alignWith", "are aligned with each other"),
        (PAYMENTS, 'options = { start = "-1d" }', "source.payments.options.start", "the key start"),
        (PAYMENTS, 'options = { group = "x" }', "source.payments.options.group", "the key group"),
        (PAYMENTS, "options = { minOffsetsPerTrigger = 5 }", "source.payments.options.minOffsetsPerTrigger", "waits"),
        (PAYMENTS, "limit = 5", "source.orders", "payments has one"),
        (PAYMENTS, 'group = "other"', "source.payments.group", "'other' and not 'shop'"),
        (PAYMENTS, 'kafka = { bootstrap.servers = "b:1" }', "source.payments.kafka", "the same bootstrap.servers"),
        (PAYMENTS, 'kafka = { isolation.level = "read_committed" }', "source.payments.kafka", "same isolation.level"),
    ],
)  # fmt: skip
def test_what_would_part_the_sources_of_a_query_is_refused(which, more, path, what):
    text = source(which, more)
    [(_, _, told_at, words)] = problems(text)
    assert told_at == path
    assert what in words
    assert "align = false" in words
    assert problems(source('cut = "10m"\n', "align = false", text)) == []
    assert problems(alone(text)) == []


def test_some_partitions_of_a_topic_are_not_cut_together_with_another():
    text = spoilt(PAYMENTS, "partitions = { payments = [0] }\n", CUT)
    [(_, _, path, words)] = problems(text)
    assert path == "source.payments.partitions"
    assert "whole topics" in words


def test_groups_may_differ_where_nobody_starts_from_one():
    text = source(PAYMENTS, 'start = "earliest"\ngroup = "other"', source(ORDERS, 'start = "-7d"'))
    assert problems(text) == []
    [(_, _, path, _)] = problems(source(PAYMENTS, 'start = "earliest"\ngroup = "other"'))
    assert path == "source.payments.group"


def test_a_topic_that_two_sources_read_has_one_start_and_one_limit():
    twice = spoilt(PAYMENTS, 'topics = "orders"\ngroup = "b"\nstart = "-7d"\n', source(ORDERS, 'start = "-7d"'))
    assert problems(twice) == []
    [(_, _, path, words)] = problems(spoilt('group = "b"\nstart = "-7d"', 'group = "b"\nstart = "-8d"', twice))
    assert path == "source.payments.start"
    assert "begins elsewhere in the source orders" in words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("orders=-7d,others[0]=5,latest", "-7d"),
        ("others=-7d", "latest"),
        ("orders[1]=-7d,-7d", "orders=-7d"),
    ],
)
def test_starts_that_say_the_same_of_a_topic_in_other_words_are_the_same(one, other):
    twice = spoilt(PAYMENTS, f'topics = "orders"\ngroup = "b"\nstart = "{other}"\n', CUT)
    text = spoilt(
        '[source.orders]\ntopics = "orders"\n',
        f'[source.orders]\ntopics = ["orders", "others"]\nstart = "{one}"\n',
        twice,
    )
    assert problems(text) == []


def test_partitions_of_a_topic_that_two_sources_read_begin_alike():
    twice = spoilt(
        PAYMENTS, 'topics = "orders"\ngroup = "b"\nstart = "-7d"\n', source(ORDERS, 'start = "-7d,orders[1]=5"')
    )
    [(_, _, path, _)] = problems(twice)
    assert path == "source.payments.start"


def test_a_join_of_a_topic_with_itself_is_told_the_way_out_that_there_is():
    """A group of its own would be refused: both begin by the same one."""
    twice = spoilt(PAYMENTS, 'topics = "orders"\n', CUT)
    [(_, _, path, words)] = problems(twice)
    assert path == "source.payments.group"
    assert "commitOffsets = false" in words
    assert "group of its own" not in words
    assert problems(spoilt("[[step]]", "[source.payments.options]\ncommitOffsets = false\n[[step]]", twice)) == []
    [(_, _, _, words)] = problems(spoilt('cut = "10m"\n', "", twice))
    assert "give each a group of its own, or one of them options" in words


def test_a_pattern_may_match_a_topic_of_another_source_where_both_begin_alike():
    """Otherwise it would be told to begin where the other does, and pass over rows without a word."""
    eu = spoilt(ORDERS, 'topics = "orders-eu"\nstart = "latest"\n', CUT)
    text = spoilt(PAYMENTS, 'pattern = "orders.*"\nstart = "earliest"\ngroup = "b"\n', eu)
    [(line, _, path, words)] = problems(text)
    assert (text.splitlines()[line - 1], path) == ('start = "earliest"', "source.payments.start")
    assert "orders-eu begins elsewhere in the source orders" in words
    assert "align = false" in words
    for start in ("latest", "orders-eu=latest,earliest", "orders-us=earliest", "orders-eu[0]=latest,latest"):
        assert problems(spoilt('start = "earliest"', f'start = "{start}"', text)) == []
    assert problems(spoilt('"orders.*"', '"orders-u.*"', text)) == []


def test_a_start_names_topics_that_are_read():
    [(_, _, path, words)] = problems(source(ORDERS, 'start = "ordrs=-7d,earliest"'))
    assert path == "source.orders.start"
    assert "names ordrs, which is not read" in words
    [(_, _, path, words)] = problems(source(ORDERS, 'start = "payments[1]=5,earliest"'))
    assert path == "source.orders.start"
    assert "names payments[1], which is not read" in words


def test_a_start_names_partitions_that_are_read():
    some = spoilt(ORDERS, 'partitions = { orders = [0, 2] }\nstart = "orders[2]=5,earliest"\n', alone(CUT))
    assert problems(some) == []
    [(_, _, path, words)] = problems(spoilt("orders[2]", "orders[1]", some))
    assert path == "source.orders.start"
    assert "names orders[1], which is not read" in words


def test_a_start_names_topics_that_the_pattern_matches():
    text = spoilt(ORDERS, 'pattern = "ord.*"\nstart = "orders=-7d,order[0]=5,earliest"\n', alone(CUT))
    assert problems(text) == []
    [(_, _, path, words)] = problems(spoilt("orders=-7d", "odrers=-7d", text))
    assert path == "source.orders.start"
    assert "names odrers, which is not read" in words


def test_a_start_may_name_topics_that_its_source_is_aligned_with_by_hand():
    more = 'start = "orders=-7d,payments=-30d"\noptions = { alignWith = "x, payments" }'
    assert problems(source(ORDERS, more, alone(CUT))) == []
