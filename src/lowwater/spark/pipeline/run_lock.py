"""One run of a query at a time, and no reset beside it: a file beside each checkpoint is locked meanwhile.

Two runs would write the same micro-batches, and a run whose checkpoint is taken away goes on from memory. The lock is
the system's, so that it goes with its process, however that ends. Checkpoints on other machines are not guarded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from lowwater.errors import LowwaterError
from lowwater.spark.checkpoint import local_folder
from lowwater.spark.pipeline.model import Model
from lowwater.spark.pipeline.queries import Query, queries

SUFFIX = ".lock"
_OWNER_BYTES = 256
# Whoever only looks whether one runs holds the lock for a moment.
_TRIES, _PAUSE_S = 10, 0.02


class RunningError(LowwaterError):
    """The pipeline is being run, or reset, by another process."""

    def __init__(self, model: Model, query: Query, owner: str) -> None:
        who = owner or "another process"
        what = f"{model.name} is being run, or reset, by {who}, which has the checkpoint {query.checkpoint}"
        super().__init__(model.secrets.masked(what))


@contextlib.contextmanager
def alone(model: Model) -> Iterator[None]:
    """RunningError when one of its queries is being run already."""
    with contextlib.ExitStack() as held:
        for query in queries(model):
            held.enter_context(_alone(model, query))
        yield


def refuse_running(model: Model) -> None:
    """RunningError when it is being run just now. Writes nothing."""
    for query, owner in _held(model):
        raise RunningError(model, query, owner)


def is_held_here(model: Model) -> bool:
    """Whether this process runs it just now."""
    return any(owner == _this_process() for _, owner in _held(model))


def _held(model: Model) -> Iterator[tuple[Query, str]]:
    """Queries that are being run, and by whom."""
    for query in queries(model):
        file = _file(model, query)
        if file is None:
            continue
        with contextlib.suppress(OSError), open(file, "rb") as opened:
            if not _is_locked(opened.fileno(), fcntl.LOCK_SH):
                yield query, _owner(opened.fileno())


@contextlib.contextmanager
def _alone(model: Model, query: Query) -> Iterator[None]:
    file = _file(model, query)
    descriptor = None if file is None else _opened(file)
    if descriptor is None:
        yield
        return
    try:
        _lock(descriptor, model, query)
        with _noted(descriptor):
            yield
    finally:
        os.close(descriptor)


def _file(model: Model, query: Query) -> Path | None:
    """None where it would guard nothing: on another machine, or in a folder that only Spark's server knows."""
    folder = None if model.remote is not None else local_folder(query.checkpoint)
    return None if folder is None or not folder.is_absolute() else folder.with_name(folder.name + SUFFIX)


def _opened(file: Path) -> int | None:
    """None where there can be no such file; what is wrong with the folder is told by whoever needs it."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # that of another user can be locked all the same
        with contextlib.suppress(OSError):
            return os.open(file, flags, 0o644)
    return None


def _lock(descriptor: int, model: Model, query: Query) -> None:
    for _ in range(_TRIES):
        if _is_locked(descriptor, fcntl.LOCK_EX):
            return
        time.sleep(_PAUSE_S)
    raise RunningError(model, query, _owner(descriptor))


def _is_locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: there is nothing to find out
    return True


def _this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextlib.contextmanager
def _noted(descriptor: int) -> Iterator[None]:
    _note(descriptor, _this_process())
    try:
        yield
    finally:
        _note(descriptor, "")


def _note(descriptor: int, owner: str) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode(), 0)


def _owner(descriptor: int) -> str:
    return os.pread(descriptor, _OWNER_BYTES, 0).decode(errors="replace")
