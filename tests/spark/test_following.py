"""A group follows its query, on Spark. The rules of it are tested without Spark, in tests/integration/spark."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from tests.fresh import fresh
from tests.spark.reading import PATIENCE_S, Spark, collect_into
from tests.spark.writing import Topics


def test_a_group_follows_its_query_to_the_end_of_the_last_batch(spark: Spark, topics: Topics) -> None:
    topic, group = topics.create(2), fresh("followed")
    topics.write(topic, [b"v"] * 20, 0)
    topics.write(topic, [b"v"] * 10, 1)
    options = {"subscribe": topic, "group": group, "start": "stored|earliest", "maxOffsetsPerTrigger": 20}
    batches = spark.drain(spark.checkpoint(), "partition int, offset long", **options)
    assert sum(map(len, batches)) == 30
    assert topics.committed(group, topic, 2) == {0: 20, 1: 10}
    topics.write(topic, [b"v"] * 5, 1)
    # Another query, without that checkpoint, goes on where the group is.
    [rest] = spark.drain(spark.checkpoint(), "partition int, offset long", subscribe=topic, group=group)
    assert [(row.partition, row.offset) for row in rest] == [(1, offset) for offset in range(10, 15)]
    assert topics.committed(group, topic, 2) == {0: 20, 1: 15}


def test_a_query_that_waits_has_committed_what_it_has_read(spark: Spark, topics: Topics) -> None:
    topic, group = topics.create(1), fresh("followed")
    batches: list[list[Row]] = []
    frame = spark.stream("offset long", subscribe=topic, group=group, startingOffsets="latest")
    query = spark.start(frame, collect_into(batches), spark.checkpoint())
    query.processAllAvailable()
    assert topics.committed(group, topic, 1) == {}, "where a query begins is not committed"
    topics.write(topic, [b"v"] * 3)
    query.processAllAvailable()
    assert sum(map(len, batches)) == 3
    deadline = time.monotonic() + PATIENCE_S
    while topics.committed(group, topic, 1) != {0: 3}:
        assert time.monotonic() < deadline, "it is committed"
    query.stop()


def test_a_group_with_members_is_refused(spark: Spark, topics: Topics) -> None:
    topic, group = topics.create(1), fresh("members")
    member = Consumer({"bootstrap.servers": spark.bootstrap, "group.id": group, "client.id": "somebody"})
    member.subscribe([topic])
    deadline = time.monotonic() + PATIENCE_S
    while not member.assignment():
        assert time.monotonic() < deadline, "the member is in the group"
        member.poll(0.1)
    try:
        with pytest.raises(StreamingQueryException, match=f"group '{group}' has members \\(somebody at "):
            spark.drain(spark.checkpoint(), "offset long", subscribe=topic, group=group)
    finally:
        member.close()
