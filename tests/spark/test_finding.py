"""Spark finds the format by itself, and says what is wrong with how it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.errors import AnalysisException, PythonException
from tests.spark.reading import PATIENCE_S, Spark, collect_into, values
from tests.spark.writing import Topics

import lowwater.spark


def test_the_format_is_found_without_registration(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 2, 3)
    rows = spark.read(subscribe=topic).collect()
    assert values(rows) == sorted(f"{partition}-{row}".encode() for partition in range(2) for row in range(3))


def test_a_stream_gets_what_is_there_and_what_comes(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 2, 2)
    batches: list[list[object]] = []
    frame = spark.stream(subscribe=topic, startingOffsets="earliest")
    query = spark.start(frame, collect_into(batches), spark.checkpoint())
    query.processAllAvailable()
    assert values([row for batch in batches for row in batch]) == [b"0-0", b"0-1", b"1-0", b"1-1"]
    topics.write(topic, [b"more"], 1)
    query.processAllAvailable()
    assert values(batches[-1]) == [b"more"]
    query.stop()


def test_it_can_be_registered_too(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    topics.write(topic, [b"one"])
    lowwater.spark.register(spark.session)
    assert values(spark.read(subscribe=topic).collect()) == [b"one"]


def test_sql_reads_a_temporary_view_of_it(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    topics.write(topic, [b"one", b"two"])
    options = f"'kafka.bootstrap.servers' '{spark.bootstrap}', subscribe '{topic}'"
    spark.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW rows USING lowwater OPTIONS ({options})")
    found = spark.session.sql("SELECT CAST(value AS STRING) AS text FROM rows ORDER BY offset").collect()
    assert [row.text for row in found] == ["one", "two"]


def test_what_is_wrong_with_an_option_is_said_when_the_frame_is_made(spark: Spark) -> None:
    with pytest.raises(AnalysisException, match="One of the following options must be specified"):
        spark.read()
    with pytest.raises(AnalysisException, match=r"Kafka option 'auto\.offset\.reset' is not supported"):
        spark.stream(subscribe="any", kafka_auto_offset_reset="earliest")


def test_a_topic_that_is_not_there_is_named(spark: Spark) -> None:
    frame = spark.read(subscribe="no-such-topic", kafka_topic_metadata_propagation_max_ms=100)
    with pytest.raises((AnalysisException, PythonException), match="'no-such-topic'"):
        frame.collect()


def test_looking_for_formats_loads_no_more_than_spark_has(spark: Spark) -> None:
    """Every session of the environment imports it at its first lookup of any format."""
    code = (
        "import pyspark.sql.worker.lookup_data_sources, sys; before = set(sys.modules)\n"
        "import pyspark_lowwater; new = set(sys.modules) - before\n"
        "assert pyspark_lowwater.DefaultSource.name() == 'lowwater'\n"
        "print(sorted({name.partition('.')[0] for name in new} & {'numba', 'pyarrow', 'numpy', 'pandas', 'asyncio'}))\n"
        "print(len(new) < 20)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "True"]
