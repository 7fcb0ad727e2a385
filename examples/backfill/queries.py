"""One backlog read in several ways, each by a query that counts rows by window under a watermark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, window

from lowwater.spark.offsets import Offset
from lowwater.spark.progress import Progress

DELAY = "10 minutes"
WINDOW = "10 minutes"
PATIENCE_S = 900


@dataclass(frozen=True)
class Way:
    """How the backlog is cut into micro-batches."""

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)


def ways(cut: str) -> dict[str, Way]:
    return {
        "aligned": Way("lowwater, cut", "lowwater", {"cut": cut}),
        "plain": Way("lowwater, plain", "lowwater"),
        "connector": Way("Spark's Kafka connector", "kafka"),
    }


@dataclass(frozen=True)
class Batch:
    """As Spark told of it: `ends` and `reached_ms` by partition. `reached_ms` is the time of the last row read."""

    batch: int
    rows: int
    watermark_ms: int | None
    cut_ms: int | None
    asked: int
    ends: Mapping[int, int]
    reached_ms: Mapping[int, int]


@dataclass(frozen=True)
class Outcome:
    """`kept` are rows that windows counted; what was read and is not in any was dropped as late."""

    way: str
    rows: int
    kept: int
    batches: list[Batch]

    @property
    def dropped(self) -> int:
        return self.rows - self.kept

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "dropped": self.dropped}


def run(
    spark: SparkSession,
    way: Way,
    bootstrap: str,
    topic: str,
    *,
    limit: int,
    checkpoint: str,
    times_ms: Mapping[int, Mapping[int, int]],
) -> Outcome:
    """All that is there, in micro-batches of at most about `limit` rows. `times_ms`: of the topic's rows, by offset."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    reader = spark.readStream.format(way.format).options(**options, **way.options)
    counts: dict[datetime, int] = {}

    def keep(frame: DataFrame, _: int) -> None:
        counts.update({row.window.start: row["count"] for row in frame.collect()})

    stamped = reader.option("maxOffsetsPerTrigger", str(limit)).load().select(col("timestamp"))
    counted = stamped.withWatermark("timestamp", DELAY).groupBy(window("timestamp", WINDOW)).count()
    writer = counted.writeStream.outputMode("update").foreachBatch(keep).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S), "the query ends"
    events = [json.loads(event.json) for event in query.recentProgress]
    batches = [_batch(event, times_ms) for event in events]
    return Outcome(way.name, sum(each.rows for each in batches), sum(counts.values()), batches)


def _batch(event: Mapping[str, Any], times_ms: Mapping[int, Mapping[int, int]]) -> Batch:
    progress = Progress.of(event)
    end = event["sources"][0]["endOffset"]
    offset = Offset.parse(json.loads(end) if isinstance(end, str) else end)
    ends = {one.partition: at for one, at in sorted(offset.at.items())}
    plan = offset.plan
    return Batch(
        batch=progress.batch_id,
        rows=progress.rows,
        watermark_ms=progress.watermark_ms,
        cut_ms=None if plan is None else plan.cut_ms,
        asked=0 if plan is None else plan.asked,
        ends=ends,
        reached_ms={partition: times_ms[partition][at - 1] for partition, at in ends.items() if at},
    )
