"""Producers that nobody closed before the interpreter ends."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  pyarrow needs it with the first rows, and at the end it cannot be loaded
import logging
from typing import Protocol

LOG = logging.getLogger("lowwater.producer")


class Forgettable(Protocol):
    def leave_at_exit(self) -> None:
        """Write what is still to be written, or say that it was not."""


_OPEN: dict[Forgettable, None] = {}
_IS_REGISTERED: list[bool] = []


def remember(producer: Forgettable) -> None:
    """Until it is closed. One that nobody refers to any more may still have rows to write."""
    if not _IS_REGISTERED:
        # Now, and not when this is imported: what is registered last runs first, while clients still have threads.
        _IS_REGISTERED.append(True)
        atexit.register(_leave_all)
    _OPEN[producer] = None


def forget(producer: Forgettable) -> None:
    _OPEN.pop(producer, None)


def _leave_all() -> None:
    for producer in list(_OPEN):
        forget(producer)
        producer.leave_at_exit()
