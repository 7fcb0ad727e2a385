"""What a pipeline's file says, as values."""

import pytest
from tests.unit.spark.pipeline.files import GOOD, model_of, problems, spoilt

from lowwater.spark.pipeline.model import BadRows, PythonStep, SqlStep, Watermark
from lowwater.spark.pipeline.source_options import reading_options, writing_options


def test_a_whole_file_is_read():
    model = model_of()
    assert (model.name, model.master, model.interval_ms, model.folder) == ("orders", "local[2]", 10_000, "/here")
    assert model.spark == {"spark.sql.shuffle.partitions": "2"}
    orders, payments = model.sources
    assert orders.watermark == Watermark("timestamp", 600_000)
    assert orders.bad_rows == BadRows("dead_letter", "orders-dead")
    assert (orders.group, payments.group) == ("orders-job", "orders")
    assert payments.topics == ("payments", "refunds")
    paid, rich = model.steps
    assert isinstance(paid, SqlStep)
    assert rich == PythonStep("rich", "enriching:enrich", ("paid", "payments"), {"days": 3})
    assert [(sink.name, sink.format, sink.source) for sink in model.sinks] == [
        ("out", "parquet", "rich"),
        ("again", "topic", "rich"),
    ]


def test_a_source_becomes_options():
    model = model_of()
    orders, payments = model.sources
    assert reading_options(model, orders) == {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "me",
        "kafka.sasl.password": "hunter22",
        "subscribe": "orders",
        "start": "stored|-7d|earliest",
        "group": "orders-job",
        "commitOffsets": "true",
        "failOnDataLoss": "true",
        "decode": "json",
        "decode.schema": "order_id long, amount double",
        "decode.onBad": "null",
    }
    told = reading_options(model, payments, commits=False)
    assert told["subscribe"] == "payments,refunds"
    assert told["start"] == "stored|earliest"
    assert (told["failOnDataLoss"], told["maxOffsetsPerTrigger"], told["commitOffsets"]) == ("false", "1000", "false")


@pytest.mark.parametrize(
    ("written", "option", "value"),
    [
        ('pattern = "orders-.*"', "subscribePattern", "orders-.*"),
        ("partitions = { orders = [0, 2] }", "assign", '{"orders": [0, 2]}'),
        ('topics = "a, b"', "subscribe", "a,b"),
        ('topics = "a"\ncolumns = ["value", "headers"]', "includeHeaders", "true"),
        ('topics = "a"\noptions = { minPartitions = 4 }', "minPartitions", "4"),
        ('topics = "a"\noptions = { maxTriggerDelay = "1m", minOffsetsPerTrigger = 2 }', "maxTriggerDelay", "1m"),
        ('topics = "a"\nkafka = { isolation.level = "read_committed" }', "kafka.isolation.level", "read_committed"),
        ('topics = "a"\ndecode = { format = "avro", schema_file = "a.avsc" }', "decode.schemaFile", "/here/a.avsc"),
        (
            'topics = "a"\ndecode = { format = "avro", registry = { url = "http://r", version = 3 } }',
            "decode.registry.version",
            "3",
        ),
        ('topics = "a"\ndecode = { format = "avro", registry = "http://r" }', "decode.registry.url", "http://r"),
    ],
)
def test_keys_of_a_source_become_options(written, option, value):
    model = model_of(spoilt('topics = ["payments", "refunds"]', written))
    assert reading_options(model, model.sources[1])[option] == value


def test_a_topic_sink_becomes_options():
    model = model_of()
    told = writing_options(model, model.sinks[1])
    assert told["topic"] == "rich"
    assert told["kafka.sasl.password"] == "hunter22"


def test_a_sink_that_writes_once_has_an_id_of_pipeline_and_sink():
    assert "exactlyOnce" not in writing_options(model_of(), model_of().sinks[1])
    model = model_of(spoilt('topic = "rich"', 'topic = "rich"\nexactly_once = true'))
    told = writing_options(model, model.sinks[1])
    assert (told["exactlyOnce"], told["sinkId"]) == ("true", f"{model.name}-again")
    model = model_of(spoilt('topic = "rich"', 'topic = "rich"\nexactly_once = true\nsink_id = "mine"'))
    assert writing_options(model, model.sinks[1])["sinkId"] == "mine"


def test_values_show_no_secret():
    assert "hunter22" not in repr(model_of())


@pytest.mark.parametrize(
    ("written", "stop_within_ms"), [("", 120_000), ('stop_within = "0s"', 0), ('stop_within = "5s"', 5000)]
)
def test_a_stop_may_wait_for_nothing(written, stop_within_ms):
    assert model_of(spoilt('trigger = "10s"', written)).stop_within_ms == stop_within_ms


def test_lengths_of_nothing_are_not_taken_for_none():
    model = model_of(spoilt('trigger = "10s"', 'trigger = "0s"', spoilt('delay = "10m"', 'delay = "0s"')))
    assert (model.interval_ms, model.sources[0].watermark) == (0, Watermark("timestamp", 0))


def test_names_of_spark_s_settings_may_be_whole():
    model = model_of(
        spoilt("sql.shuffle.partitions = 2", '"spark.sql.shuffle.partitions" = 3\nspark.speculation = true')
    )
    assert model.spark == {"spark.sql.shuffle.partitions": "3", "spark.speculation": "true"}


