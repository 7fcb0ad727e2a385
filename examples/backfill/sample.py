"""Eight days of readings in four partitions, as backlogs are: uneven in time. The same rows every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
FIRST_DAY_MS = int(datetime(2026, 10, 5, tzinfo=UTC).timestamp() * 1000)
DAYS = 8
GAP_DAYS = range(2, 5)
BURST_ROWS = 1_500

WHAT = {
    0: "silent for three days",
    1: "began on the sixth day",
    2: "a burst on the second day",
    3: "ends three days before the others",
}


def times_ms() -> Mapping[int, Sequence[int]]:
    """By partition, the times of its rows in their order."""
    with_gap = [each for each in _every(10, 0, DAYS) if (each - FIRST_DAY_MS) // DAY_MS not in GAP_DAYS]
    noon_ms = FIRST_DAY_MS + DAY_MS + 12 * HOUR_MS
    burst = [noon_ms + number * 30 * MINUTE_MS // BURST_ROWS for number in range(BURST_ROWS)]
    return {
        0: with_gap,
        1: _every(5, 5, DAYS),
        2: sorted([*_every(30, 0, DAYS), *burst]),
        3: _every(10, 0, DAYS - 3),
    }


def _every(minutes: int, first_day: int, behind: int) -> list[int]:
    return list(range(FIRST_DAY_MS + first_day * DAY_MS, FIRST_DAY_MS + behind * DAY_MS, minutes * MINUTE_MS))
