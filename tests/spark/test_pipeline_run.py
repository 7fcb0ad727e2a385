"""Pipelines on real Spark: rows that confluent-kafka wrote go in, and what comes out is compared with plain Python."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.spark.pipeline_world import FILE, World
from tests.spark.reading import Spark
from tests.spark.writing import Written

from lowwater.cli.main import lowwater
from lowwater.spark import Pipeline, PipelineError
from lowwater.spark.pipeline.failures import ExitCode
from lowwater.spark.pipeline.model import Sink
from lowwater.spark.pipeline.sinks import encoded
from lowwater.spark.pipeline.summary import Outcome

PATIENCE_S = 300


def paid(*numbers: int, method: str = "card") -> list[tuple[Any, ...]]:
    return [(number, number / 4, number / 4 * 110 / 100, method) for number in numbers]


def headers_of(letter: Written) -> dict[str, bytes | None]:
    return dict(letter.headers or ())


def test_what_goes_in_comes_out_once_and_a_second_run_goes_on(world: World) -> None:
    world.write_orders(*range(20))
    world.topics.write(world.orders, [b"{broken"], 1, key=b"k", headers=[("mine", b"1")])
    world.topics.write(world.orders, [None], 0, key=b"3")  # a tombstone is no order, and no broken row
    world.pay(*range(5, 15))

    first = world.run()
    assert (first.outcome, first.exit_code) == (Outcome.DONE, ExitCode.DONE)
    assert world.files() == paid(*range(5, 15))
    assert [(query.name, dict(query.bad_rows)) for query in first.queries] == [
        ("dead-letters/orders", {}),
        ("files", {"orders": 1}),
    ]

    [letter] = world.topics.read(world.dead)
    assert (letter.key, letter.value) == (b"k", b"{broken")
    told = headers_of(letter)
    assert told["mine"] == b"1"
    assert (told["lowwater.topic"], told["lowwater.partition"]) == (world.orders.encode(), b"1")
    assert told["lowwater.offset"] == b"10"
    assert told["lowwater.reason"]

    assert world.committed(world.orders, 2) == [11, 11]

    world.write_orders(20, 21)
    world.pay(0, 20, method=b"cash")
    second = world.run()
    assert second.outcome is Outcome.DONE
    assert world.files() == sorted(paid(*range(5, 15)) + paid(0, 20, method="cash"))
    assert world.committed(world.orders, 2) == [12, 12]
    assert len(world.topics.read(world.dead)) == 1


ROWS = """\
name = "{name}"
checkpoint = "run/checkpoint"
{more}
[kafka]
bootstrap.servers = "{bootstrap}"
[source.orders]
topics = "{orders}"
decode = {{ format = "json", schema = "order_id long" }}
[sink.out]
from = "orders"
format = "parquet"
path = "run/out"
"""


def test_a_row_that_cannot_be_decoded_ends_the_run_and_is_named(world: World) -> None:
    world.topics.write(world.orders, [b"[1", b'{"order_id": 1}'], 1)
    file = world.file(ROWS.replace("{more}", ""))
    done = CliRunner().invoke(lowwater, ["pipeline", "run", str(file)])
    assert done.exit_code == ExitCode.FAILED
    assert f"the value of {world.orders}-1 at offset 0 cannot be decoded" in done.output
    assert "Traceback" not in done.output
    assert 'on_bad_row = "drop"' in done.output
    assert "written to" not in done.output
    assert "committed to" not in done.output


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        threading.Event().wait(0.05)


@pytest.fixture
def harmless_sigterm() -> Iterator[None]:
    """A signal that nobody waits for any more must not end the tests."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("harmless_sigterm")
def test_a_signal_stops_a_pipeline_after_its_running_batch(world: World) -> None:
    """Also when the next one would begin at once: there are many more rows than a batch may have."""
    world.write_orders(*range(400))
    text = ROWS.replace("{more}", 'trigger = "1ms"').replace("decode =", "limit = 4\ndecode =")
    file = world.file(text)
    checkpoint = world.folder / "run" / "checkpoint" / "out"
    finished = checkpoint / "commits" / "0"

    def stop_when_the_first_batch_is_done() -> None:
        wait_for(finished.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop_when_the_first_batch_is_done)
    thread.start()
    done = CliRunner().invoke(lowwater, ["pipeline", "run", str(file)])
    thread.join()
    assert done.exit_code == ExitCode.STOPPED, done.output
    batches = [{name for name in os.listdir(checkpoint / log) if name.isdigit()} for log in ("offsets", "commits")]
    assert batches[0] == batches[1], "all that was begun is finished"
    read = pq.read_table(world.folder / "run" / "out")["order_id"].to_pylist()
    assert len(read) == len(set(read)) == 4 * len(batches[0]) < 400
    assert sum(world.committed(world.orders, 2)) == len(read)


