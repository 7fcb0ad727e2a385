"""Options of the source and the sink: the Kafka connector's, with its words for what is wrong, and ours."""

from __future__ import annotations

import pickle

import pytest

from lowwater.errors import LowwaterError
from lowwater.positions.position import (
    Ago,
    AtOffset,
    AtTime,
    BeforeEnd,
    Earliest,
    Latest,
    StartPosition,
    Stored,
)
from lowwater.spark.option_table import (
    DECODE_OPTIONS,
    OPTION,
    OPTIONS,
    OptionError,
    Where,
    duration_ms,
)
from lowwater.spark.options import Once, SinkOptions, SourceOptions
from lowwater.types import TopicPartition

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BOTH = [A0, A1]


def batch(**options):
    return source(options, streaming=False)


def stream(**options):
    return source(options, streaming=True)


def source(options, *, streaming):
    """Of the topic a, unless the options say otherwise; `__` in a name stands for a point."""
    given = {name.replace("__", "."): text for name, text in options.items()}
    if not given.keys() & {"subscribe", "subscribePattern", "assign", "topics"}:
        given["subscribe"] = "a"
    return SourceOptions.parse({**SERVERS, **given}, streaming=streaming)


def refusal(read=batch, /, **options):
    with pytest.raises(OptionError) as failure:
        read(**options)
    text = str(failure.value)
    assert "\n" not in text  # Spark's users see the last line of it
    return text


def only(*choices):
    return StartPosition(choices)


# ---- defaults


def test_a_batch_query_reads_everything():
    options = batch()
    assert options.start.wishes(BOTH) == {A0: only(Earliest()), A1: only(Earliest())}
    assert options.stop.wishes(BOTH) == {A0: only(Latest()), A1: only(Latest())}


def test_a_stream_reads_what_comes_and_has_no_end():
    options = stream()
    assert options.start.wishes([A0]) == {A0: only(Latest())}
    assert options.stop is None


def test_defaults_are_the_connectors():
    options = stream()
    assert options.fail_on_loss
    assert options.columns == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert (options.offsets_max, options.offsets_min, options.delay_max_ms) == (None, None, 15 * 60_000)
    assert (options.tasks_min, options.task_records_max) == (None, None)
    assert options.poll_timeout_ms == 120_000
    assert "retry.backoff.ms" not in options.client.settings
    assert options.isolation == "read_uncommitted"
    assert options.group is None
    assert not options.commits
    assert options.decode is None
    assert options.order == "none"
    assert options.warnings == ()


def test_values_are_read():
    options = stream(
        failOnDataLoss="FALSE",
        includeHeaders="true",
        maxOffsetsPerTrigger="100",
        minOffsetsPerTrigger=" 10 ",
        maxTriggerDelay="30s",
        minPartitions="8",
        maxPartitions="16",
        maxRecordsPerPartition="5000",
        fetchOffset__numRetries="0",
        fetchOffset__retryIntervalMs="20",
        kafkaConsumer__pollTimeoutMs="512",
        headInterval="1s",
        kafka__isolation__level="read_committed",
    )
    assert not options.fail_on_loss
    assert options.columns[-1] == "headers"
    assert (options.offsets_max, options.offsets_min, options.delay_max_ms) == (100, 10, 30_000)
    assert (options.tasks_min, options.tasks_max, options.task_records_max) == (8, 16, 5000)
    assert (options.client.settings["retry.backoff.ms"], options.poll_timeout_ms) == ("20", 512)
    assert options.head_interval_ms == 1000
    assert options.isolation == "read_committed"


def test_names_are_taken_in_any_case():
    given = {"KAFKA.bootstrap.SERVERS": "localhost:9092", "SubScribe": "a", "STARTINGOFFSETS": "earliest"}
    assert SourceOptions.parse(given, streaming=True).start.wishes([A0]) == {A0: only(Earliest())}


def test_other_names_are_taken():
    options = SourceOptions.parse({"bootstrap.servers": "localhost:9092", "topics": "a"}, streaming=True)
    assert options.topics.names == ("a",)
    assert options.client.settings["bootstrap.servers"] == "localhost:9092"


def test_two_names_of_one_option_are_one_too_many():
    assert refusal(subscribe="a", topics="b") == "subscribe is given twice, once as topics"


def test_options_survive_pickling():
    options = stream(start="a=stored|-1h|earliest,a[1]=17", group="g", decode="json", decode__schema="id long")
    assert pickle.loads(pickle.dumps(options)) == options


