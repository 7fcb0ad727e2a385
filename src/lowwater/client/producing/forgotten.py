"""Producers that nobody closed before the interpreter ends."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  pyarrow needs it with the first rows, and at the end it cannot be loaded
import logging
from collections.abc import Callable

LOG = logging.getLogger("lowwater.producer")


_OPEN: dict[object, Callable[[], None]] = {}
_IS_REGISTERED: list[bool] = []


def remember(producer: object, leave: Callable[[], None]) -> None:
    """Call `leave` at the end, unless it is closed before. One that nobody refers to any more may still have rows."""
    if not _IS_REGISTERED:
        # Now, and not when this is imported: what is registered last runs first, while clients still have threads.
        _IS_REGISTERED.append(True)
        atexit.register(_leave_all)
    _OPEN[producer] = leave


def forget(producer: object) -> None:
    _OPEN.pop(producer, None)


def _leave_all() -> None:
    while _OPEN:
        _, leave = _OPEN.popitem()
        leave()
