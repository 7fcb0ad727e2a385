"""The source, called as Spark's processes call it, without Spark: what travels between them is pickled on its way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from lowwater.spark.source import LowwaterSource


def batch_rows(options: dict[str, str], columns: Sequence[str] = ()) -> list[dict[str, Any]]:
    source = LowwaterSource(_as_given(options))
    reader: DataSourceReader = _sent(source.reader(_schema(source, columns)))
    return [row for part in reader.partitions() or [None] for row in _read(reader, part)]


def stream_batches(options: dict[str, str], columns: Sequence[str] = ()) -> list[list[dict[str, Any]]]:
    """Batch by batch, as an available-now query reads them."""
    source = LowwaterSource(_as_given(options))
    reader: Any = _sent(source.streamReader(_schema(source, columns)))
    batches = []
    try:
        reader.prepareForTriggerAvailableNow()
        start = _kept(reader.initialOffset())
        while (end := _kept(reader.latestOffset(start, reader.getDefaultReadLimit()))) != start:
            parts = reader.partitions(start, end) or [None]
            batches.append([row for part in parts for row in _read(reader, part)])
            start = end
    finally:
        reader.stop()
    return batches


def _as_given(options: dict[str, str]) -> dict[str, str]:
    """Spark hands their names over in lower case."""
    return {name.lower(): value for name, value in options.items()}


def _schema(source: LowwaterSource, columns: Sequence[str]) -> StructType:
    """Those columns, or all."""
    every = source.schema()
    return StructType([every[name] for name in columns or every.names])


def _read(reader: DataSourceReader | DataSourceStreamReader, part: Any) -> Iterator[dict[str, Any]]:
    reader, part = _sent((reader, part))
    for batch in reader.read(part):
        yield from batch.to_pylist()


def _sent(thing: Any) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(thing))


def _kept(offset: dict[str, Any]) -> dict[str, Any]:
    """As it comes back from the checkpoint."""
    return json.loads(json.dumps(offset))  # type: ignore[no-any-return]
