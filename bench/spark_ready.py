"""What a Python source of Spark can do at most: one that hands over Arrow batches which are there already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

BATCH_ROWS = 10_000
TOPIC = "ready-00000"  # as long as the names of the topics that the others read


class ReadySource(DataSource):
    """`records` of `recordBytes` (key and value) in `partitions`, with the columns of Kafka's records."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> StructType:
        from lowwater.spark.source import LowwaterSource

        nowhere = {"kafka.bootstrap.servers": "nowhere:1", "subscribe": "ready"}
        return LowwaterSource(nowhere).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return ReadyStreamReader(self.options)


class Ready:
    def __init__(self, options: dict[str, str]) -> None:
        self._records, self._record_bytes = int(options["records"]), int(options["recordbytes"])
        self._partitions = int(options["partitions"])
        self._limit = int(options.get("maxoffsetspertrigger", self._records))

    def split(self, records: int) -> list[InputPartition]:
        return [InputPartition(records // self._partitions) for _ in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        batch = _batch(self._record_bytes)
        for first in range(0, partition.value, BATCH_ROWS):
            yield batch.slice(0, min(BATCH_ROWS, partition.value - first))


class ReadyReader(Ready, DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        return self.split(self._records)


class ReadyStreamReader(Ready, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """There is no more than that."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        return {"at": min(start["at"] + self._limit, self._records)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.split(end["at"] - start["at"])


@lru_cache(maxsize=4)
def _batch(record_bytes: int) -> Any:
    import numpy as np
    import pyarrow as pa

    from bench import layouts
    from lowwater.spark.shaping import TYPES

    rows = layouts.table(BATCH_ROWS, record_bytes, np.arange(BATCH_ROWS))
    columns = {
        "key": rows.column("key"),
        "value": rows.column("value"),
        "topic": pa.array([TOPIC] * BATCH_ROWS),
        "partition": pa.array(np.zeros(BATCH_ROWS, np.int32)),
        "offset": pa.array(np.arange(BATCH_ROWS)),
        "timestamp": rows.column("timestamp").cast(TYPES["timestamp"]),
        "timestampType": pa.array(np.zeros(BATCH_ROWS, np.int32)),
    }
    return pa.RecordBatch.from_arrays(
        list(columns.values()), schema=pa.schema([pa.field(name, TYPES[name]) for name in columns])
    )
