"""What is wrong with a pipeline as a whole, told before Spark starts."""

import pytest
from tests.unit.spark.pipeline.files import GOOD, model_of, problems, spoilt

from lowwater.spark.pipeline.source_options import dead_letter_options, reading_options

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
    (
        "limit = 1000",
        'options = { endingOffsets = "latest" }',
        (24, 13),
        "source.payments.options.endingOffsets",
        "leave endingOffsets out",
    ),
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
    (
        'path = "run/out"',
        'path = "run/checkpoint/"',
        (43, 8),
        "sink.out.path",
        "has the checkpoint of dead-letters/orders",
    ),
    (
        'path = "run/out"',
        'path = "run/checkpoint/out"',
        (43, 8),
        "sink.out.path",
        "where the checkpoint of out is already",
    ),
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
        (51, 11),
        "sink.again.kafka.acks",
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


FOLDERS = """\
name = "shop"
checkpoint = "{checkpoint}"
kafka.bootstrap.servers = "x:1"
[source.orders]
topics = "orders"
decode = {{ format = "json", schema = "id long" }}
on_bad_row = {{ dead_letter = "dead" }}
[sink.one]
from = "orders"
format = "parquet"
path = "{one}"
[sink.two]
from = "orders"
format = "json"
path = "{two}"
"""


def folder_problems(checkpoint, one, two):
    found = problems(FOLDERS.format(checkpoint=checkpoint, one=one, two=two))
    return [(path, words.partition("; ")[0]) for _, _, path, words in found]


@pytest.mark.parametrize(
    ("checkpoint", "path", "what"),
    [
        ("run", "run/one", "'run/one' is where the checkpoint of one is already"),
        ("run", "/here/x/../run//two/", "'/here/x/../run//two/' is where the checkpoint of two is already"),
        ("run", "run/two/rows", "'run/two/rows' lies within /here/run/two, where the checkpoint of two is"),
        ("run", "run/dead-letters", "'run/dead-letters' has the checkpoint of dead-letters/orders in it"),
        ("run/state", "run", "'run' has the checkpoint of dead-letters/orders in it"),
        ("run", "file:///here/run/one", "'file:///here/run/one' is where the checkpoint of one is already"),
        ("s3a://b/run", "s3a://b/run//one", "'s3a://b/run//one' is where the checkpoint of one is already"),
        ("s3a://b/run", "s3a://b", "'s3a://b' has the checkpoint of dead-letters/orders in it"),
        ("s3a://b", "s3a://b/one/x", "'s3a://b/one/x' lies within s3a://b/one, where the checkpoint of one is"),
    ],
)
def test_output_and_a_checkpoint_do_not_share_a_folder(checkpoint, path, what):
    assert folder_problems(checkpoint, path, "/elsewhere") == [("sink.one.path", what)]


@pytest.mark.parametrize(
    ("checkpoint", "path"),
    [
        ("run", "run/out"),
        ("run", "run/one-more"),
        ("run", "runs"),
        ("run", "run/dead-letters-of-mine"),
        ("s3a://b/run", "s3a://b/run-out"),
        ("s3a://b/run", "s3a://c/run/one"),
        ("s3a://b/here/run", "/here/run/one"),
    ],
)
def test_output_beside_the_folders_of_the_queries_is_allowed(checkpoint, path):
    assert folder_problems(checkpoint, path, "/elsewhere") == []


@pytest.mark.parametrize(
    ("two", "what"),
    [
        ("/out/", "'/out/' is where the sink one is already"),
        ("/out/day", "'/out/day' lies within /out, where the sink one is"),
        ("/", "'/' has the checkpoint of dead-letters/orders in it"),
    ],
)
def test_two_sinks_do_not_share_a_folder(two, what):
    assert folder_problems("run", "/out", two) == [("sink.two.path", what)]


def test_a_folder_that_is_shared_is_told_beside_sql_that_is_wrong():
    text = spoilt("FROM orders o", "FROM orders o (", spoilt('path = "run/out"', 'path = "run/checkpoint/out"'))
    assert [path for _, _, path, _ in problems(text)] == ["step[0].sql", "sink.out.path"]


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


