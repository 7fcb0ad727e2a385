"""What a Fetch brought of one partition, and what became of it. Without Arrow, so that every flow can speak of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from lowwater.client.errors import ClientError
from lowwater.types import Buffer, TopicPartition


class FetchedSlice(NamedTuple):
    """Batches as stored, from the one that holds `fetch_offset` on; the last may be cut off."""

    partition: TopicPartition
    fetch_offset: int
    records: Buffer
    high_watermark: int = -1
    last_stable: int = -1
    log_start: int = -1
    aborted: Sequence[tuple[int, int]] = ()
    """(producer id, first offset) of aborted transactions; only for readers of committed records."""


class Arrival(NamedTuple):
    """How far a partition is read now, and what is held of it since. `error`: why not further."""

    partition: TopicPartition
    position: int
    newest_ms: int | None = None
    rows: int = 0
    size: int = 0
    future_rows: int = 0
    error: ClientError | None = None


Left: TypeAlias = tuple[TopicPartition, int, int]
"""A partition, how many of its rows went, and how many bytes are not held for it any more."""
