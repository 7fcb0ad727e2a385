"""Rows that were deleted before Spark could read them, on Spark; and gaps that are no losses."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import Row
from tests.fresh import fresh
from tests.spark.reading import PATIENCE_S, Spark
from tests.spark.writing import Topics

from lowwater.spark import losses

PLACES = "partition int, offset long"


def offsets(rows: list[Row]) -> list[int]:
    return sorted(row.offset for row in rows)


def test_a_stream_names_what_is_gone_or_goes_on_and_writes_it_down(spark: Spark, topics: Topics) -> None:
    topic, ledger, checkpoint = topics.create(1), fresh("ledger"), spark.checkpoint()
    topics.write(topic, [b"v"] * 10)
    options = {"subscribe": topic, "startingOffsets": "earliest", "lossLedger": ledger}
    [first] = spark.drain(checkpoint, PLACES, **options)
    assert offsets(first) == list(range(10))
    topics.write(topic, [b"v"] * 20)
    topics.delete_before(topic, 25)
    with pytest.raises(StreamingQueryException, match=rf"'{topic}' partition 0: offsets \[10, 25\) are gone"):
        spark.drain(checkpoint, PLACES, **options)
    [rest] = spark.drain(checkpoint, PLACES, failOnDataLoss="false", **options)
    assert offsets(rest) == list(range(25, 30))
    [loss] = losses(spark.bootstrap, ledger=ledger)
    assert (loss.topic, loss.partition, loss.first, loss.behind) == (topic, 0, 10, 25)
    assert loss.query, "the query's id is known to its tasks"


def test_a_batch_query_names_what_is_gone_or_goes_on(spark: Spark, topics: Topics) -> None:
    topic, ledger = topics.create(1), fresh("ledger")
    topics.write(topic, [b"v"] * 10)
    topics.delete_before(topic, 4)
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 1}}), "lossLedger": ledger}
    with pytest.raises(PythonException, match=rf"'{topic}' partition 0: offsets \[1, 4\) are gone"):
        spark.read(PLACES, **options).collect()
    assert offsets(spark.read(PLACES, failOnDataLoss="false", **options).collect()) == list(range(4, 10))
    [loss] = losses(spark.bootstrap, ledger=ledger)
    assert (loss.first, loss.behind, loss.query) == (1, 4, "")


def test_gaps_that_transactions_leave_are_no_losses(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    producer = Producer({"bootstrap.servers": spark.bootstrap, "transactional.id": fresh("writer")})
    producer.init_transactions(PATIENCE_S)
    for commits in (True, False, True, False):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, b"v")
        producer.flush(PATIENCE_S)
        (producer.commit_transaction if commits else producer.abort_transaction)(PATIENCE_S)
    options = {"subscribe": topic, "kafka_isolation_level": "read_committed"}
    assert offsets(spark.read(PLACES, **options).collect()) == [0, 1, 2, 8, 9, 10]
    batches = spark.drain(spark.checkpoint(), PLACES, **options, startingOffsets="earliest", maxOffsetsPerTrigger=5)
    assert [offset for batch in batches for offset in offsets(batch)] == [0, 1, 2, 8, 9, 10]
