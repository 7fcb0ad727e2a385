"""Many rows, large rows and few columns: every batch reaches Spark as it expects it."""

from __future__ import annotations

from tests.spark.reading import Spark
from tests.spark.writing import Topics

ROWS = 30_000


def test_many_batches_hold_every_row_once(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    for partition in range(2):
        topics.write(topic, [b"%098d" % row for row in range(ROWS // 2)], partition, headers=[("h", b"1")])
    frame = spark.read(subscribe=topic, includeHeaders="true")
    [found] = frame.selectExpr(
        "count(*) AS rows",
        "count(DISTINCT partition, offset) AS places",
        "sum(offset) AS offsets",
        "sum(CAST(CAST(value AS STRING) AS LONG)) AS numbers",
        "sum(size(headers)) AS headers",
        "min(timestamp) = min(CAST(timestamp AS TIMESTAMP)) AS stamped",
    ).collect()
    each = ROWS // 2 * (ROWS // 2 - 1)
    assert (found.rows, found.places, found.offsets, found.numbers, found.headers) == (ROWS, ROWS, each, each, ROWS)


def test_rows_of_a_megabyte_come_whole(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    values = [bytes([65 + number]) * 900_000 for number in range(12)]
    topics.write(topic, values)
    rows = spark.read("offset long, value binary", subscribe=topic).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == values


def test_a_stream_of_one_column_reads_that_column(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    topics.fill(topic, 1, 5)
    [batch] = spark.drain(spark.checkpoint(), "offset long", subscribe=topic, startingOffsets="earliest")
    assert [row.asDict() for row in batch] == [{"offset": offset} for offset in range(5)]
