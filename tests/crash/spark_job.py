"""One life of a streaming query, as a process that can be killed: `python -m tests.crash.spark_job '{…}'`.

Each batch becomes one Parquet file by its number, which a batch that is run again replaces: so the sink is idempotent,
and what a batch had the first time can be compared with what it has the next.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tests.crash.spark_faults import AFTER_SINK, NAME, reach, register

QUICK_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONFS = {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.checkpointFileManagerClass": QUICK_FILES,
    "spark.python.unix.domain.socket.enabled": "true",
}
SCHEMA = "topic string, partition int, offset long, timestamp timestamp, value binary"
PLACE = [("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")]


@dataclass(frozen=True, slots=True)
class Job:
    """`folder` has the checkpoint, the output and the armed points. `is_last`: ends when everything is read."""

    folder: str
    options: dict[str, str]
    master: str = "local[2,3]"
    is_last: bool = False
    confs: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Output:
    """`<batch>.parquet`, whole or not at all; `replays` has a line for every batch that was there already.

    Rows that Spark gives in no order are put into one first; where the source promises an order they stay in it.
    """

    def __init__(self, folder: Path, *, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self._folder = folder / "out"
        self._replays = folder / "replays"
        self._points = folder
        self._folder.mkdir(exist_ok=True)

    def __call__(self, frame: DataFrame, number: int) -> None:
        table = frame.toArrow() if self._is_ordered else frame.toArrow().sort_by(PLACE)
        file = self._folder / f"{number}.parquet"
        if file.exists():
            self._compare(number, pq.read_table(file), table)
        unfinished = file.with_suffix(".tmp")
        pq.write_table(table, unfinished)
        os.replace(unfinished, file)
        reach(self._points, AFTER_SINK)

    def _compare(self, number: int, before: pa.Table, now: pa.Table) -> None:
        with self._replays.open("a") as file:
            file.write(f"{number} {'same' if before.equals(now.cast(before.schema)) else 'DIFFERENT'}\n")


def main() -> int:
    job = Job(**json.loads(sys.argv[1]))
    folder = Path(job.folder)
    builder = SparkSession.builder.master(job.master).appName("kills")
    for name, value in {**CONFS, **job.confs}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    source = session.readStream.schema(SCHEMA).format(NAME).option("faultFolder", job.folder).options(**job.options)
    output = Output(folder, is_ordered="order" in job.options)
    writer = source.load().writeStream.foreachBatch(output).option("checkpointLocation", f"{folder}/checkpoint")
    query = (writer.trigger(availableNow=True) if job.is_last else writer).start()
    try:
        query.awaitTermination()
    except Exception as error:
        (folder / "failure").write_text(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
