"""Settings of one log, as the topic's configuration gives them."""

from __future__ import annotations

from dataclasses import dataclass

FOREVER = (1 << 63) - 1
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Shared by all partitions with the same settings; -1 in a retention means no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    compact: bool = False
    delete: bool = True
    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    timestamp_before_max_ms: int = FOREVER
    timestamp_after_max_ms: int = HOUR_MS
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    producer_expiration_ms: int = DAY_MS

    @property
    def segment_ms_max(self) -> int:
        """A compacted topic rolls early enough for max.compaction.lag.ms to hold."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms


DEFAULT_CONFIG = LogConfig()