def test_the_text_of_options_has_no_secrets():
    options = stream(
        kafka__security__protocol="SASL_SSL",
        kafka__sasl__mechanism="PLAIN",
        kafka__sasl__username="reader",
        kafka__sasl__password="secret-1",
        kafka__ssl__key__password="secret-2",
        decode="avro",
        decode__registry__url="https://registry",
        decode__registry__user="u",
        decode__registry__password="secret-3",
    )
    assert "secret" not in repr(options)
    assert "reader" in repr(options)
    assert options.client.settings["sasl.password"] == "secret-1"


# ---- which topics


def test_topics_are_named_with_commas_between_them():
    assert batch(subscribe=" a, b ,,a").topics.names == ("a", "b")


def test_a_pattern_is_taken_as_it_is():
    assert batch(subscribePattern=" or.*s ").topics.pattern == "or.*s"


def test_partitions_are_assigned():
    topics = batch(assign='{"b": [0], "a": [1, 0]}').topics
    assert topics.partitions == (A0, A1, B0)


@pytest.mark.parametrize(
    ("options", "only"),
    [
        ({"subscribe": "a"}, "a"),
        ({"subscribe": "a,b"}, None),
        ({"subscribePattern": "a"}, None),
        ({"assign": '{"a": [0, 1]}'}, "a"),
    ],
)
def test_the_only_topic_is_known_when_it_is_named(options, only):
    assert batch(**options).topics.only == only


ONE_OF = "One of the following options must be specified for Kafka source: subscribe, subscribePattern, assign"


def test_no_topics_are_refused():
    with pytest.raises(OptionError, match=ONE_OF):
        SourceOptions.parse(SERVERS, streaming=False)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"subscribe": "a", "assign": '{"a": [0]}'},
            "Only one of the following options can be specified for Kafka source",
        ),
        ({"subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is ' , '"),
        ({"subscribe": "a b"}, "subscribe cannot be taken: topic name 'a b' has characters other than"),
        ({"subscribePattern": " "}, "Pattern to subscribe is empty as specified value for option 'subscribePattern'"),
        ({"subscribePattern": "a("}, "subscribePattern: 'a(' is no regular expression of Python"),
        ({"assign": "a"}, "No topicpartitions to assign as specified value for option 'assign' is 'a'"),
        ({"assign": "{}"}, "No topicpartitions to assign as specified value for option 'assign' is '{}'"),
        ({"assign": '{"a": []}'}, "No topicpartitions to assign"),
        ({"assign": '{"a": 0}'}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"a": 0}'),
        ({"assign": '{"a": [-1]}'}, "Expected e.g."),
        ({"assign": '{"a": [true]}'}, "Expected e.g."),
        ({"assign": '{"a": [0]'}, "Expected e.g."),
        ({"assign": '{"a b": [0]}'}, "topic name 'a b'"),
    ],
)
def test_topics_that_cannot_be_read_are_refused(options, text):
    assert text in refusal(**options)


# ---- where to start, as the connector has it


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "earliest"}, only(Earliest())),
        ({"startingOffsets": " Latest "}, only(Latest())),
        ({"startingOffsets": '{"a": {"0": 23}}'}, only(AtOffset(23))),
        ({"startingOffsets": '{"a": {"0": -1}}'}, only(Latest())),
        ({"startingOffsets": '{"a": {"0": -2}}'}, only(Earliest())),
        ({"startingTimestamp": "1500"}, only(AtTime(1500))),
        ({"startingOffsetsByTimestamp": '{"a": {"0": 1500}}'}, only(AtTime(1500))),
        ({"startingTimestamp": "1500", "startingOffsets": "earliest"}, only(AtTime(1500))),
        (
            {"startingOffsetsByTimestamp": '{"a": {"0": 7}}', "startingOffsets": "earliest", "startingTimestamp": "9"},
            only(AtTime(9)),
        ),
        ({"startingOffsetsByTimestamp": '{"a": {"0": 7}}', "startingOffsets": "earliest"}, only(AtTime(7))),
    ],
)
def test_the_connectors_starts(options, expected):
    assert stream(**options).start.wishes([A0]) == {A0: expected}


