"""What the transaction coordinator is told by the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Made anew when a setting or the feature `transaction.version` is altered."""

    timeout_max_ms: int = 900_000
    id_expiration_ms: int = 7 * 24 * 3_600_000
    abort_scan_interval_ms: int = 10_000
    expiry_scan_interval_ms: int = 3_600_000
    # The level of the feature: with 2 the coordinator's own aborts move a producer on as those of its client do.
    transaction_version: int = 2