def test_explain_shows_columns_and_tells_what_spark_refuses_at_its_line(world: World) -> None:
    done = CliRunner().invoke(lowwater, ["pipeline", "explain", str(world.file())])
    assert done.exit_code == 0, done.output
    assert "  order_id bigint" in done.output
    assert "  record_timestamp timestamp" in done.output
    assert "  total double" in done.output
    assert "StreamingRelation" in done.output

    text = FILE.replace("o.amount,", "o.amont,")
    with pytest.raises(PipelineError) as refused:
        Pipeline.load(world.file(text)).explain(spark=world.spark.session)
    [problem] = refused.value.problems
    assert (problem.line, problem.column, problem.path) == (19, 20, "step[0].sql")
    assert "amont" in problem.what


SQL_STEP = '\n[[step]]\nname = "large"\nsql = "SELECT order_id FROM orders WHERE order_id > 7"\n'


def test_explain_shows_the_plan_of_a_sink_straight_behind_sql(world: World) -> None:
    text = ROWS.replace("{more}", "").replace('from = "orders"', 'from = "large"') + SQL_STEP
    done = world.command("explain", text)
    assert done.exit_code == 0, done.output
    assert "  order_id bigint" in done.output
    assert "> 7)" in done.output
    assert "StreamingRelation" in done.output


def test_explain_tells_a_key_that_is_no_column_at_its_sink(world: World) -> None:
    text = ROWS.replace("{more}", "").replace('format = "parquet"\npath = "run/out"', TO_TOPIC)
    done = world.command("explain", text)
    assert done.exit_code == ExitCode.WRONG_FILE, done.output
    assert "pipeline.toml:9:1: sink.out: " in done.output
    assert "nowhere" in done.output


TO_TOPIC = 'format = "topic"\ntopic = "out"\nencode = "json"\nkey = "nowhere"'


def test_rows_for_a_topic_are_made_of_their_columns(spark: Spark) -> None:
    rows = spark.session.sql("SELECT 7 AS order_id, 3 AS partition, 'elsewhere' AS topic")
    made = encoded(rows, Sink("out", "rows", "topic", key="order_id", encode="json"))
    assert made.columns == ["topic", "key", "value"]
    [(topic, key, value)] = [tuple(row) for row in made.collect()]
    assert (topic, key, json.loads(value)) == ("elsewhere", "7", {"order_id": 7, "partition": 3, "topic": "elsewhere"})
    fixed = encoded(rows, Sink("out", "rows", "topic", key="order_id", encode="json", topic="here"))
    assert fixed.columns == ["key", "value"]


def test_a_mode_that_a_query_cannot_be_written_in_is_told_at_its_sink(world: World) -> None:
    text = ROWS.replace("{more}", "").replace('from = "orders"', 'from = "counts"')
    text += '\n[[step]]\nname = "counts"\nsql = "SELECT order_id, count(*) FROM orders GROUP BY order_id"\n'
    with pytest.raises(PipelineError) as refused:
        Pipeline.load(world.file(text)).run(spark=world.spark.session)
    [problem] = refused.value.problems
    assert problem.path == "sink.out"
    assert "append" in problem.what.lower()


def test_a_query_that_spark_refuses_keeps_the_others_from_starting(world: World) -> None:
    world.topics.write(world.orders, [b"{broken"], 0)
    with pytest.raises(PipelineError) as refused:
        world.run(FILE.replace("o.amount,", "o.amont,"))
    [problem] = refused.value.problems
    assert (problem.line, problem.path) == (19, "step[0].sql")
    begun = {each.suffix for each in (world.folder / "run").rglob("*") if each.is_file()}
    assert begun == {".lock"}, "also dead letters have no checkpoint yet"
    assert not world.topics.read(world.dead)


def test_folders_by_a_column_that_is_not_there_keep_everything_from_starting(world: World) -> None:
    text = ROWS.replace("{more}", "").replace('path = "run/out"', 'path = "run/out"\npartition_by = "ordr_id"')
    with pytest.raises(
        PipelineError, match=r"pipeline.toml:13:16: .*no column 'ordr_id'; did you mean order_id"
    ) as refused:
        world.run(text)
    [problem] = refused.value.problems
    assert problem.path == "sink.out.partition_by"
    assert not (world.folder / "run/checkpoint/out").exists()


def test_a_topic_that_is_not_there_is_told_before_anything_starts(world: World) -> None:
    file = world.file(ROWS.replace("{more}", "").replace("{orders}", "nowhere"))
    done = CliRunner().invoke(lowwater, ["pipeline", "run", str(file)])
    assert done.exit_code == ExitCode.FAILED
    assert "pipeline.toml:7:10: source.orders.topics: there is no topic 'nowhere'" in done.output
