"""Rows of decoded sources: fields become columns; rows that cannot be decoded are counted, and dropped or kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.spark.pipeline.model import RECORD_COLUMNS, Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

VALUE, RAW, ERROR = "value", "value_raw", "value_error"
TOMBSTONE = "tombstone"
RECORD_PREFIX = "record_"
METRIC_PREFIX = "decoding_"
HEADER_PREFIX = "lowwater."


def decoded_rows(frame: DataFrame, source: Source) -> DataFrame:
    """Fields of the value are columns; a column of the record whose name a field has is called `record_<name>`."""
    from pyspark.sql import functions as f

    if source.decode is None:
        return frame
    if source.keeps_errors:
        frame = _counted(frame, source).where(f.col(ERROR).isNull())
    fields = frame.select(f"{VALUE}.*").columns
    others = [name for name in frame.columns if name in RECORD_COLUMNS and name != VALUE]
    taken = {name.lower() for name in fields}
    return frame.select(
        *(f.col(VALUE).getField(name).alias(name) for name in fields),
        *([] if TOMBSTONE in taken else [f.col(VALUE).isNull().alias(TOMBSTONE)]),
        *(f.col(name).alias(f"{RECORD_PREFIX}{name}" if name.lower() in taken else name) for name in others),
    )


def _counted(frame: DataFrame, source: Source) -> DataFrame:
    """Spark tells these with the progress of each micro-batch."""
    from pyspark.sql import functions as f

    return frame.observe(f"{METRIC_PREFIX}{source.name}", f.count(f.lit(1)).alias("rows"), f.count(ERROR).alias("bad"))


def dead_letters(frame: DataFrame, source: Source) -> DataFrame:
    """Records as they were, with the reason and where they came from in their headers."""
    from pyspark.sql import functions as f

    told = {
        "reason": f.col(ERROR),
        "source": f.lit(source.name),
        "topic": f.col("topic"),
        "partition": f.col("partition").cast("string"),
        "offset": f.col("offset").cast("string"),
        "timestamp": f.unix_millis("timestamp").cast("string"),
    }
    added = f.array(*(_header(name, value) for name, value in told.items()))
    none = f.array().cast("array<struct<key: string, value: binary>>")
    headers = f.concat(f.coalesce(f.col("headers"), none), added)
    return frame.where(f.col(ERROR).isNotNull()).select("key", f.col(RAW).alias(VALUE), headers.alias("headers"))


def _header(name: str, value: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(f.lit(HEADER_PREFIX + name).alias("key"), value.cast("binary").alias("value"))
