"""Views of a session named as sources and steps are, since that is how SQL finds them; and the caller's put back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowwater.spark.pipeline.model import Model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEPT = "lowwater_kept_"


@contextlib.contextmanager
def views_put_back(spark: SparkSession, model: Model) -> Iterator[None]:
    """Leaves nothing behind in a session that others use, and takes nothing away."""
    kept = [name for name in model.names if _is_kept(spark, name)]
    try:
        yield
    finally:
        for name in model.names:
            spark.catalog.dropTempView(name)
        for name in kept:
            _copy(spark, _KEPT + name, name)
            spark.catalog.dropTempView(_KEPT + name)


def _is_kept(spark: SparkSession, name: str) -> bool:
    """Whether a temporary view was called so, and can be used; a table of the catalog is only hidden meanwhile."""
    from pyspark.errors import PySparkException

    try:
        if not _is_temporary(spark, name):
            return False
        _copy(spark, name, _KEPT + name)
    except PySparkException:
        return False
    return True


def _is_temporary(spark: SparkSession, name: str) -> bool:
    """Not by the catalog where it is here: it would make a warehouse, in a folder, to look for tables in."""
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession):
        return bool(spark.catalog.getTable(name).isTemporary)
    return bool(spark._jsparkSession.sessionState().catalog().getRawTempView(name).isDefined())


def _copy(spark: SparkSession, name: str, other: str) -> None:
    """As another view, and not as a frame: one of Spark Connect would look for the name only when it is used."""
    spark.table(name).createOrReplaceTempView(other)
