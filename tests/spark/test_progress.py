"""Progress of a plain query, by a listener."""

from __future__ import annotations

import queue

from tests.spark.reading import Spark
from tests.spark.writing import Topics

from lowwater.spark.listening import Courses, listen
from lowwater.spark.progress import Progress
from lowwater.types import TopicPartition

PATIENCE_S = 180


def test_a_listener_tells_how_far_behind_each_micro_batch_leaves_a_query(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.write(topic, [b"row"] * 9, 0)
    topics.write(topic, [b"row"] * 3, 1)
    told: queue.SimpleQueue[Progress] = queue.SimpleQueue()
    listener = listen(spark.session, told.put)
    try:
        spark.drain(spark.checkpoint(), subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=8)
        first, second = (told.get(timeout=PATIENCE_S) for _ in range(2))
    finally:
        spark.session.streams.removeListener(listener)
    assert (first.rows, second.rows) == (8, 4)
    assert (first.behind.records, second.behind.records) == (4, 0)
    assert second.sources[0].at == {TopicPartition(topic, 0): 9, TopicPartition(topic, 1): 3}
    courses = Courses()
    for progress in (first, second):
        courses.add(progress)
    text = courses.prometheus()
    assert f'lowwater_spark_rows_total{{query="{first.query}"}} 12' in text
    assert f'lowwater_spark_records_behind{{query="{first.query}"}} 0' in text
