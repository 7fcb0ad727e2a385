"""One run of a pipeline at a time, and no reset beside it: a file beside the checkpoints is locked meanwhile.

Two runs would write the same micro-batches, and a run whose checkpoint is taken away goes on from memory. The lock is
the system's, so that it goes with its process, however that ends. Checkpoints on other machines are not guarded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lowwater.errors import LowwaterError
from lowwater.spark.checkpoint import local_folder
from lowwater.spark.pipeline.model import Model

LOCK_NAME = "run.lock"
_PID_DIGITS = 20


class RunningError(LowwaterError):
    """The pipeline is being run, or reset, by another process."""

    def __init__(self, model: Model, pid: int | None) -> None:
        by = "another process" if pid is None else f"process {pid}"
        end = "" if pid is None else f"; kill {pid} ends it after its micro-batch"
        super().__init__(f"{model.name} is being run by {by}, from the same checkpoint ({model.checkpoint}){end}")
        self.pid = pid


@contextlib.contextmanager
def alone(model: Model) -> Iterator[None]:
    """RunningError when it is being run already."""
    descriptor = _opened(model)
    if descriptor is None:
        yield
        return
    try:
        if not _is_locked(descriptor):
            raise RunningError(model, _owner(descriptor))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def refuse_running(model: Model) -> None:
    """RunningError when it is being run just now. Makes no folder."""
    folder = local_folder(model.location(model.checkpoint))
    if folder is not None and folder.exists():
        with alone(model):
            pass


def _opened(model: Model) -> int | None:
    """None where there can be no such file; what is wrong with the folder is told by whoever needs it."""
    folder = local_folder(model.location(model.checkpoint))
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(Path(folder) / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        return None


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: there is nothing to find out
    return True


def _owner(descriptor: int) -> int | None:
    digits = os.pread(descriptor, _PID_DIGITS, 0)
    return int(digits) if digits.isdigit() else None