@pytest.mark.parametrize(
    "options",
    [{"startingOffsets": '{"a": {"0": 23}}'}, {"startingOffsetsByTimestamp": '{"a": {"0": 23}}'}],
)
@pytest.mark.parametrize("partitions", [BOTH, [A1], [B0, A0]])
def test_json_has_to_name_every_partition_and_no_other(options, partitions):
    with pytest.raises(OptionError, match=r"don't match what are assigned.*Specified: \[a-0\] Assigned: \["):
        stream(**options).start.wishes(partitions)


def test_a_long_list_of_partitions_is_cut_short():
    many = [TopicPartition("a", number) for number in range(100)]
    with pytest.raises(OptionError, match=r"a-7 and 92 more\]"):
        stream(startingOffsets='{"a": {"0": 23}}').start.wishes(many)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"startingOffsets": "nonsense"},
            'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got nonsense',
        ),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "Expected e.g."),
        ({"startingOffsets": '{"a": {"0": 1.5}}'}, "Expected e.g."),
        ({"startingOffsets": '{"a": {"x": 1}}'}, "Expected e.g."),
        ({"startingOffsets": '{"a": {"0": true}}'}, "Expected e.g."),
        ({"startingOffsets": '{"a": {"-1": 5}}'}, "Expected e.g."),
        ({"startingOffsets": '{"a": [0]}'}, "Expected e.g."),
        ({"startingOffsets": "[]"}, "Expected e.g."),
        ({"startingTimestamp": "x"}, "Expected a single long value, got x"),
        ({"startingTimestamp": "-1"}, "Expected a single long value, got -1"),
        ({"startingOffsetsByTimestamp": "x"}, 'Expected e.g. {"topicA": {"0": 123456789'),
        ({"startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "Expected e.g."),
        (
            {"startingOffsetsByTimestampStrategy": "guess"},
            "startingOffsetsByTimestampStrategy cannot be 'guess'; it takes `error`, `latest`",
        ),
    ],
)
def test_starts_that_cannot_be_read_are_refused(options, text):
    assert text in refusal(stream, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
        ({"start": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, "startingOffsets for a-0 can't be latest for batch queries on Kafka"),
        ({"start": "a=end"}, "start for a can't be latest for batch queries on Kafka"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
        ({"endingOffsets": '{"a": {"0": -2}}'}, "ending offset for a-0 can't be earliest for batch queries on Kafka"),
        ({"stop": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
    ],
)
def test_a_batch_query_has_to_have_something_between_its_ends(options, text):
    assert refusal(**options) == text


@pytest.mark.parametrize("name", ["startingTimestamp", "startingOffsetsByTimestamp"])
def test_a_time_that_no_record_has_reached_is_an_error(name):
    text = "1500" if name == "startingTimestamp" else '{"a": {"0": 1500, "1": 1500}}'
    start = stream(**{name: text}).start
    start.check_found({A0: 3, A1: 4}, {A0: 4, A1: 5})
    with pytest.raises(OptionError, match="No offset matched from request of topic-partition a-1 and timestamp 1500"):
        start.check_found({A0: 3, A1: 5}, {A0: 4, A1: 5})


def test_or_it_starts_at_the_end_when_so_told():
    start = stream(startingTimestamp="1500", startingOffsetsByTimestampStrategy="LATEST").start
    start.check_found({A0: 5}, {A0: 5})


def test_a_start_in_our_grammar_may_be_at_the_end():
    stream(start="s@1500").start.check_found({A0: 5}, {A0: 5})


# ---- where to end


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"endingOffsets": "latest"}, only(Latest())),
        ({"endingOffsets": '{"a": {"0": 23}}'}, only(AtOffset(23))),
        ({"endingOffsets": '{"a": {"0": -1}}'}, only(Latest())),
        ({"endingTimestamp": "1500"}, only(AtTime(1500))),
        ({"endingOffsetsByTimestamp": '{"a": {"0": 1500}}'}, only(AtTime(1500))),
        ({"endingTimestamp": "9", "endingOffsetsByTimestamp": "x", "endingOffsets": "x"}, only(AtTime(9))),
        ({"endingOffsetsByTimestamp": '{"a": {"0": 7}}', "endingOffsets": "x"}, only(AtTime(7))),
        ({"stop": "-5"}, only(BeforeEnd(5))),
        ({"stop": "e@1500"}, only(AtTime(1500))),
        ({"stop": "a[0]=17"}, only(AtOffset(17))),
    ],
)
def test_ends(options, expected):
    assert batch(**options).stop.wishes([A0]) == {A0: expected}


