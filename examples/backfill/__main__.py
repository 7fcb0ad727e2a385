"""`python -m examples.backfill`: rows that a watermark drops from one backlog, by how its micro-batches are cut.

Prints the numbers, writes them with what Spark told of each micro-batch (--out FILE), and draws it (--chart FILE).
Spark's own Kafka connector is part of it where `make peers` has brought it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from examples.backfill import sample
from examples.backfill.event_time import Panel, draw
from examples.backfill.loading import load, read_times
from examples.backfill.queries import DELAY, Outcome, Way, run, ways
from examples.backfill.small_spark import small_spark
from lowwater.testing import Broker

TOPIC = "readings"
CUT, LIMIT = "12h", 400
CONNECTOR = Path(__file__).resolve().parents[2] / ".peers" / "spark" / "libs"


def main() -> int:
    asked = _arguments()
    jars = sorted(Path(asked.connector).glob("*.jar"))
    chosen = {name: way for name, way in ways(asked.cut).items() if jars or way.format == "lowwater"}
    with Broker(subprocess=True) as broker, tempfile.TemporaryDirectory() as folder:
        rows = load(broker.bootstrap, TOPIC, sample.times_ms())
        outcomes = _run_all(chosen, broker.bootstrap, Path(folder), jars, asked.limit)
    print(f"{rows:,} rows, {asked.limit} a batch at most, a watermark of {DELAY}; rows dropped as late:")
    for outcome in outcomes.values():
        print(f"  {outcome.way:25} {outcome.dropped:6,}   ({len(outcome.batches)} batches)")
    if not jars:
        print("  Spark's Kafka connector is not here: `make peers` brings it.")
    if asked.chart:
        Path(asked.chart).write_text(draw([_panel(outcome) for outcome in reversed(outcomes.values())]))
    if asked.out:
        Path(asked.out).write_text(json.dumps(_document(asked, rows, outcomes), indent=1) + "\n")
    return 0 if outcomes["aligned"].dropped == 0 else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.backfill")
    parser.add_argument("--out", help="write the numbers there, as JSON")
    parser.add_argument("--chart", help="draw the event time that partitions reach, batch by batch, as SVG")
    parser.add_argument("--cut", default=CUT, help=f"the span of event time of a batch ({CUT})")
    parser.add_argument("--limit", type=int, default=LIMIT, help=f"maxOffsetsPerTrigger ({LIMIT})")
    parser.add_argument("--connector", default=str(CONNECTOR), help="where the jars of Spark's Kafka connector are")
    return parser.parse_args()


def _run_all(chosen: dict[str, Way], bootstrap: str, folder: Path, jars: list[Path], limit: int) -> dict[str, Outcome]:
    times_ms = read_times(bootstrap, TOPIC)
    spark = _session(folder, jars)
    try:
        return {
            name: run(spark, way, bootstrap, TOPIC, limit=limit, checkpoint=str(folder / name), times_ms=times_ms)
            for name, way in chosen.items()
        }
    finally:
        spark.stop()


def _session(folder: Path, jars: list[Path]) -> SparkSession:
    more = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.jars": ",".join(map(str, jars))}
    return small_spark("backfill", more)


def _panel(outcome: Outcome) -> Panel:
    """Drawn from what Spark told of the query's micro-batches."""
    partitions = sorted({one for batch in outcome.batches for one in batch.ends})
    return Panel(
        outcome.way,
        f"{outcome.dropped:,} of {outcome.rows:,} rows dropped as late",
        {f"{one}: {sample.WHAT[one]}": [batch.reached_ms.get(one) for batch in outcome.batches] for one in partitions},
        [batch.watermark_ms for batch in outcome.batches],
    )


def _document(asked: argparse.Namespace, rows: int, outcomes: dict[str, Outcome]) -> dict[str, Any]:
    return {
        "rows": rows,
        "cut": asked.cut,
        "limit": asked.limit,
        "watermark": DELAY,
        "partitions": sample.WHAT,
        "ways": {name: outcome.document() for name, outcome in outcomes.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
