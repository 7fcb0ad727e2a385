"""Queries of one test on the session that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.fresh import fresh
from tests.spark.writing import Written

PATIENCE_S = 300


class Spark:
    """Reads with `format("lowwater")` unless told another."""

    def __init__(self, session: SparkSession, bootstrap: str, directory: Path) -> None:
        self.session = session
        self.bootstrap = bootstrap
        self._directory = directory
        self._queries: list[StreamingQuery] = []

    # -- batch

    def read(self, schema: str | None = None, **options: Any) -> DataFrame:
        reader = self.session.read if schema is None else self.session.read.schema(schema)
        return reader.format("lowwater").options(**self._options(options)).load()

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        """`kafka_group_id` stands for `kafka.group.id`."""
        named = {name.replace("_", "."): value for name, value in options.items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **named}

    # -- streams

    def stream(self, schema: str | None = None, **options: Any) -> DataFrame:
        reader = self.session.readStream if schema is None else self.session.readStream.schema(schema)
        return reader.format("lowwater").options(**self._options(options)).load()

    def checkpoint(self) -> str:
        return str(self._directory / fresh("checkpoint"))

    def start(self, frame: DataFrame, sink: Any, checkpoint: str, **trigger: Any) -> StreamingQuery:
        """`sink` is given each batch's rows and its number."""
        writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
        query = (writer.trigger(**trigger) if trigger else writer).start()
        self._queries.append(query)
        return query

    def drain(self, checkpoint: str, schema: str | None = None, **options: Any) -> list[list[Row]]:
        """All that is there now, batch by batch, by a query that ends then."""
        batches: list[list[Row]] = []
        query = self.start(self.stream(schema, **options), collect_into(batches), checkpoint, availableNow=True)
        assert query.awaitTermination(PATIENCE_S), "the query ends"
        return batches

    def stop_queries(self) -> None:
        for query in self._queries:
            query.stop()


def collect_into(batches: list[list[Row]]) -> Callable[[DataFrame, int], None]:
    """A sink that keeps the rows of each batch."""

    def keep(frame: DataFrame, _: int) -> None:
        batches.append(frame.collect())

    return keep


def values(rows: list[Row]) -> list[bytes]:
    """In any order; sorted here."""
    return sorted(bytes(row.value) for row in rows)


def written(rows: list[Row]) -> list[Written]:
    """Rows with all columns, as the other client says them."""
    return sorted((_written(row) for row in rows), key=lambda row: row[:3])


def _written(row: Row) -> Written:
    headers = None
    if "headers" in row and row.headers is not None:
        headers = tuple((each.key, None if each.value is None else bytes(each.value)) for each in row.headers)
    timestamp_ms = round(row.timestamp.timestamp() * 1000)
    key, value = (None if each is None else bytes(each) for each in (row.key, row.value))
    return Written(row.topic, row.partition, row.offset, timestamp_ms, key, value, headers)