REFUSED = [
    # what all share is told in their table
    (
        'sasl.mechanism = "PLAIN"',
        'sasl.mechanism = "GSSAPI"',
        (9, 6),
        "kafka.sasl.mechanism",
        "Kerberos (GSSAPI) is not",
    ),
    ('sasl.mechanism = "PLAIN"', '"sasl.mechanism" = "GSSAPI"', (9, 1), "kafka.sasl.mechanism", "Kerberos (GSSAPI)"),
    ("sasl.mechanism", "sasl.mechansm", (9, 6), "kafka.sasl.mechansm", "did you mean sasl.mechanism?"),
    (
        'sasl.username = "me"',
        'sasl.username = "me"\nfetch.min.byts = 1',
        (11, 11),
        "kafka.fetch.min.byts",
        "unknown setting 'fetch.min.byts'; did you mean fetch.min.bytes?",
    ),
    (
        'sasl.username = "me"',
        'sasl.username = "me"\nssl = { truststore.location = "a.jks", truststore.type = "JKS" }',
        (11, 20),
        "kafka.ssl.truststore.location",
        "is a Java store (JKS)",
    ),
    ('"SASL_SSL"', '"SSL_SASL"', (8, 10), "kafka.security.protocol", "security.protocol"),
    ('trigger = "10s"', 'cut = "0s"', (4, 1), "cut", "cut"),
    # what one part has for itself is told there
    (
        "limit = 1000",
        'kafka = { sasl.mechanism = "GSSAPI" }',
        (24, 16),
        "source.payments.kafka.sasl.mechanism",
        "Kerberos (GSSAPI)",
    ),
    (
        "limit = 1000",
        "options = { kafka.fetch.min.byts = 1 }",
        (24, 29),
        "source.payments.options.kafka.fetch.min.byts",
        "did you mean fetch.min.bytes?",
    ),
    (
        "limit = 1000",
        'options = { "kafka.sasl.mechanism" = "AWS_MSK_IAM" }',
        (24, 13),
        "source.payments.options.kafka.sasl.mechanism",
        "Amazon's IAM login",
    ),
    (
        "limit = 1000",
        'options = { maxOffsetsPerTrigger = "many" }',
        (24, 13),
        "source.payments.options.maxOffsetsPerTrigger",
        "many",
    ),
    (
        'encode = "json"',
        'kafka = { "compression.typ" = "gzip" }',
        (50, 11),
        "sink.again.kafka.compression.typ",
        "did you mean compression.type?",
    ),
    (
        'encode = "json"',
        'options = { "kafka.acks" = "few" }',
        (50, 13),
        "sink.again.options.kafka.acks",
        "acks",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "place", "key", "what"), REFUSED, ids=[f"{case[3]}-{case[4][:20]}" for case in REFUSED]
)
def test_a_setting_that_is_refused_is_told_where_it_stands_and_once(old, new, place, key, what):
    [(line, column, path, words)] = problems(spoilt(old, new))
    assert ((line, column), path) == (place, key)
    assert what in words


def test_all_settings_that_nobody_knows_are_told_at_once():
    text = spoilt("security.protocol", "security.protocl", spoilt("sasl.username", "sasl.usrname"))
    text = spoilt("limit = 1000", "kafka = { fetch.min.byts = 1 }", text)
    assert [(line, path) for line, _, path, _ in problems(text)] == [
        (8, "kafka.security.protocl"),
        (10, "kafka.sasl.usrname"),
        (24, "source.payments.kafka.fetch.min.byts"),
    ]


def test_settings_of_another_login_are_not_at_fault():
    text = spoilt('sasl.username = "me"', 'sasl.username = "me"\nsasl.kerberos.service.name = "kafka"')
    assert problems(text) == []
    told = problems(spoilt('encode = "json"', 'kafka = { acks = "few" }', text))
    assert [path for _, _, path, _ in told] == ["sink.again.kafka.acks"]


def test_a_login_without_a_protocol_that_has_one_is_told_at_the_table_it_stands_in():
    [(line, _, path, words)] = problems(spoilt('security.protocol = "SASL_SSL"\n', ""))
    assert (line, path) == (6, "kafka")
    assert "a login is given, but security.protocol is PLAINTEXT" in words


LETTERS_LOGIN = """\
options = { kafka.security.protocol = "SASL_SSL", kafka.sasl.mechanism = "PLAIN", kafka.sasl.username = "me", \
kafka.sasl.password = "hunter22" }
"""


def test_dead_letters_log_in_as_their_source_does():
    text = FOLDERS.format(checkpoint="run", one="one", two="two")
    model = model_of(spoilt('topics = "orders"\n', f'topics = "orders"\n{LETTERS_LOGIN}', text))
    [orders] = model.sources
    reading = reading_options(model, orders)
    settings = {name: value for name, value in reading.items() if name.startswith("kafka.")}
    assert settings["kafka.sasl.password"] == "hunter22"
    assert dead_letter_options(model, orders) == {**settings, "topic": "dead"}


def test_what_dead_letters_cannot_be_written_with_is_told_at_the_setting():
    text = FOLDERS.format(checkpoint="run", one="one", two="two")
    text = spoilt('topics = "orders"\n', 'topics = "orders"\noptions = { kafka.key.serializer = "x" }\n', text)
    [(line, column, path, words)] = problems(text)
    assert (line, column, path) == (6, 23, "source.orders.options.kafka.key.serializer")
    assert "is not supported as keys and values are written as" in words


def test_servers_may_stand_among_the_options_of_those_who_need_them():
    text = spoilt('bootstrap.servers = "${BOOTSTRAP:-localhost:9092}"\n', "", GOOD)
    for table in ("[source.orders]", "[source.payments]", "[sink.again]"):
        text = spoilt(table, f'{table}\noptions = {{ kafka.bootstrap.servers = "other:1" }}', text)
    assert problems(text) == []
    wrong = text.replace(
        '[source.payments]\noptions = { kafka.bootstrap.servers = "other:1" }',
        '[source.payments]\noptions = { kafka.bootstrap.servers = "other:x" }',
    )
    [(_, _, path, words)] = problems(wrong)
    assert path == "source.payments.options.kafka.bootstrap.servers"
    assert "not host:port" in words


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
