"""Pipelines on real Spark: sources that are cut together, rows that are dropped, sinks and modes, beginning anew."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from confluent_kafka import Consumer
from examples.orders.__main__ import PIPELINE
from examples.orders.reading import read_batches
from tests.fresh import fresh
from tests.spark.pipeline_world import World
from tests.spark.reading import PATIENCE_S

from lowwater.cli.main import lowwater
from lowwater.spark import Pipeline
from lowwater.spark.pipeline.failures import ExitCode
from lowwater.spark.pipeline.resetting import Output
from lowwater.spark.pipeline.summary import Outcome

DAY_MS = 86_400_000
TOP = """\
name = "{name}"
checkpoint = "run/checkpoint"
kafka.bootstrap.servers = "{bootstrap}"
"""
ORDERS = """\
[source.orders]
topics = "{orders}"
decode = {{ format = "json", schema = "order_id long, amount double" }}
"""


def sink(**keys: Any) -> str:
    """Of the orders, unless it says otherwise."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"from": "orders", **keys}.items()]
    return "\n".join(["[sink.out]", *lines, ""])


# ---- cut together

CUT = (
    TOP
    + """\
cut = "5d"
[source.orders]
topics = "{orders}"
start = "-7d"
limit = 6
[source.payments]
topics = "{payments}"
start = "-30d"
limit = 6
[[step]]
name = "both"
sql = "SELECT topic, timestamp FROM orders UNION ALL SELECT topic, timestamp FROM payments"
[sink.out]
from = "both"
format = "noop"
"""
)


