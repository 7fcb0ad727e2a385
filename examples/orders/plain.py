"""`python -m examples.orders.plain BOOTSTRAP CHECKPOINT`: the topics once more, cut as Spark cuts a backlog.

Each source takes its share of what is left by the number of offsets, blind to time. Nothing is made of the rows: the
checkpoint tells how far each micro-batch went.
"""

from __future__ import annotations

import sys
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from examples.backfill.small_spark import small_spark
from examples.orders.sample import TOPICS

LIMIT = 9_000
"""As in the pipeline."""


def main(bootstrap: str, checkpoint: str) -> None:
    spark = small_spark("plain")
    read_plainly(spark, bootstrap, checkpoint)
    spark.stop()


def read_plainly(spark: SparkSession, bootstrap: str, checkpoint: str, limit: int = LIMIT) -> None:
    def read(topic: str) -> DataFrame:
        options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        reader = spark.readStream.format("lowwater").schema("timestamp timestamp").options(**options)
        return reader.option("maxOffsetsPerTrigger", str(limit)).load()

    rows = reduce(DataFrame.unionAll, map(read, TOPICS))
    writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
