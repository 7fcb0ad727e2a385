"""Rows that Spark writes once, for readers of committed records. More kills, without Spark, are in tests/crash."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame
from tests.crash import spark_sink_job
from tests.crash.spark_sink_copies import Driver, wait_until_stopped
from tests.crash.spark_sink_job import STOPPED, WORKER, Copy, arm
from tests.crash.spark_sink_life import DONE, Point
from tests.crash.spark_sink_report import seen
from tests.fresh import fresh
from tests.spark.reading import PATIENCE_S, Spark
from tests.spark.writing import Topics

ROWS = 40


def committed(spark: Spark, topic: str) -> Counter[str]:
    return seen(spark.bootstrap, topic, "read_committed")


def write(spark: Spark, frame: DataFrame, **options: str) -> None:
    once = {"kafka.bootstrap.servers": spark.bootstrap, "exactlyOnce": "true", **options}
    frame.write.format("lowwater").options(**once).mode("append").save()


def test_processes_of_spark_are_killed_and_every_row_is_there_once(
    spark: Spark, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(2), topics.create(2)
    topics.fill(source, 2, ROWS)
    spark_sink_job.register(spark.session)
    copy = Copy(str(tmp_path), spark.bootstrap, source, target, fresh("sink"), limit=ROWS)
    for point in (Point.TASK_ATTEMPT, Point.BEFORE_INTENT, Point.AFTER_INTENT):
        arm(tmp_path, point, WORKER)
        with pytest.raises(StreamingQueryException):
            copy.start(spark.session).awaitTermination(PATIENCE_S)
        assert (tmp_path / f"{point}.hit").exists()
    assert copy.start(spark.session).awaitTermination(PATIENCE_S)
    found = committed(spark, target)
    assert found == Counter(f"{partition}-{row}" for partition in range(2) for row in range(ROWS))
    assert seen(spark.bootstrap, target, "read_uncommitted").total() > found.total(), "something was written twice"


def test_of_two_drivers_at_once_the_older_one_is_refused_and_every_row_is_there_once(
    spark: Spark, topics: Topics, tmp_path: Path
) -> None:
    """The older one has written a batch, and stops; another JVM goes on from the same checkpoint, to its end."""
    source, target = topics.create(2), topics.create(2)
    topics.fill(source, 2, ROWS)
    spark_sink_job.register(spark.session)
    copy = Copy(str(tmp_path), spark.bootstrap, source, target, fresh("sink"), limit=ROWS)
    arm(tmp_path, Point.BEFORE_INTENT, STOPPED)
    older = copy.start(spark.session)
    stopped = wait_until_stopped(tmp_path, Point.BEFORE_INTENT, lambda: not older.isActive)
    newer = Driver(copy)
    assert newer.end() == DONE, newer.why()
    os.kill(stopped, signal.SIGCONT)
    with pytest.raises(StreamingQueryException, match="was taken over"):
        older.awaitTermination(PATIENCE_S)
    assert committed(spark, target) == Counter(f"{partition}-{row}" for partition in range(2) for row in range(ROWS))


def test_a_batch_write_that_is_run_again_writes_nothing(spark: Spark, topics: Topics) -> None:
    topic, sink = topics.create(2), fresh("sink")
    frame = spark.session.range(0, 100, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    for _ in range(2):
        write(spark, frame, topic=topic, sinkId=sink, runId="monday")
    assert committed(spark, topic) == Counter(str(number) for number in range(100))
    write(spark, frame.where("value = '7'"), topic=topic, sinkId=sink, runId="tuesday")
    assert committed(spark, topic)["7"] == 2


def test_a_batch_write_without_a_name_is_refused(spark: Spark) -> None:
    with pytest.raises(AnalysisException, match="exactlyOnce in a batch write needs runId"):
        write(spark, spark.session.sql("SELECT 'a' AS value"), topic="t", sinkId="s")