def test_sources_that_start_at_other_times_are_cut_at_the_same_moments(world: World) -> None:
    """Payments begin 23 days before orders, which go along without rows until then; and one limit counts for both."""
    now_ms = time.time_ns() // 1_000_000
    times = [now_ms - 40 * DAY_MS + place * DAY_MS // 2 for place in range(80)]
    for topic in (world.orders, world.payments):
        world.topics.write(topic, [b"x"] * len(times), times_ms=times)
    summary = world.run(CUT)
    assert summary.rows == sum((now_ms - each) // DAY_MS < days for days in (7, 30) for each in times)
    cuts = [[each["plan"]["cut"] for each in batch] for batch in offsets(world.folder / "run/checkpoint/out")]
    assert [one for one, _ in cuts] == [other for _, other in cuts]
    assert len(cuts) >= 6, "the moments of 30 days"
    for batch in read_batches(world.folder / "run/checkpoint/out"):
        assert sum(end - start for start, end in batch.ranges.values()) <= 12


def offsets(checkpoint: Path) -> list[list[dict[str, Any]]]:
    """By batch, those of each source."""
    numbers = sorted(int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdigit())
    texts = [(checkpoint / "offsets" / str(number)).read_text().splitlines()[2:] for number in numbers]
    return [[json.loads(source) for source in batch] for batch in texts]


TWICE = (
    TOP
    + 'cut = "5d"\n'
    + ORDERS
    + """\
[source.again]
topics = "{orders}"
decode = {{ format = "json", schema = "order_id long" }}
options = {{ commitOffsets = false }}
[[step]]
name = "both"
sql = "SELECT o.order_id, amount FROM orders o JOIN again a ON o.order_id = a.order_id"
"""
)


def test_a_topic_may_be_joined_with_itself_and_is_committed_once(world: World) -> None:
    world.write_orders(0, 1, 2)
    world.write_orders(3, 4, timestamp=1_763_000_000_000 + 6 * DAY_MS)
    text = TWICE + sink(**{"from": "both", "format": "json", "path": "run/out"})
    assert world.run(text).rows == 2 * 5
    assert sorted(row["order_id"] for row in world.json_rows()) == [0, 1, 2, 3, 4]
    assert world.committed(world.orders, 2) == [3, 2]
    assert all(
        one["plan"]["cut"] == other["plan"]["cut"] for one, other in offsets(world.folder / "run/checkpoint/out")
    )


# ---- rows, formats, modes


def test_rows_that_cannot_be_decoded_are_dropped_and_counted_in_the_report(world: World) -> None:
    world.write_orders(*range(6))
    world.topics.write(world.orders, [b"{broken", b"[]"], 1)
    text = TOP + ORDERS + 'on_bad_row = "drop"\n' + sink(format="json", path="run/out")
    done = world.command("run", text, "--json", "--quiet")
    assert done.exit_code == ExitCode.DONE, done.output
    told = json.loads(done.stdout)
    assert (told["pipeline"], told["outcome"], told["exit_code"]) == (world.name, "done", 0)
    [query] = told["queries"]
    assert (query["name"], query["rows"], query["bad_rows"]) == ("out", 8, {"orders": 2})
    assert query["records_behind"] == {"all": 0, "min": 0, "max": 0, "avg": 0}
    assert (query["groups"], query["output"], query["error"]) == ([world.name], str(world.folder / "run/out"), None)
    assert sorted((row["order_id"], row["amount"]) for row in world.json_rows()) == [
        (number, number / 4) for number in range(6)
    ]


def test_a_topic_gets_each_row_once_also_when_the_pipeline_begins_anew(world: World) -> None:
    copy = world.topics.create(1, "copy")
    keys = {"topic": copy, "encode": "json", "key": "order_id", "exactly_once": True}
    text = TOP + ORDERS + sink(format="topic", **keys)
    world.write_orders(*range(5))
    assert world.run(text).outcome is Outcome.DONE
    assert committed_orders(world, copy) == Counter(range(5))
    world.write_orders(5, 6)
    Pipeline.load(world.file(text)).reset(to="earliest")
    assert world.run(text).outcome is Outcome.DONE
    assert committed_orders(world, copy) == Counter([*range(5), *range(7)]), "all of them again, and each once"


def committed_orders(world: World, topic: str) -> Counter[int]:
    """As a reader of committed records sees them."""
    settings = {"bootstrap.servers": world.spark.bootstrap, "group.id": fresh("oracle"), "log_level": 0}
    reading = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({**settings, **reading})
    consumer.subscribe([topic])
    found: Counter[int] = Counter()
    try:
        while (message := consumer.poll(PATIENCE_S)) is not None and message.error() is None:
            found[json.loads(message.value())["order_id"]] += 1
    finally:
        consumer.close()
    return found


COUNTS = '[[step]]\nname = "counts"\nsql = "SELECT amount, count(*) AS orders FROM orders GROUP BY amount"\n'


def test_a_complete_result_is_written_to_a_topic_anew_with_every_batch(world: World) -> None:
    counted = world.topics.create(1, "counted")
    keys = {"from": "counts", "topic": counted, "encode": "json", "key": "amount", "mode": "complete"}
    text = TOP + ORDERS + COUNTS + sink(format="topic", **keys)
    world.write_orders(4, 8)
    assert world.run(text).outcome is Outcome.DONE
    world.write_orders(4)
    assert world.run(text).outcome is Outcome.DONE
    rows = [json.loads(row.value or b"") for row in world.topics.read(counted)]
    first, second = rows[:2], rows[2:]
    assert sorted((row["amount"], row["orders"]) for row in first) == [(1.0, 1), (2.0, 1)]
    assert sorted((row["amount"], row["orders"]) for row in second) == [(1.0, 2), (2.0, 1)]


def test_an_update_has_only_what_has_changed(world: World) -> None:
    text = TOP + ORDERS + COUNTS + sink(**{"from": "counts", "format": "console", "mode": "update"})
    written = []
    for numbers in ((4, 8, 8), (4,)):
        world.write_orders(*numbers)
        [query] = json.loads(world.command("run", text, "--json", "--quiet").stdout)["queries"]
        written.append(query["rows_written"])
    assert written == [2, 1]


# ---- beginning anew


def test_after_a_reset_everything_is_written_again(world: World) -> None:
    text = TOP + ORDERS + sink(format="json", path="run/out")
    world.write_orders(1, 2, 3)
    world.run(text)
    pipeline = Pipeline.load(world.file(text))
    pipeline.reset(output=Output.KEEP)
    assert world.run(text).rows == 0, "the group is where it was"
    pipeline.reset(output=Output.KEEP, to="earliest")
    assert (world.run(text).rows, len(world.json_rows())) == (3, 6)
    done = world.command("reset", text, "--delete-output", "--to", "earliest", "--yes")
    assert done.exit_code == 0, done.output
    assert (world.run(text).rows, len(world.json_rows())) == (3, 3)


# ---- what schedulers and tests are told


def test_a_run_without_a_broker_is_for_later(world: World) -> None:
    text = (TOP + ORDERS + sink(format="noop")).replace("{bootstrap}", "127.0.0.1:1")
    done = world.command("run", text)
    assert done.exit_code == ExitCode.UNREACHABLE
    assert "127.0.0.1:1" in done.output
    assert not (world.folder / "run").exists(), "Spark was not started"


def test_the_examples_rows_are_as_they_expect(world: World) -> None:
    done = CliRunner().invoke(lowwater, ["pipeline", "test", str(PIPELINE)])
    assert done.exit_code == ExitCode.DONE, done.output


def test_rows_that_are_not_expected_have_an_exit_code_of_their_own(world: World) -> None:
    text = TOP + ORDERS + COUNTS + sink(**{"from": "counts", "format": "console", "mode": "update"})
    fixtures = world.folder / "pipeline.test.toml"
    fixtures.write_text("[[case]]\ngiven.orders = [{ amount = 2.5 }]\nexpect.out = [{ amount = 2.5, orders = 2 }]\n")
    done = world.command("test", text)
    assert done.exit_code == ExitCode.DIFFERS, done.output
    assert "orders=2" in done.output
    fixtures.write_text("[[case]]\ngiven.orders = [{ amount = 2.5 }]\nexpect.out = [{ amount = 2.5, orders = 1 }]\n")
    assert world.command("test", text).exit_code == ExitCode.DONE
