"""What is tried over Spark Connect: `python -m tests.spark.connect_job '{…}'` prints what it found, as JSON."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
from typing import Any

from pyspark.sql import SparkSession

from lowwater.spark import Pipeline
from lowwater.spark.listening import listen
from lowwater.spark.progress import Progress

PATIENCE_S = 120
ALL_IN_ALL_S = 360
"""Then whatever hangs says where."""
PIPELINE = """\
name = "{group}"
remote = "{remote}"
checkpoint = "{folder}/pipeline"

[kafka]
bootstrap.servers = "{bootstrap}"

[source.orders]
topics = "{topic}"
start = "stored|earliest"

[[step]]
name = "loud"
sql = "SELECT key, upper(CAST(value AS string)) AS value FROM orders"

[sink.out]
from = "loud"
format = "topic"
topic = "{shouted}"
"""


def main() -> None:
    given = json.loads(sys.argv[1])
    faulthandler.dump_traceback_later(ALL_IN_ALL_S, exit=True)
    # First: with a session that is there already a pipeline would use that one.
    summary = Pipeline.parse(PIPELINE.format(**given)).run()
    session = SparkSession.builder.remote(given["remote"]).getOrCreate()
    found = {
        "pipeline": {"outcome": summary.outcome.value, "rows": summary.rows},
        "values": batch(session, given),
        "is_remote": type(session).__module__.startswith("pyspark.sql.connect"),
        "progress": stream(session, given),
    }
    print(json.dumps(found), flush=True)
    # Without a farewell: Spark's client ends a listener by waiting for its thread, which waits for the server.
    os._exit(0)


def batch(session: SparkSession, given: dict[str, Any]) -> list[str]:
    options = {"kafka.bootstrap.servers": given["bootstrap"], "subscribe": given["topic"]}
    rows = session.read.format("lowwater").options(**options).load().selectExpr("CAST(value AS string) AS value")
    return sorted(row.value for row in rows.collect())


def stream(session: SparkSession, given: dict[str, Any]) -> list[tuple[int, int, int]]:
    """What the listener was told of each batch: its number, its rows, and the records behind it."""
    told: list[Progress] = []
    came = threading.Condition()

    def tell(progress: Progress) -> None:
        with came:
            told.append(progress)
            came.notify()

    listen(session, tell)
    broker = {"kafka.bootstrap.servers": given["bootstrap"]}
    options = {"subscribe": given["topic"], "startingOffsets": "earliest", "maxOffsetsPerTrigger": given["limit"]}
    frame = session.readStream.format("lowwater").options(**broker, **options, group=given["streaming"]).load()
    writer = frame.select("key", "value", "partition").writeStream.format("lowwater").options(**broker)
    writer = writer.option("topic", given["copy"]).option("checkpointLocation", f"{given['folder']}/stream")
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S)
    with came:
        assert came.wait_for(lambda: len(told) >= given["batches"], PATIENCE_S), "the listener hears of all batches"
    return [(one.batch_id, one.rows, one.behind.records if one.behind else -1) for one in told]


if __name__ == "__main__":
    main()
