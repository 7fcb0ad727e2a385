"""How far a query has got, read from what Spark tells after each micro-batch.

Spark's own figure for lag, offsets behind the latest, is something that a source in Python cannot report. Here it comes
from the offsets in Spark's event: where the batch ended, and where the partitions ended then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lowwater.spark.offsets import Offset, OffsetError
from lowwater.types import TopicPartition

BAD_ROWS_PREFIX = "decoding_"
_EPOCH_MS = 0


@dataclass(frozen=True, slots=True)
class Behind:
    """Records that are there and not read yet: of all partitions together, and of each."""

    records: int
    least: int
    most: int
    mean: float

    @classmethod
    def of(cls, at: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Behind:
        """Partitions that Spark has not read yet count from their beginning, as far as that is known: from 0."""
        each = [max(0, end - at.get(one, 0)) for one, end in latest.items()] or [0]
        return cls(sum(each), min(each), max(each), sum(each) / len(each))


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """One source of a query. `behind` is None where the broker has not been asked, and for other people's sources."""

    topics: tuple[str, ...]
    rows: int
    at: Mapping[TopicPartition, int] = field(default_factory=dict)
    latest: Mapping[TopicPartition, int] = field(default_factory=dict)
    behind: Behind | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """A micro-batch. `late_rows` is what stateful operators refused, counted where they met them."""

    query: str
    batch_id: int
    ended_ms: int
    rows: int
    rows_s: float
    batch_ms: int
    sources: tuple[SourceProgress, ...]
    event_time_max_ms: int | None = None
    watermark_ms: int | None = None
    late_rows: int = 0
    state_rows: int = 0
    rows_written: int | None = None
    bad_rows: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Progress:
        """From the JSON of a StreamingQueryProgress."""
        batch_ms = int((event.get("durationMs") or {}).get("triggerExecution", 0))
        times = event.get("eventTime") or {}
        operators = event.get("stateOperators") or ()
        written = int((event.get("sink") or {}).get("numOutputRows", -1))
        return cls(
            query=str(event.get("name") or event.get("id", "")),
            batch_id=int(event["batchId"]),
            ended_ms=parse_time_ms(event["timestamp"]) + batch_ms,
            rows=rows_of(event),
            rows_s=_sum_of(event, "processedRowsPerSecond"),
            batch_ms=batch_ms,
            sources=tuple(_source(each) for each in event.get("sources") or ()),
            event_time_max_ms=parse_time_ms(times["max"]) if "max" in times else None,
            watermark_ms=_watermark_ms(times),
            late_rows=sum(int(each.get("numRowsDroppedByWatermark", 0)) for each in operators),
            state_rows=sum(int(each.get("numRowsTotal", 0)) for each in operators),
            rows_written=written if written >= 0 else None,
            bad_rows=_bad_rows(event.get("observedMetrics") or {}),
        )

    @property
    def behind(self) -> Behind | None:
        """Of all sources; None when none of them can say."""
        known = [source for source in self.sources if source.behind is not None]
        if not known:
            return None
        at = {one: offset for source in known for one, offset in source.at.items()}
        return Behind.of(at, {one: end for source in known for one, end in source.latest.items()})


def rows_of(event: Mapping[str, Any]) -> int:
    """How many a micro-batch has read."""
    return int(_sum_of(event, "numInputRows"))


def _sum_of(event: Mapping[str, Any], name: str) -> float:
    """Over Spark Connect a query's progress has the figures of its sources alone."""
    whole = event.get(name)
    if whole is None:
        whole = sum(float(source.get(name) or 0) for source in event.get("sources") or ())
    return float(whole)


def parse_time_ms(text: str) -> int:
    """2026-03-02T20:13:32.694Z, in milliseconds since 1970."""
    moment = datetime.fromisoformat(text)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _watermark_ms(times: Mapping[str, str]) -> int | None:
    """None while there is none: Spark says 1970 then."""
    at_ms = parse_time_ms(times["watermark"]) if "watermark" in times else _EPOCH_MS
    return at_ms if at_ms > _EPOCH_MS else None


def _source(event: Mapping[str, Any]) -> SourceProgress:
    rows = int(event.get("numInputRows") or 0)
    end, latest = _offset(event.get("endOffset")), _offset(event.get("latestOffset"))
    if end is None:
        return SourceProgress((), rows)
    topics = tuple(dict.fromkeys(one.topic for one in end.at))
    if latest is None:
        return SourceProgress(topics, rows, end.at)
    return SourceProgress(topics, rows, end.at, latest.at, Behind.of(end.at, latest.at))


def _offset(told: Any) -> Offset | None:
    """None for what is not an offset of ours or of the Kafka connector."""
    try:
        value = json.loads(told) if isinstance(told, str) else told
        return Offset.parse(value) if isinstance(value, Mapping) else None
    except (OffsetError, ValueError):
        return None


def _bad_rows(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """By source."""
    return {
        name.removeprefix(BAD_ROWS_PREFIX): int(metric.get("bad") or 0)
        for name, metric in metrics.items()
        if name.startswith(BAD_ROWS_PREFIX)
    }
