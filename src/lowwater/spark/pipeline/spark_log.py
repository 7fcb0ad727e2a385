"""What a Spark on this machine has to say goes beside the checkpoints for a run, else where it disturbs nobody."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lowwater.errors import LowwaterError
from lowwater.spark.pipeline.failures import SparkFailedError
from lowwater.spark.pipeline.model import Model, is_address
from lowwater.spark.pipeline.run_lock import is_held_here

LOG_NAME = "spark.log"
STDERR = 2


class SparkLogError(LowwaterError):
    """The folder of the checkpoints cannot be written to."""


class _Jvm:
    """There is one for the whole process, and it writes for ever to where it did when it was started."""

    said: BinaryIO | None = None


def log_of(model: Model) -> Path | None:
    """That of a run."""
    checkpoint = model.location(model.checkpoint)
    return Path(checkpoint) / LOG_NAME if model.is_local and not is_address(checkpoint) else None


@contextlib.contextmanager
def spark_log(model: Model) -> Iterator[Path | None]:
    """None where Spark is not here. Only who has the pipeline for itself writes beside its checkpoints.

    For others it is a temporary file. It stays when an error is raised that names it, or that is none of ours.
    """
    log = log_of(model)
    if log is None:
        yield None
        return
    with _begun(log) if is_held_here(model) else _temporary() as log, _followed(log):
        yield log


@contextlib.contextmanager
def started_into(log: Path | None) -> Iterator[None]:
    """What is started within writes there for as long as it runs; this process does so only within."""
    if log is None:
        yield
        return
    from pyspark import SparkContext

    is_first = SparkContext._gateway is None
    with log.open("ab") as file, _stderr_into(file.fileno()):
        yield
    if is_first and SparkContext._gateway is not None:
        _Jvm.said = log.open("rb")


@contextlib.contextmanager
def _stderr_into(descriptor: int) -> Iterator[None]:
    sys.stderr.flush()
    before = os.dup(STDERR)
    os.dup2(descriptor, STDERR)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, STDERR)
        os.close(before)


@contextlib.contextmanager
def _begun(log: Path) -> Iterator[Path]:
    """Anew with each run."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
    except OSError as error:
        raise SparkLogError(f"cannot write to {log}, where Spark's words go: {error.strerror}") from None
    yield log


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix="lowwater-", suffix=f"-{LOG_NAME}")
    os.close(handle)
    log, keeps = Path(name), False
    try:
        yield log
    except SparkFailedError as error:
        keeps, error.log = True, log
        raise
    except LowwaterError as error:
        keeps = name in str(error)
        raise
    except Exception as error:
        keeps = True
        error.add_note(f"{log} has what Spark said")
        raise
    finally:
        if not keeps:
            log.unlink(missing_ok=True)


@contextlib.contextmanager
def _followed(log: Path) -> Iterator[None]:
    """Has at its end also what a JVM said that an earlier session has started."""
    said = _Jvm.said
    if said is None or os.path.samestat(os.fstat(said.fileno()), log.stat()):
        yield
        return
    said.seek(0, os.SEEK_END)
    try:
        yield
    finally:
        with log.open("ab") as file:
            shutil.copyfileobj(said, file)