def test_what_a_stop_does_not_name_is_read_to_its_end():
    assert batch(subscribe="a,b", stop="a=17").stop.wishes([A0, B0]) == {A0: only(AtOffset(17)), B0: only(Latest())}


def test_ends_in_json_have_to_name_every_partition():
    with pytest.raises(OptionError, match=r"endingOffsets don't match.*Specified: \[a-0\] Assigned: \[a-0, a-1\]"):
        batch(endingOffsets='{"a": {"0": 23}}').stop.wishes(BOTH)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
        ({"endingTimestamp": "5"}, "ending timestamp not valid in streaming queries"),
        ({"endingOffsetsByTimestamp": "{}"}, "ending timestamp not valid in streaming queries"),
        ({"stop": "latest"}, "ending offset not valid in streaming queries: leave stop out"),
    ],
)
def test_a_stream_takes_no_end(options, text):
    assert text in refusal(stream, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"startingOffsets": '{"a": {"0": 9}}', "endingOffsets": '{"a": {"0": 3}}'},
            "The specified start offset 9 is greater than the end offset 3 for topic a partition 0",
        ),
        (
            {"startingTimestamp": "9", "endingTimestamp": "3"},
            "The specified start timestamp 9 is greater than the end timestamp 3 for all partitions",
        ),
        (
            {"startingTimestamp": "9", "endingOffsetsByTimestamp": '{"a": {"1": 3}}'},
            "The specified start timestamp 9 is greater than the end timestamp 3 for topic a partition 1",
        ),
        ({"start": "9", "stop": "3"}, "The specified start offset 9 is greater than the end offset 3"),
    ],
)
def test_a_start_behind_its_end_is_refused_before_anybody_is_asked(options, text):
    assert text in refusal(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": '{"a": {"0": 3}}', "endingOffsets": '{"a": {"0": 3}}'},
        {"startingOffsets": '{"a": {"0": -2}}', "endingOffsets": '{"a": {"0": 0}}'},
        {"startingOffsets": '{"a": {"0": 9}}', "endingOffsets": '{"a": {"0": -1}}'},
        {"startingTimestamp": "9", "endingOffsets": '{"a": {"0": 3}}'},
        {"start": "stored|9", "stop": "3", "group": "g"},
    ],
)
def test_ends_that_may_be_in_order_are_taken(options):
    assert batch(**options).stop is not None


# ---- where to start, in our grammar


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", only(Earliest())),
        ("-1h", only(Ago(3_600_000))),
        ("stored|-1h|earliest", only(Stored(), Ago(3_600_000), Earliest())),
        ("a=17,latest", only(AtOffset(17))),
        ("a[0]=5,a=17", only(AtOffset(5))),
        ("@2026-11-01T00:00Z", only(AtTime(1_793_491_200_000))),
    ],
)
def test_starts_in_our_grammar(start, expected):
    assert stream(start=start, group="g").start.wishes([A0]) == {A0: expected}


def test_what_a_start_does_not_name_begins_as_usual():
    assert stream(subscribe="a,b", start="a=5").start.wishes([A0, B0])[B0] == only(Latest())
    assert batch(subscribe="a,b", start="a=5").start.wishes([A0, B0])[B0] == only(Earliest())


def test_a_start_that_names_what_is_not_read_is_refused():
    with pytest.raises(OptionError, match="start names c, which is not read"):
        stream(start="a=5,c=7").start.wishes([A0])
    with pytest.raises(OptionError, match="start names a-7, which is not read"):
        stream(start="a[7]=7").start.wishes([A0])
    with pytest.raises(OptionError, match="stop names c, which is not read"):
        batch(stop="c=7").stop.wishes([A0])


