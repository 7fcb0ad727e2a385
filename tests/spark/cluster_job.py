"""What is tried on a cluster: `python -m tests.spark.cluster_job '{…}'` prints what it found, as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.crash.spark_job import CONFS

PLACES = "partition int, offset long"


def main() -> None:
    given = json.loads(sys.argv[1])
    confs = {**CONFS, "spark.cores.max": "2", "spark.executor.memory": "512m", "spark.task.maxFailures": "2"}
    # Tasks wait until both executors are there.
    confs |= {"spark.scheduler.minRegisteredResourcesRatio": "1.0"}
    builder = SparkSession.builder.master(given["master"]).appName("cluster")
    for name, value in confs.items():
        builder = builder.config(name, value)
    tried = Tried(builder.getOrCreate(), given)
    found = {"read": tried.batch(), "streamed": tried.stream(), "gone": tried.gone(), "kept": tried.kept()}
    print(json.dumps(found))


class Tried:
    def __init__(self, session: SparkSession, given: dict[str, Any]) -> None:
        self._session = session
        self._given = given
        self._broker = {"kafka.bootstrap.servers": given["bootstrap"]}

    def batch(self) -> list[tuple[int, int, str]]:
        """Rows, each with the process whose children have read it: executors have one each."""
        frame = self._session.read.format("lowwater").options(**self._broker, subscribe=self._given["topic"]).load()
        rows = frame.select("partition", "value").mapInArrow(_with_parent, "parent int, partition int, value string")
        return [tuple(row) for row in rows.collect()]

    def stream(self) -> int:
        """The topic becomes another one; how many batches that took."""
        options = {"subscribe": self._given["topic"], "group": self._given["group"], "start": "stored|earliest"}
        source = self._session.readStream.format("lowwater").options(**self._broker, **options)
        frame = source.option("maxOffsetsPerTrigger", self._given["limit"]).load().select("key", "value", "partition")
        sink = frame.writeStream.format("lowwater").options(**self._broker, topic=self._given["copy"])
        query = sink.option("checkpointLocation", f"{self._given['folder']}/checkpoint")
        done = query.trigger(availableNow=True).start()
        done.awaitTermination()
        return len({progress.batchId for progress in done.recentProgress if progress.numInputRows})

    def gone(self) -> str:
        try:
            self._lossy(failOnDataLoss="true")
        except Exception as error:
            return str(error)
        return ""

    def kept(self) -> list[tuple[int, int]]:
        return self._lossy(failOnDataLoss="false", lossLedger=self._given["ledger"])

    def _lossy(self, **options: str) -> list[tuple[int, int]]:
        lossy = self._given["lossy"]
        wanted = {"subscribe": lossy, "startingOffsets": json.dumps({lossy: {"0": 1}}), **options}
        rows = self._session.read.schema(PLACES).format("lowwater").options(**self._broker, **wanted).load()
        return sorted(tuple(row) for row in rows.collect())


def _with_parent(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        parents = pa.array([os.getppid()] * batch.num_rows, pa.int32())
        columns = [parents, batch["partition"], batch["value"].cast(pa.string())]
        yield pa.RecordBatch.from_arrays(columns, ["parent", "partition", "value"])


if __name__ == "__main__":
    main()
