"""What Spark is told for a pipeline: what its file says, and what suits a pipeline where it says nothing."""

from __future__ import annotations

import re

from lowwater.spark.pipeline.model import Model, is_address

# With a single attempt, the usual of local masters, a worker that dies ends the query.
LOCAL_ATTEMPTS = 3
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*(\d+))?\])?")
QUICK_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def master_of(model: Model) -> str:
    """The same master, with more than one attempt for each task where it is on this machine."""
    found = _LOCAL.fullmatch(model.master)
    if found is None or found[2] is not None:
        return model.master
    return f"local[{found[1] or 1},{LOCAL_ATTEMPTS}]"


DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Without them Spark refuses to write Delta tables, although the package is there."""


def cores_of(model: Model, machine_cores: int) -> int | None:
    """How many tasks run at a time; None where that is not known here."""
    found = _LOCAL.fullmatch(model.master) if model.remote is None else None
    if found is None:
        return None
    return machine_cores if found[1] == "*" else int(found[1] or 1)


def delta_packages(model: Model) -> list[str]:
    """What delta-spark has to be told of `spark.jars.packages`, in whose place it sets its own."""
    given = model.spark.get("spark.jars.packages", "").split(",")
    return [package.strip() for package in given if package.strip()]


def spark_settings(model: Model, machine_cores: int) -> dict[str, str]:
    """Of a session that is made for the pipeline. What the file says wins."""
    settings = {"spark.app.name": model.name, "spark.sql.session.timeZone": "UTC"}
    if model.is_local:
        settings |= {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.sql.shuffle.partitions": str(cores_of(model, machine_cores)),
            "spark.log.level": "ERROR",
        }
    if model.is_local and not is_address(model.checkpoint):
        settings["spark.sql.streaming.checkpointFileManagerClass"] = QUICK_CHECKPOINTS
    if any(sink.format == "delta" for sink in model.sinks):
        settings |= DELTA
    return settings | dict(model.spark)
