"""`lowwater pipeline test`: steps on rows that stand in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.problems import PipelineError

PIPELINE = """
name = "shop"
checkpoint = "checkpoint"
kafka.bootstrap.servers = "localhost:1"
[source.orders]
topics = "orders"
decode = { format = "json", schema = "id long, note struct<text: string, stars: int>, price decimal(9,2)" }
watermark = { column = "timestamp", delay = "1h" }
on_bad_row = "drop"
[source.raw]
topics = "raw"
columns = ["key", "timestamp"]
[[step]]
name = "daily"
sql = '''
SELECT window.start AS day, sum(price) AS price, max(note.stars) AS stars, any(tombstone) AS gone, min(topic) AS topic
FROM orders GROUP BY window(timestamp, '1 day')
'''
[[step]]
name = "keys"
sql = "SELECT key FROM raw"
[sink.out]
from = "daily"
format = "console"
[sink.raw_out]
from = "keys"
format = "console"
"""
RIGHT = """
[[case]]
name = "two days"
given.orders = [
    { id = 1, price = 9.99, note = { text = "fine", stars = 5 }, timestamp = 2026-03-02T12:00:00Z },
    { id = 2, price = "0.01", timestamp = 2026-03-02T23:59:59.999Z },
    { key = "3", tombstone = true, timestamp = 2026-03-03T00:00:00Z },
]
given.raw = [{ key = "a" }]
expect.out = [
    { day = 2026-03-02T00:00:00Z, price = 10, stars = 5, gone = false, topic = "orders" },
    { day = 2026-03-03T00:00:00Z, gone = true, price = 0, stars = 0, topic = "orders" },
]
expect.keys = [{ key = "a" }]
"""


def test_rows_of_a_file_go_through_the_steps(session: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline.parse(PIPELINE, folder=tmp_path)
    tests = tmp_path / "tests.toml"
    tests.write_text(RIGHT)
    report = pipeline.test(tests, spark=session)
    assert (report.cases, report.steps) == (1, 2)
    (difference,) = report.differences  # sums of nothing are null, and TOML has no null
    assert difference.step == "out"
    assert difference.missing == ("day=2026-03-03T00:00:00Z, gone=True, price=0, stars=0, topic='orders'",)
    assert difference.unexpected == ("day=2026-03-03T00:00:00Z, gone=True, price=null, stars=null, topic='orders'",)


def test_a_column_that_a_source_does_not_have_is_told_with_its_place(session: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline.parse(PIPELINE, folder=tmp_path)
    tests = tmp_path / "tests.toml"
    tests.write_text("[[case]]\ngiven.raw = [{ offset = 1 }]\ngiven.orders = [{ pirce = 1 }]\nexpect.keys = []\n")
    with pytest.raises(PipelineError) as caught:
        pipeline.test(tests, spark=session)
    raw, orders = str(caught.value).splitlines()
    assert raw.startswith(f"{tests}:2:16: case[0].given.raw[0].offset: raw has no column offset")
    assert orders.endswith("orders has no column pirce; did you mean price?")


def test_a_value_of_another_type_is_told_with_its_place(session: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline.parse(PIPELINE, folder=tmp_path)
    tests = tmp_path / "tests.toml"
    tests.write_text('[[case]]\ngiven.orders = [{ id = "x", note = { stars = 1.5 } }]\nexpect.keys = []\n')
    with pytest.raises(PipelineError) as caught:
        pipeline.test(tests, spark=session)
    number, stars = str(caught.value).splitlines()
    assert number == f"{tests}:2:24: case[0].given.orders[0].id: this has to be bigint, not text, 'x'"
    assert stars.endswith("case[0].given.orders[0].note.stars: this has to be int, not 1.5")
