"""What is wrong with a pipeline as a whole, told before Spark starts."""

import pytest
from tests.unit.spark.pipeline.files import GOOD, model_of, problems, spoilt

CASES = [
    # names
    ("FROM orders o", "FROM order o", (30, 6), "step[0].sql", "did you mean orders?"),
    ("JOIN payments p", "JOIN rich p", (31, 6), "step[0].sql", "is not there yet; a step sees"),
    ("FROM orders o", "FROM customers o", (30, 6), "step[0].sql", "default.customers"),
    ("JOIN payments p ON", "JOIN payments p ON (", (31, 20), "step[0].sql", "this parenthesis is not closed"),
    ("SELECT o.order_id", "DELETE o.order_id", (29, 1), "step[0].sql", "DELETE does not begin one"),
    ('from = ["paid", "payments"]', 'from = ["payd", "payments"]', (37, 8), "step[1].from", "did you mean paid?"),
    ('name = "rich"', 'name = "PAID"', (35, 8), "step[1].name", "the name of the step paid already"),
    ('name = "paid"', 'name = "Orders"', (27, 8), "step[0].name", "the name of the source orders already"),
    # sources
    ('topics = "orders"', 'pattern = "o.*"\ntopics = "o"', (13, 1), "source.orders", "exclude each other"),
    ('topics = "orders"\n', "", (13, 1), "source.orders", "topics is missing"),
    ('topics = "orders"', 'topics = "or/ders"', (14, 10), "source.orders.topics", "has characters other than"),
    ("stored|-7d", "stored|-7x", (15, 17), "source.orders.start", "'-7x' is not a start position"),
    ("stored|-7d", "stord|-7d", (15, 10), "source.orders.start", "did you mean stored?"),
    (
        "topics = [",
        'columns = ["vale"]\ntopics = [',
        (22, 12),
        "source.payments.columns[0]",
        "did you mean value?",
    ),
    (
        'topics = "orders"',
        'columns = ["key"]\ntopics = "orders"',
        (14, 11),
        "source.orders.columns",
        "value is decoded",
    ),
    (
        "limit = 1000",
        'watermark = { column = "timestmp", delay = "1m" }',
        (24, 24),
        "source.payments.watermark.column",
        "did you mean timestamp?",
    ),
    ("limit = 1000", 'on_bad_row = "drop"', (24, 1), "source.payments.on_bad_row", "nothing is decoded here"),
    ('"orders-dead"', '"orders"', (19, 30), "source.orders.on_bad_row.dead_letter", "the topic that they come from"),
    ('"orders-dead"', '"a b"', (19, 30), "source.orders.on_bad_row.dead_letter", "has characters other than"),
    (', schema = "order_id long, amount double"', "", (17, 10), "source.orders.decode", "decode.schema is needed"),
    (
        '"order_id long, amount double"',
        '"order_id lng, amount double"',
        (17, 38),
        "source.orders.decode.schema",
        "'lng' at character 10 is not a type that can be decoded",
    ),
    (
        'format = "json", schema = "order_id long, amount double"',
        'format = "avro", schema = "order_id long"',
        (17, 38),
        "source.orders.decode.schema",
        "JSON",
    ),
    ('"stored|-7d|earliest"', '"@2026-11-01"', (15, 11), "source.orders.start", "by timeZone in its options"),
    # clients
    ("localhost:9092", "localhost:port", (7, 21), "kafka.bootstrap.servers", "not host:port"),
    (
        "limit = 1000",
        "options = { minPartitons = 3 }",
        (24, 13),
        "source.payments.options.minPartitons",
        "did you mean minPartitions?",
    ),
    (
        'encode = "json"',
        "options = { topc = 3 }",
        (50, 13),
        "sink.again.options.topc",
        "did you mean topic?",
    ),
    ("limit = 1000", 'options = { endingOffsets = "latest" }', (24, 1), "source.payments.options", "endingOffsets"),
    # sinks
    (
        'from = "rich"\nformat = "parquet"',
        'from = "rch"\nformat = "parquet"',
        (41, 8),
        "sink.out.from",
        "did you mean rich?",
    ),
    ('path = "run/out"\n', "", (40, 1), "sink.out", "path is missing"),
    ('path = "run/out"', 'path = "run/out"\nmode = "update"', (44, 8), "sink.out.mode", "use append"),
    ('topic = "rich"', 'path = "x"', (49, 1), "sink.again.path", "means nothing to topic"),
    (
        'path = "run/out"',
        'path = "run/out"\nkey = "x"',
        (44, 1),
        "sink.out.key",
        "means nothing to parquet; it goes with topic",
    ),
    ('path = "run/out"', 'path = "run/checkpoint/"', (43, 8), "sink.out.path", "is where the checkpoint is already"),
    (
        'path = "run/out"',
        'path = "run/out"\nexactly_once = true',
        (44, 1),
        "sink.out.exactly_once",
        "means nothing to parquet; it goes with topic",
    ),
    ('topic = "rich"', 'exactly_once = "yes"', (49, 16), "sink.again.exactly_once", "has to be true or false"),
    ('topic = "rich"', 'sink_id = "x"', (49, 1), "sink.again.sink_id", "counts only with exactly_once = true"),
    (
        'topic = "rich"',
        'topic = "rich"\nexactly_once = true\nsink_id = "a b"',
        (51, 1),
        "sink.again.sink_id",
        "sinkId cannot be taken",
    ),
    (
        'topic = "rich"',
        'topic = "rich"\nexactly_once = true\nkafka = { acks = "1" }',
        (46, 1),
        "sink.again.options",
        "exactlyOnce needs kafka.acks=all",
    ),
    ('topic = "rich"', 'topic = "ri ch"', (49, 9), "sink.again.topic", "has characters other than"),
    (
        'encode = "json"',
        'options = { checkpointLocation = "x" }',
        (50, 13),
        "sink.again.options.checkpointLocation",
        "the key checkpoint, at the top",
    ),
    # Spark
    ("sql.shuffle.partitions = 2", 'master = "yarn"', (53, 1), "spark", "spark.master is not set here; the key master"),
    ('master = "local[2]"', 'remote = "http://x"', (2, 10), "remote", "it begins with sc://"),
    ('master = "local[2]"', 'master = "yarn"', (3, 14), "checkpoint", "'run/checkpoint' is relative; where"),
]


