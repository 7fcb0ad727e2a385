"""What happens to a topic between the planning of a batch and its reading."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from pyspark.sql.streaming import StreamingQuery
from tests.crash import spark_faults as points
from tests.fresh import fresh
from tests.spark.reading import PATIENCE_S, Spark, collect_into
from tests.spark.writing import Topics

from lowwater.spark import losses

POINT = points.AFTER_OFFSET_LOG


class Planned:
    """A query whose first batch is planned and not read yet."""

    def __init__(self, spark: Spark, topic: str, folder: Path) -> None:
        points.register(spark.session)
        points.arm(folder, POINT)
        self._folder = folder
        self.batches: list[list[Row]] = []
        self.checkpoint = spark.checkpoint()
        reader = spark.session.readStream.schema("offset long").format(points.NAME).option("faultFolder", str(folder))
        options = {"kafka.bootstrap.servers": spark.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        frame = reader.options(**options).load()
        self._query: StreamingQuery = spark.start(frame, collect_into(self.batches), self.checkpoint, availableNow=True)
        deadline = time.monotonic() + PATIENCE_S
        while not points.is_hit(folder, POINT):
            assert time.monotonic() < deadline, "a batch is planned"
            assert self._query.isActive, self._query.exception()
            time.sleep(0.02)

    def read(self) -> None:
        points.go_on(self._folder, POINT)
        assert self._query.awaitTermination(PATIENCE_S)


@pytest.fixture
def topic(topics: Topics) -> str:
    name = topics.create(1)
    topics.write(name, [b"v"] * 10)
    return name


def test_rows_that_age_out_after_they_were_planned_are_named_or_skipped(
    spark: Spark, topics: Topics, topic: str, tmp_path: Path
) -> None:
    planned, ledger = Planned(spark, topic, tmp_path), fresh("ledger")
    topics.delete_before(topic, 4)
    with pytest.raises(StreamingQueryException, match=rf"'{topic}' partition 0: offsets \[0, 4\) are gone"):
        planned.read()
    assert planned.batches == []
    again = {"subscribe": topic, "failOnDataLoss": "false", "lossLedger": ledger}
    [rest] = spark.drain(planned.checkpoint, "offset long", **again)
    assert sorted(row.offset for row in rest) == [4, 5, 6, 7, 8, 9]
    [loss] = losses(spark.bootstrap, ledger=ledger)
    assert (loss.first, loss.behind) == (0, 4)


def test_a_topic_that_is_made_anew_after_it_was_planned_is_not_read(
    spark: Spark, topics: Topics, topic: str, tmp_path: Path
) -> None:
    planned = Planned(spark, topic, tmp_path)
    topics.delete(topic)
    topics.recreate(topic)
    topics.write(topic, [b"other"] * 10)
    with pytest.raises(StreamingQueryException, match="made anew"):
        planned.read()
    assert planned.batches == []