def test_relative_names_begin_beside_the_file_and_addresses_stay():
    model = model_of()
    assert model.location("run/out") == "/here/run/out"
    assert model.location("s3a://bucket/out") == "s3a://bucket/out"
    assert model.location("file:/data/out") == "file:/data/out"
    assert model.location("/data/out") == "/data/out"


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('name = "orders\n', (1, 15), "this is not TOML: Illegal character"),
        ("a = 1\na = 2\n", (2, 6), "Cannot overwrite a value"),
        ("a = [1,", (1, 8), "this is not TOML"),
    ],
)
def test_a_text_that_is_no_toml_is_refused_at_its_place(text, place, what):
    [(line, column, _, told)] = problems(text)
    assert (line, column) == place
    assert what in told


KINDS = [
    ('name = "orders"', "name = 7", 1, "name", "has to be text, not a number"),
    ('name = "orders"', 'name = "my orders"', 1, "name", "has characters other than"),
    ('checkpoint = "run/checkpoint"', 'checkpoint = " "', 3, "checkpoint", "this is empty"),
    ('trigger = "10s"', 'trigger = "often"', 4, "trigger", "there are available-now and durations"),
    ('trigger = "10s"', 'trigger = "10 seconds"', 4, "trigger", "not a length of time"),
    ('trigger = "10s"', 'triger = "10s"', 4, "triger", "did you mean trigger?"),
    ('trigger = "10s"', 'remote = "sc://x"', 4, "remote", "a master or a remote, not both"),
    ("[kafka]", "[kafka]\nx = [[1]]", 7, "kafka.x", "text, a number, true or false"),
    ('topics = "orders"', "topics = 3", 14, "source.orders.topics", "a name, or a list of names"),
    ('topics = "orders"', "topics = []", 14, "source.orders.topics", "this list is empty"),
    ('topics = "orders"', 'pattern = "("', 14, "source.orders.pattern", "not a regular expression"),
    ('topics = "orders"', "partitions = { orders = 1 }", 14, "source.orders.partitions.orders", "a list of partitions"),
    ('"stored|-7d|earliest"', "true", 15, "source.orders.start", "has to be text, not true or false"),
    (
        'decode = { format = "json"',
        'decode = { format = "jsn"',
        17,
        "source.orders.decode.format",
        "did you mean json?",
    ),
    ('decode = { format = "json"', "decode = { fomat = 1", 17, "source.orders.decode.fomat", "did you mean format?"),
    ('delay = "10m"', 'delay = "ten"', 18, "source.orders.watermark.delay", "not a length of time"),
    (', delay = "10m"', "", 18, "source.orders.watermark", "delay is missing"),
    ('{ column = "timestamp", delay = "10m" }', "3", 18, "source.orders.watermark", "has to be a table, not a number"),
    ('{ dead_letter = "orders-dead" }', '"ignore"', 19, "source.orders.on_bad_row", "there are fail, drop and"),
    ('on_data_loss = "skip"', 'on_data_loss = "skp"', 23, "source.payments.on_data_loss", "did you mean skip?"),
    ("limit = 1000", "limit = 0", 24, "source.payments.limit", "whole number above 0, not 0"),
    ("limit = 1000", "limit = true", 24, "source.payments.limit", "whole number above 0"),
    ('name = "paid"', 'name = "so-so"', 27, "step[0].name", "cannot be a name in SQL"),
    ('python = "enriching:enrich"', 'python = "enriching.enrich"', 36, "step[1].python", "not module:function"),
    ('from = ["paid", "payments"]', "", 34, "step[1]", "from is missing"),
    ("arguments = { days = 3 }", 'sql = "SELECT 1"', 36, "step[1].python", "either sql or python"),
    ('name = "rich"\npython', 'name = "rich"\npithon', 36, "step[1].pithon", "did you mean python?"),
    ('format = "parquet"', 'format = "parket"', 42, "sink.out.format", "did you mean parquet?"),
    ('encode = "json"', 'encode = "xml"', 50, "sink.again.encode", "there are json"),
    ("[sink.out]", '[sink."a b"]', 40, "sink.a b", "cannot be a name in SQL"),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "what"), KINDS, ids=[f"{kind[3]}-{kind[1][:20]}" for kind in KINDS]
)
def test_what_cannot_be_read_is_told_with_its_line(old, new, line, key, what):
    told = [(at, path) for at, _, path, words in problems(spoilt(old, new)) if what in words]
    assert told == [(line, key)]


def test_everything_is_told_at_once():
    text = spoilt('trigger = "10s"', 'trigger = "often"', spoilt("limit = 1000", "limit = -1"))
    text = spoilt('format = "parquet"', 'format = "parket"', text)
    assert [line for line, *_ in problems(text)] == [4, 24, 42]


def test_an_empty_file_says_what_is_needed():
    assert {words.split(" is missing")[0] for *_, words in problems("")} == {"name", "checkpoint", "source", "sink"}


@pytest.mark.parametrize("table", ["source = 1", "step = 1", "sink = []", "kafka = 'x'", "spark = 3", "step = [1]"])
def test_tables_of_another_kind_are_refused(table):
    key = table.split(" ")[0]
    assert any(path.startswith(key) and "has to be" in words for _, _, path, words in problems(table + "\n"))


def test_the_good_file_has_no_problem():
    assert problems(GOOD) == []
