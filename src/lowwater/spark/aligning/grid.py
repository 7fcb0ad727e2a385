"""Moments on the grid of a span: multiples of it since 1970."""

from __future__ import annotations

from lowwater.spark.offsets import TIME_MAX


def next_mark(time_ms: int, span_ms: int) -> int:
    """The first one behind that time: a batch that ends there has what is stamped so. Not beyond what can be told."""
    return min((time_ms // span_ms + 1) * span_ms, TIME_MAX)