def test_dates_without_a_zone_have_that_of_the_option():
    start = stream(start="@2026-11-01", timeZone="Europe/Berlin").start
    assert start.wishes([A0]) == {A0: only(AtTime(1_793_491_200_000 - 3_600_000))}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"start": "yesterday"}, "'yesterday' is not a start position"),
        ({"start": "@2026-11-01"}, "add Z or +01:00 and the like, or state one by the option timeZone"),
        ({"start": "earliest", "timeZone": "Mars/Olympus"}, "timeZone cannot be 'Mars/Olympus'"),
        ({"start": "stored"}, "start says stored, which is where a group is: say which, by the option group"),
        ({"start": "a=stored|earliest"}, "by the option group"),
        ({"start": "earliest", "startingOffsets": "earliest"}, "start and startingOffsets both say where to start"),
        ({"start": "earliest", "startingTimestamp": "5"}, "start and startingTimestamp both say where to start"),
        ({"start": "stored", "kafka__group__id": "g"}, "by the option group"),
    ],
)
def test_starts_that_are_not_understood_are_refused(options, text):
    assert text in refusal(stream, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stop": "stored"}, "is not a stop: it says where to start"),
        ({"stop": "a=latest|earliest"}, "is not a stop: it takes no fallbacks"),
        ({"stop": "@2026-11-01"}, "or state one by the option timeZone"),
        ({"stop": "latest", "endingOffsets": "latest"}, "stop and endingOffsets both say where to end"),
    ],
)
def test_stops_that_are_not_understood_are_refused(options, text):
    assert text in refusal(batch, **options)


# ---- groups


def test_with_a_group_and_nothing_else_the_query_goes_on_where_the_group_is():
    assert stream(group="g").start.wishes([A0]) == {A0: only(Stored(), Latest())}
    assert batch(group="g").start.wishes([A0]) == {A0: only(Stored(), Earliest())}


def test_a_start_goes_before_the_group():
    assert stream(group="g", startingOffsets="earliest").start.wishes([A0]) == {A0: only(Earliest())}


def test_streams_commit_to_their_group_unless_told_otherwise():
    assert stream(group="g").commits
    assert not stream(group="g", commitOffsets="false").commits
    assert not stream().commits


def test_batch_queries_commit_nothing():
    assert not batch(group="g").commits


def test_the_connectors_group_is_not_committed_to():
    options = stream(kafka__group__id="g")
    assert (options.group, options.commits) == (None, False)
    assert "group.id" not in options.client.settings
    assert options.warnings == (
        "nothing is committed to kafka.group.id: to start from a group and commit to it, say group",
    )


def test_both_groups_may_be_given_when_they_are_one():
    assert stream(group="g", kafka__group__id="g").group == "g"
    assert refusal(stream, group="g", kafka__group__id="h") == "two groups are given: group=g and kafka.group.id=h"


def test_an_empty_group_is_refused():
    assert "group is empty" in refusal(stream, group="")


# ---- clients


def test_clients_have_a_name():
    assert stream().client.settings["client.id"] == "spark-lowwater-source"
    assert stream(groupIdPrefix="jobs").client.settings["client.id"] == "jobs"
    assert stream(groupIdPrefix="jobs", kafka__client__id="me").client.settings["client.id"] == "me"


def test_servers_are_needed():
    with pytest.raises(
        OptionError, match=r"'kafka\.bootstrap\.servers' must be specified for configuring Kafka consumer"
    ):
        SourceOptions.parse({"subscribe": "a"}, streaming=True)
    with pytest.raises(
        OptionError, match=r"'kafka\.bootstrap\.servers' must be specified for configuring Kafka producer"
    ):
        SinkOptions.parse({"topic": "a"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "kafka__auto__offset__reset",
            "Kafka option 'auto.offset.reset' is not supported. Instead set the source option 'startingOffsets'",
        ),
        ("kafka__key__deserializer", "Kafka option 'key.deserializer' is not supported as"),
        ("kafka__value__deserializer", "Kafka option 'value.deserializer' is not supported as"),
        ("kafka__enable__auto__commit", "Kafka option 'enable.auto.commit' is not supported"),
        ("kafka__interceptor__classes", "Kafka option 'interceptor.classes' is not supported"),
    ],
)
@pytest.mark.parametrize("read", [batch, stream])
def test_what_the_connector_forbids_is_forbidden(read, name, text):
    assert text in refusal(read, **{name: "x"})


# ---- limits and tasks


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"minPartitions": "0"}, "minPartitions must be positive"),
        ({"minPartitions": "-3"}, "minPartitions must be positive"),
        ({"minPartitions": "2147483648"}, 'For input string: "2147483648"'),
        ({"minPartitions": "many"}, 'minPartitions is not understood. For input string: "many"'),
        ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be positive"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be positive"),
        ({"maxOffsetsPerTrigger": "9223372036854775808"}, "For input string"),
        ({"minOffsetsPerTrigger": "x"}, 'For input string: "x"'),
        (
            {"minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"},
            "The value of minOffsetPerTrigger(11) is higher than the maxOffsetsPerTrigger(10).",
        ),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay cannot be 'soon', which is no time"),
        ({"failOnDataLoss": "maybe"}, 'failOnDataLoss is not understood. For input string: "maybe"'),
        ({"includeHeaders": "1"}, 'For input string: "1"'),
        ({"fetchOffset__numRetries": "-1"}, "fetchOffset.numRetries must not be negative"),
        ({"headInterval": "0s"}, "headInterval must be positive"),
    ],
)
def test_values_that_are_not_possible_are_refused(options, text):
    assert text in refusal(stream, **options)


