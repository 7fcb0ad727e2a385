"""Lengths of time as people write them in a pipeline: 500ms, 10s, 1h30m, 7d."""

from __future__ import annotations

import re

UNITS_MS = {"w": 7 * 86_400_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_SPAN = re.compile(r"([0-9]+)(ms|[wdhms])", re.ASCII)
_SPANS = re.compile(r"(?:[0-9]+(?:ms|[wdhms]))+", re.ASCII)


def parse_duration_ms(text: str) -> int:
    """ValueError says what could stand there."""
    if not _SPANS.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a length of time such as 500ms, 10s, 5m, 1h30m or 7d")
    return sum(int(count) * UNITS_MS[unit] for count, unit in _SPAN.findall(text))


def duration_text(span_ms: int) -> str:
    """The shortest form: 90000 is 1m30s."""
    parts = []
    for unit, unit_ms in UNITS_MS.items():
        count, span_ms = divmod(span_ms, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
