"""What an append answers."""

from __future__ import annotations

from typing import NamedTuple


class Appended(NamedTuple):
    """Where a batch went. A duplicate has the place of the batch it repeats."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start: int
    duplicate: bool
