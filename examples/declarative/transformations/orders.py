"""A streaming table that reads a topic, decoded, and a view over it."""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table
def orders() -> DataFrame:
    """Every order that could be decoded. The table goes on where it ended when the pipeline is run again."""
    records = (
        spark.readStream.format("lowwater")
        .option("kafka.bootstrap.servers", spark.conf.get("orders.bootstrap"))
        .option("subscribe", "orders")
        .option("start", "earliest")
        .option("decode", "json")
        .option("decode.schema", "order_id long, country string, amount_cents long")
        .option("decode.onBad", "null")
        .load()
    )
    return records.where("value IS NOT NULL").select("value.*", f.col("timestamp").alias("ordered_at"))


@dp.materialized_view
def by_country() -> DataFrame:
    """What was sold where."""
    sold = spark.read.table("orders").groupBy("country")
    return sold.agg(f.count("*").alias("orders"), f.sum("amount_cents").alias("amount_cents"))
