"""Steps of the pipeline that are written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def once_each(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Each record once, however often it was sent; what was forgotten (no value) is left out."""
    told = frame.where("NOT tombstone").select(*columns, "timestamp")
    return told.dropDuplicates(["order_id", "timestamp"])
