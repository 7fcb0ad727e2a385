"""Rows that come after the cut they belong before: told by the task that reads them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

LOG = logging.getLogger("lowwater.spark")


def telling(batches: Iterator[Any], before_ms: int) -> Iterator[Any]:
    """The same batches. A warning says how many of their rows are stamped before that, once they are read."""
    late = 0
    try:
        for batch in batches:
            late += count_before(batch, before_ms)
            yield batch
    finally:
        if late:
            LOG.warning("%d rows are stamped before the cut of the batch before, %d ms: they are late", late, before_ms)


def count_before(batch: Any, time_ms: int) -> int:
    """Of a batch as Spark gets it, with times in microseconds."""
    times = batch.column("timestamp").cast("int64").to_numpy(zero_copy_only=False)
    return int((times < time_ms * 1000).sum())