def test_limits_of_streams_are_ignored_in_batch_queries_with_a_word():
    options = batch(maxOffsetsPerTrigger="5", minOffsetsPerTrigger="2", maxTriggerDelay="1m")
    assert (options.offsets_max, options.offsets_min) == (None, None)
    assert options.warnings == (
        "maxOffsetsPerTrigger option ignored in batch queries",
        "maxTriggerDelay option ignored in batch queries",
        "minOffsetsPerTrigger option ignored in batch queries",
    )


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("15m", 900_000),
        ("15min", 900_000),
        ("10 s", 10_000),
        ("250ms", 250),
        ("1500us", 1),
        ("2H", 7_200_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        ("77", 77),
        ("0", 0),
    ],
)
def test_times_are_written_as_in_spark(text, expected_ms):
    assert duration_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["", "m", "-1s", "1.5s", "10 years", "1h30m"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="no time"):
        duration_ms(text)


# ---- options that are passed over


def test_an_option_that_nobody_knows_is_told_with_the_nearest_one():
    assert stream(startingOffset="earliest", colour="red").warnings == (
        "colour is ignored: there is no such option",
        "startingoffset (did you mean startingOffsets?) is ignored: there is no such option",
    )


def test_options_of_the_sink_are_told_in_the_source():
    assert stream(topic="a").warnings == ("topic option ignored in streaming queries",)


def test_what_spark_hands_over_itself_is_not_mentioned():
    assert SinkOptions.parse({**SERVERS, "checkpointLocation": "/tmp/x"}).warnings == ()


# ---- cuts


def test_a_cut_is_a_span_of_time():
    given = stream(cut="10m", idleTimeout="30s", alignWith="b, c")
    assert (given.cut_ms, given.idle_ms, given.align_with) == (600_000, 30_000, ("b", "c"))


def test_a_cut_waits_ten_seconds_for_a_silent_partition_unless_told():
    assert stream(cut="10m").idle_ms == 10_000


@pytest.mark.parametrize("options", [{"idleTimeout": "30s"}, {"alignWith": "b"}])
def test_what_belongs_to_a_cut_is_refused_without_one(options):
    assert "counts only with cut" in refusal(stream, **options)


@pytest.mark.parametrize("span", ["0s", "-1m", "soon"])
def test_a_span_that_is_none_is_refused(span):
    assert "cut" in refusal(stream, cut=span)


# ---- order


def test_order_is_by_timestamp_with_a_minute_of_disorder_unless_said():
    assert (stream().order, stream().out_of_order_ms) == ("none", 60_000)
    assert (stream(order="TIMESTAMP").order, batch(order="timestamp").out_of_order_ms) == ("timestamp", 60_000)
    assert stream(order="timestamp", maxOutOfOrder="5m").out_of_order_ms == 300_000
    assert batch(order="timestamp", maxOutOfOrder="0").out_of_order_ms == 0


def test_what_is_the_default_anyway_is_taken():
    assert stream(order="none").order == "none"
    assert SinkOptions.parse({**SERVERS, "exactlyOnce": "false"}).once is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cut": "soon"}, "cut cannot be 'soon', which is no time"),
        ({"cut": "0"}, "cut must be positive"),
        ({"order": "offset"}, "order cannot be 'offset'; it takes `none`, `timestamp`"),
        ({"maxOutOfOrder": "5m"}, "maxOutOfOrder counts only with order=timestamp"),
        ({"idleTimeout": "5m"}, "idleTimeout counts only with cut"),
        ({"alignWith": "b"}, "alignWith counts only with cut"),
    ],
)
def test_they_are_checked_all_the_same(options, text):
    assert text in refusal(stream, **options)


# ---- decoding


