"""Spark finds the format by itself, and says what is wrong with how it is used."""

from __future__ import annotations

from tests.spark.reading import Spark, values
from tests.spark.writing import Topics


def test_the_format_is_found_without_registration(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 2, 3)
    rows = spark.read(subscribe=topic).collect()
    assert values(rows) == sorted(f"{partition}-{row}".encode() for partition in range(2) for row in range(3))