@pytest.mark.parametrize(
    ("old", "new", "place", "key", "what"), CASES, ids=[f"{case[3]}-{case[4][:20]}" for case in CASES]
)
def test_what_is_wrong_is_told_at_its_place(old, new, place, key, what):
    told = [(line, column, path) for line, column, path, words in problems(spoilt(old, new)) if what in words]
    assert told == [(*place, key)], problems(spoilt(old, new))


def test_a_sink_may_write_a_source_as_it_is():
    assert model_of(spoilt('from = "rich"\nformat = "parquet"', 'from = "payments"\nformat = "parquet"'))


def test_two_sinks_that_write_once_under_one_id_are_refused():
    again = '[sink.third]\nfrom = "paid"\nformat = "topic"\ntopic = "x"\nencode = "json"\nexactly_once = true\n'
    text = spoilt('topic = "rich"', 'topic = "rich"\nexactly_once = true\nsink_id = "one"') + again
    assert model_of(text)
    [(_, _, path, words)] = problems(text + 'sink_id = "one"\n')
    assert path == "sink.third.sink_id"
    assert "the sink again has the same" in words


def test_two_sinks_of_one_folder_are_refused():
    text = GOOD + '[sink.third]\nfrom = "paid"\nformat = "json"\npath = "/here/run/out/"\n'
    [(_, _, path, words)] = problems(text)
    assert path == "sink.third.path"
    assert "is where the sink out is already" in words


def test_without_servers_each_source_and_topic_sink_says_so():
    text = spoilt('bootstrap.servers = "${BOOTSTRAP:-localhost:9092}"\n', "")
    assert [path for _, _, path, words in problems(text) if "bootstrap.servers is not set" in words] == [
        "source.orders",
        "source.payments",
        "sink.again",
    ]


@pytest.mark.parametrize("name", ["bootstrap.server", "boostrap.servers", "bootstrap_servers", "bootstrap"])
def test_servers_that_are_misspelt_are_told_there_and_nowhere_else(name):
    [(line, column, path, words)] = problems(spoilt("bootstrap.servers", name))
    assert (line, column, path) == (7, 1 + len(name) - len(name.split(".")[-1]), f"kafka.{name}")
    assert words == "there is no such setting; did you mean bootstrap.servers?"