def test_the_subject_of_a_registry_is_that_of_the_only_topic():
    options = batch(decode="avro", decode__registry__url="http://registry")
    assert options.decode.registry.subject == "a-value"
    several = batch(subscribe="a,b", decode="avro", decode__registry__url="http://registry")
    assert several.decode.registry.subject is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"decode": "xml", "decode__schema": "x"}, "decode"),
        ({"decode__schema": "id long"}, "decode"),
        ({"decode": "json"}, "decode.schema"),
        ({"decode": "json", "decode__schema": "id long", "decode__shema": "x"}, "decode.shema"),
    ],
)
def test_what_decoding_refuses_is_an_error_of_options(options, text):
    assert text in refusal(batch, **options)


# ---- the sink


def test_a_sink_has_a_topic_or_its_rows_have():
    assert SinkOptions.parse({**SERVERS, "topic": "a"}).topic == "a"
    assert SinkOptions.parse(SERVERS).topic is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topic": "a b"}, "topic cannot be taken: topic name 'a b'"),
        ({"kafka.key.serializer": "x"}, "Kafka option 'key.serializer' is not supported as"),
        ({"kafka.value.serializer": "x"}, "Kafka option 'value.serializer' is not supported as"),
        ({"exactlyOnce": "true"}, "exactlyOnce needs sinkId"),
        ({"exactlyOnce": "true", "sinkId": "a b"}, "sinkId cannot be taken: it has 1 to 200 characters"),
        ({"exactlyOnce": "true", "sinkId": ""}, "sinkId cannot be taken"),
        ({"exactlyOnce": "true", "sinkId": "s", "runId": "r"}, "runId is for batch writes"),
        ({"exactlyOnce": "true", "sinkId": "s", "kafka.acks": "1"}, "exactlyOnce needs kafka.acks=all"),
        ({"exactlyOnce": "true", "sinkId": "s", "kafka.enable.idempotence": "False"}, "needs kafka.acks=all and"),
        ({"exactlyOnce": "true", "sinkId": "s", "kafka.transactional.id": "t"}, "'transactional.id' is not supported"),
        ({"sinkId": "s"}, "sinkId counts only with exactlyOnce=true"),
        ({"sinkLedger": "s"}, "sinkLedger counts only with exactlyOnce=true"),
        ({"runId": "s", "exactlyOnce": "false"}, "runId counts only with exactlyOnce=true"),
        ({"exactlyOnce": "yes"}, 'For input string: "yes"'),
    ],
)
def test_a_sink_refuses_what_it_cannot_take(options, text):
    with pytest.raises(OptionError) as failure:
        SinkOptions.parse({**SERVERS, **options})
    assert text in str(failure.value)


def test_a_batch_write_that_is_to_be_done_once_has_a_name():
    options = {**SERVERS, "exactlyOnce": "true", "sinkId": "s"}
    assert SinkOptions.parse({**options, "runId": "r"}, streaming=False).once == Once("s", "r", "__lowwater_sinks")
    with pytest.raises(OptionError, match="exactlyOnce in a batch write needs runId"):
        SinkOptions.parse(options, streaming=False)


def test_transactions_of_a_sink_may_take_as_long_as_brokers_allow_unless_told_otherwise():
    options = {**SERVERS, "exactlyOnce": "true", "sinkId": "s"}
    assert SinkOptions.parse(options).client.settings["transaction.timeout.ms"] == "900000"
    shorter = SinkOptions.parse({**options, "kafka.transaction.timeout.ms": "5000"})
    assert shorter.client.settings["transaction.timeout.ms"] == "5000"
    assert "transaction.timeout.ms" not in SinkOptions.parse(SERVERS).client.settings


def test_clients_of_a_sink_have_a_name_of_their_own():
    assert SinkOptions.parse(SERVERS).client.settings["client.id"] == "spark-lowwater-sink"


# ---- the table


def test_names_are_there_once_in_any_case():
    assert len(OPTION) == len(OPTIONS)
    aliases = [alias.lower() for option in OPTIONS for alias in option.aliases]
    assert len({*aliases, *OPTION}) == len(aliases) + len(OPTION)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_default_can_be_read(option):
    if option.default is not None:
        option.read(option.default)


def test_every_option_of_decoding_is_in_the_table():
    from lowwater.spark.decoding.spec import OPTIONS as KNOWN

    assert {option.key for option in DECODE_OPTIONS} == set(KNOWN)


def test_every_option_counts_somewhere():
    assert all(option.where in Where.ALL for option in OPTIONS)


def test_errors_of_options_are_caught_with_all_others():
    assert issubclass(OptionError, LowwaterError)
    assert issubclass(OptionError, ValueError)
