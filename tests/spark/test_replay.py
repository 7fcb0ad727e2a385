"""A batch that is read again is the batch that it was: by its two offsets alone, on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from tests.spark.reading import Spark, written
from tests.spark.writing import Topics

from lowwater.spark.offsets import Offset


def forget_from(checkpoint: str, *, commits: int, offsets: int) -> None:
    """As a driver leaves it that was killed: commits and planned batches from these numbers on are not there."""
    for folder, first in (("commits", commits), ("offsets", offsets)):
        for file in (Path(checkpoint) / folder).iterdir():
            number = file.name.strip(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= first:
                file.unlink()


def planned(checkpoint: str, number: int) -> Offset:
    return Offset.parse(json.loads((Path(checkpoint) / "offsets" / str(number)).read_text().split("\n")[2]))


def test_batches_are_read_again_as_they_were(spark: Spark, topics: Topics) -> None:
    topic, checkpoint = topics.create(2), spark.checkpoint()
    topics.fill(topic, 2, 6)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 6}
    first, second = spark.drain(checkpoint, **options)
    topics.fill(topic, 2, 4)
    # The second batch was planned and perhaps read, but never finished.
    forget_from(checkpoint, commits=1, offsets=2)
    again = spark.drain(checkpoint, **options)
    assert written(again[0]) == written(second)
    assert everything(first, *again) == topics.read(topic)
    # The first one: where it began is not what the query would begin with now.
    forget_from(checkpoint, commits=0, offsets=1)
    anew = spark.drain(checkpoint, subscribe=topic, startingOffsets="latest")
    assert written(anew[0]) == written(first)
    assert everything(*anew) == topics.read(topic)
    assert planned(checkpoint, 0).lineage == planned(checkpoint, 1).lineage


def plan_as_the_connector(checkpoint: str, number: int, ends: dict[str, dict[str, int]]) -> None:
    log = Path(checkpoint) / "offsets"
    spark_lines = (log / "0").read_text().split("\n")[:2]
    (log / str(number)).write_text("\n".join([*spark_lines, json.dumps(ends, separators=(",", ":"))]))
    (log / f".{number}.crc").unlink(missing_ok=True)


def everything(*batches: list[Row]) -> list[object]:
    return written([row for batch in batches for row in batch])


def test_a_checkpoint_of_the_kafka_connector_is_gone_on_with(spark: Spark, topics: Topics) -> None:
    """One batch is finished, the next one planned; both are written as the connector writes them."""
    topic, checkpoint = topics.create(2), spark.checkpoint()
    topics.fill(topic, 2, 4)
    spark.drain(checkpoint, "offset long", subscribe=topic, startingOffsets="earliest")
    topics.fill(topic, 2, 4)
    plan_as_the_connector(checkpoint, 0, {topic: {"0": 1, "1": 4}})
    plan_as_the_connector(checkpoint, 1, {topic: {"1": 6, "0": 3}})
    unfinished, rest = spark.drain(checkpoint, "partition int, offset long", subscribe=topic)
    assert sorted((row.partition, row.offset) for row in unfinished) == [(0, 1), (0, 2), (1, 4), (1, 5)]
    places = [(0, 3), (0, 4), (0, 5), (0, 6), (0, 7), (1, 6), (1, 7)]
    assert sorted((row.partition, row.offset) for row in rest) == places
    assert planned(checkpoint, 2).ids.keys() == {topic}


def test_a_topic_that_was_made_anew_is_an_error_and_not_garbage(spark: Spark, topics: Topics) -> None:
    topic, checkpoint = topics.create(1), spark.checkpoint()
    topics.write(topic, [b"old"] * 3)
    spark.drain(checkpoint, "offset long", subscribe=topic, startingOffsets="earliest")
    before = planned(checkpoint, 0).ids[topic]
    topics.delete(topic)
    topics.recreate(topic)
    topics.write(topic, [b"new"] * 5)
    with pytest.raises(StreamingQueryException, match=f"made anew: its id was {before}, now it is "):
        spark.drain(checkpoint, "offset long", subscribe=topic)
