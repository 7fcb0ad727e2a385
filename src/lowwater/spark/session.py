"""A Spark session for a pipeline, with the Java, the Python and the settings that it needs."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lowwater.client.loading import MissingExtraError
from lowwater.errors import LowwaterError
from lowwater.spark.java import use_java
from lowwater.spark.launchers import worker_python
from lowwater.spark.orphans import end_launched
from lowwater.spark.pipeline.failures import ExitCode, failure_of
from lowwater.spark.pipeline.model import Model
from lowwater.spark.pipeline.spark_log import log_of, spark_log, started_into
from lowwater.spark.pipeline.spark_settings import delta_packages, master_of, spark_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkStartError", "log_of", "require_pyspark", "session_for"]


class SparkStartError(LowwaterError):
    """There is no session: Spark did not start, or could not be reached."""

    def __init__(self, model: Model, text: str, log: Path | None) -> None:
        failure = failure_of(text, model.secrets)
        where = f"; {log} has what it said" if log is not None else ""
        what = f"no session of Spark on {model.remote or model.master}: {failure.what}{where}"
        super().__init__(model.secrets.masked(what))
        self.exit_code = ExitCode.FAILED if model.is_local else ExitCode.UNREACHABLE


def require_pyspark() -> None:
    """MissingExtraError says what to install."""
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtraError("the package pyspark is not installed", advice="pip install 'lowwater[spark]'")


@contextlib.contextmanager
def session_for(model: Model, spark: SparkSession | None = None) -> Iterator[SparkSession]:
    """Ends with the block, unless it is the caller's, or there was one already: those are used as they are."""
    require_pyspark()
    from pyspark.sql import SparkSession

    present = spark or SparkSession.getActiveSession()
    if present is not None:
        yield present
        return
    with spark_log(model) as log:
        session = _started(model, log)
        try:
            yield session
        finally:
            session.stop()


def _started(model: Model, log: Path | None) -> SparkSession:
    try:
        if model.remote is not None:
            return _remote(model)
        use_java()
        with started_into(log):
            return _own(model)
    except LowwaterError:
        raise
    except KeyboardInterrupt:
        end_launched()
        raise
    except Exception as error:  # of many kinds: a JVM that ends, a master or a server that does not answer
        raise SparkStartError(model, str(error), log) from error


def _own(model: Model) -> SparkSession:
    from pyspark.sql import SparkSession

    _quiet()
    if model.is_local:
        _prepare_workers(model)
    builder = SparkSession.builder.master(master_of(model))
    for name, value in spark_settings(model, os.cpu_count() or 1).items():
        builder = builder.config(name, value)
    if any(sink.format == "delta" for sink in model.sinks):
        packages = delta_packages(model)
        builder = importlib.import_module("delta").configure_spark_with_delta_pip(builder, extra_packages=packages)
    return builder.getOrCreate()


def _remote(model: Model) -> SparkSession:
    """A session on somebody's server takes settings of queries only."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(model.remote or "").getOrCreate()
    for name, value in model.spark.items():
        session.conf.set(name, value)
    return session


def _quiet() -> None:
    """What Spark refuses is told by errors; pyspark would print it too, with a JVM's stack in JSON."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _prepare_workers(model: Model) -> None:
    """Workers run the same Python, with the same packages, and find the modules of the pipeline's own steps."""
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):  # tasks, and what plans for them
        os.environ.setdefault(variable, str(worker_python()))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    known = os.environ.get("PYTHONPATH", "")
    folder = os.path.abspath(model.folder)
    if folder not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (folder, known) if part)
