"""Where queries start and stop, in the connector's words and in ours."""

from __future__ import annotations

import json

from tests.fresh import fresh
from tests.spark.reading import Spark
from tests.spark.writing import Topics


def test_a_batch_query_starts_and_stops_partition_by_partition(spark: Spark, topics: Topics) -> None:
    topic = topics.create(3)
    topics.fill(topic, 3, 6)
    group = fresh("spark-group")
    topics.commit(group, {(topic, 1): 4})
    start = f"{topic}=stored|-1,{topic}[0]=earliest"
    rows = spark.read(subscribe=topic, start=start, stop=f"{topic}[0]=2", group=group).collect()
    assert sorted((row.partition, row.offset) for row in rows) == [(0, 0), (0, 1), (1, 4), (1, 5), (2, 5)]


def test_a_batch_query_reads_between_two_times(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    for hour in range(4):
        topics.write(topic, [f"{hour}".encode()], hour % 2, timestamp=1_700_000_000_000 + hour * 3_600_000)
    times = {"startingTimestamp": 1_700_003_600_000, "endingTimestamp": 1_700_010_800_000}
    rows = spark.read(subscribe=topic, **times).collect()
    assert sorted(bytes(row.value) for row in rows) == [b"1", b"2"]


def test_a_stream_starts_where_its_group_is_and_goes_on_by_its_checkpoint(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 2, 5)
    group = fresh("spark-group")
    topics.commit(group, {(topic, 0): 3})
    options = {"subscribe": topic, "start": "stored|latest", "group": group}
    checkpoint = spark.checkpoint()
    [batch] = spark.drain(checkpoint, **options)
    assert sorted((row.partition, row.offset) for row in batch) == [(0, 3), (0, 4)]
    topics.write(topic, [b"more"], 1)
    # What the group or the options say now counts no more.
    topics.commit(group, {(topic, 0): 0})
    [batch] = spark.drain(checkpoint, **options | {"start": "earliest"})
    assert [(row.partition, row.offset) for row in batch] == [(1, 5)]


def test_filters_are_applied_whether_or_not_they_are_pushed(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 2, 10)
    conf = "spark.sql.python.filterPushdown.enabled"
    for pushed in ("false", "true"):
        spark.session.conf.set(conf, pushed)
        try:
            frame = spark.read("partition int, offset long", subscribe=topic)
            rows = frame.where("partition = 1 and offset >= 3 and offset < 8 and offset % 2 = 1").collect()
        finally:
            spark.session.conf.unset(conf)
        assert sorted((row.partition, row.offset) for row in rows) == [(1, 3), (1, 5), (1, 7)], f"pushed: {pushed}"


def test_assigned_partitions_in_several_tasks(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 2, 7)
    frame = spark.read(assign=json.dumps({topic: [1]}), minPartitions=3)
    assert frame.rdd.getNumPartitions() == 3
    assert sorted((row.partition, row.offset) for row in frame.collect()) == [(1, offset) for offset in range(7)]
