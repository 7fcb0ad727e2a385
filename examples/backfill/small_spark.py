"""A Spark session for an example: on this machine, quiet, with this Python."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from lowwater.spark.java import use_java
from lowwater.spark.launchers import worker_python

CONFS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}


def small_spark(name: str, more: Mapping[str, str] | None = None) -> SparkSession:
    use_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(worker_python())
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in {**CONFS, **(more or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