def test_servers_that_are_misspelt_at_a_source_are_told_there():
    text = spoilt('bootstrap.servers = "${BOOTSTRAP:-localhost:9092}"\n', "")
    text = spoilt("[source.orders]", '[source.orders]\nkafka = { bootstrap.server = "other:1" }', text)
    told = {path: words for _, _, path, words in problems(text)}
    assert told["source.orders.kafka.bootstrap.server"].endswith("did you mean bootstrap.servers?")
    assert "is not set" in told["source.payments"]


def test_servers_may_be_those_of_a_source_alone():
    text = spoilt('bootstrap.servers = "${BOOTSTRAP:-localhost:9092}"\n', "", GOOD)
    for table in ("[source.orders]", "[source.payments]", "[sink.again]"):
        text = spoilt(table, f'{table}\nkafka = {{ bootstrap.servers = "other:1" }}', text)
    assert problems(text) == []


def test_no_problem_shows_a_secret():
    text = spoilt('"${PASSWORD:-hunter22}"', '"${PASSWORD}"')
    text = spoilt('security.protocol = "SASL_SSL"', 'security.protocol = "${PASSWORD}"', text)
    told = problems(text, PASSWORD="topsecret")
    assert told
    assert "topsecret" not in str(told)


TWICE = """\
name = "shop"
checkpoint = "run"
kafka.bootstrap.servers = "x:1"
[source.orders]
topics = "orders"
[source.again]
{again}
[[step]]
name = "both"
sql = "SELECT * FROM orders o JOIN again a ON o.key = a.key"
[sink.out]
from = "both"
format = "noop"
"""


@pytest.mark.parametrize("again", ['topics = ["x", "orders"]', 'pattern = "ord.*"', "partitions = { orders = [1] }"])
def test_two_sources_do_not_commit_one_topic_to_one_group(again):
    text = TWICE.format(again=again)
    [(_, _, path, words)] = problems(text)
    assert path == "source.again.group"
    assert "orders reads orders too, and both commit to the group 'shop'" in words
    assert "give each a group of its own" in words
    for way_out in ('group = "b"', "options = { commitOffsets = false }", 'kafka = { bootstrap.servers = "y:1" }'):
        assert problems(text.replace(again, f"{again}\n{way_out}")) == []


def test_two_sources_of_one_pattern_do_not_either():
    text = spoilt('topics = "orders"', 'pattern = "o.*"', TWICE.format(again='pattern = "o.*"'))
    assert "both commit to the group 'shop'" in str(problems(text))


def test_partitions_of_one_topic_may_be_read_by_several_sources():
    text = spoilt(
        'topics = "orders"', "partitions = { orders = [0] }", TWICE.format(again="partitions = { orders = [1] }")
    )
    assert problems(text) == []


def test_a_source_that_nobody_reads_commits_nothing():
    text = spoilt(
        "SELECT * FROM orders o JOIN again a ON o.key = a.key", "TABLE orders", TWICE.format(again='topics = "orders"')
    )
    assert problems(text) == []


def test_a_group_may_be_named_by_an_option():
    text = TWICE.format(again='topics = "orders"\noptions = { group = "b" }')
    assert problems(text) == []
    assert "to the group 'b'" in str(
        problems(spoilt('topics = "orders"\n[', 'topics = "orders"\ngroup = "b"\n[', text))
    )


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('topics = "orders"', "topics = 17", "source.orders.topics"),
        ('topics = "orders"', 'topcs = "orders"', "source.orders.topcs"),
        ('topics = "orders"', "partitions = { orders = 3 }", "source.orders.partitions.orders"),
        ('path = "run/out"', "path = 17", "sink.out.path"),
        ('path = "run/out"', 'pth = "run/out"', "sink.out.pth"),
        ('servers = "${BOOTSTRAP:-localhost:9092}"', "servers = [[]]", "kafka.bootstrap.servers"),
    ],
)
def test_a_key_that_is_wrong_is_not_said_to_be_missing_as_well(old, new, key):
    assert [path for _, _, path, _ in problems(spoilt(old, new))] == [key]
