"""Pipelines as texts, for the tests: one that is right, and ways to spoil it."""

from lowwater.spark.pipeline.checking import check
from lowwater.spark.pipeline.parsing import parse_text
from lowwater.spark.pipeline.problems import PipelineError

GOOD = """\
name = "orders"
master = "local[2]"
checkpoint = "run/checkpoint"
trigger = "10s"

[kafka]
bootstrap.servers = "${BOOTSTRAP:-localhost:9092}"
security.protocol = "SASL_SSL"
sasl.mechanism = "PLAIN"
sasl.username = "me"
sasl.password = "${PASSWORD:-hunter22}"

[source.orders]
topics = "orders"
start = "stored|-7d|earliest"
group = "orders-job"
decode = { format = "json", schema = "order_id long, amount double" }
watermark = { column = "timestamp", delay = "10m" }
on_bad_row = { dead_letter = "orders-dead" }

[source.payments]
topics = ["payments", "refunds"]
on_data_loss = "skip"
limit = 1000

[[step]]
name = "paid"
sql = \"\"\"
SELECT o.order_id
FROM orders o
JOIN payments p ON o.order_id = p.key
\"\"\"

[[step]]
name = "rich"
python = "enriching:enrich"
from = ["paid", "payments"]
arguments = { days = 3 }

[sink.out]
from = "rich"
format = "parquet"
path = "run/out"
partition_by = ["day"]

[sink.again]
from = "rich"
format = "topic"
topic = "rich"
encode = "json"
key = "order_id"

[spark]
sql.shuffle.partitions = 2
"""


def read(text, **environment):
    return parse_text(text, environment, folder="/here")


def model_of(text=GOOD, **environment):
    model, report = read(text, **environment)
    check(model, report)
    assert not report.problems, [str(problem) for problem in report.problems]
    return model


def problems(text, **environment):
    """As (line, column, key, what and hint), in the order of the file."""
    try:
        model, report = read(text, **environment)
    except PipelineError as error:
        found = error.problems
    else:
        check(model, report)
        found = PipelineError(report.problems).problems
    return [(each.line, each.column, each.path, f"{each.what}; {each.hint}") for each in found]


def spoilt(old, new, text=GOOD):
    """The good one with one thing changed."""
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    return text.replace(old, new)
