"""What callers hand in, as record batches whose rows can be sent."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lowwater.client.errors import BadRowsError
from lowwater.client.outgoing import OutgoingRows
from lowwater.client.producing.partitioning import Partitioner
from lowwater.client.producing.reports import NO_OFFSET
from lowwater.client.slabs import Slabs
from lowwater.wire.kernels.partitioning import UNPLACED

__all__ = [
    "Partitioner",
    "Slabs",
    "batches_of",
    "by_topic",
    "named_partitions",
    "numbers",
    "offsets",
    "outgoing",
    "pieces",
    "record_batch",
    "require_columns",
]

WRITTEN = ("key", "value", "headers", "partition", "timestamp", "topic")
# What a reader gives besides: its batches may be sent as they are.
NOT_WRITTEN = ("offset", "timestamp_type")

# Of one piece: enough for full batches, and the first leave while later ones are still prepared. Larger pieces of
# memory are given back to the system each time, and cost more than they save.
ROWS_MAX = 128 * 1024
BYTES_MAX = 16 * 1024 * 1024
# With many partitions it is the number of batches that costs.
ROWS_BY_PARTITION, BYTES_BY_PARTITION = 1024, 64 * 1024
GROWTH_MAX = 8
ROWS_FEW = 8_192


def batches_of(table: Any) -> Iterator[Any]:
    """The record batches of a table, batch, reader, or whatever speaks Arrow's C interface."""
    if isinstance(table, pa.RecordBatch):
        source: Any = [table]
    elif isinstance(table, pa.RecordBatchReader):
        source = table
    elif isinstance(table, pa.Table):
        source = _batches_in(table)
    elif hasattr(table, "__arrow_c_stream__"):
        source = pa.RecordBatchReader.from_stream(table)
    elif hasattr(table, "__arrow_c_array__"):
        source = [pa.record_batch(table)]
    else:
        raise BadRowsError(f"{type(table).__name__} is no Arrow table, record batch or reader")
    yield from source


def _batches_in(table: Any) -> Any:
    """Many small chunks are put together first."""
    batches = table.to_batches()
    if len(batches) > 1 and table.num_rows < ROWS_FEW * len(batches):
        return table.combine_chunks().to_batches()
    return batches


def require_columns(batch: Any) -> None:
    """BadRowsError for columns that would be lost without a word, or when there is nothing to write."""
    names = batch.schema.names
    for name in names:
        if name not in WRITTEN + NOT_WRITTEN:
            close = difflib.get_close_matches(name, WRITTEN, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(WRITTEN)}"
            raise BadRowsError(f"a column {name!r} cannot be written{hint}")
        if names.count(name) > 1:
            raise BadRowsError(f"there are {names.count(name)} columns {name!r}")
    if "key" not in names and "value" not in names:
        raise BadRowsError("there is neither a column key nor a column value")


def pieces(batch: Any, partitions: int) -> Iterator[Any]:
    """Of a size that is good to work on, for a topic with so many partitions."""
    if not batch.num_rows:
        return
    bytes_max = min(max(BYTES_MAX, partitions * BYTES_BY_PARTITION), GROWTH_MAX * BYTES_MAX)
    rows_max = min(max(ROWS_MAX, partitions * ROWS_BY_PARTITION), GROWTH_MAX * ROWS_MAX)
    rows = min(rows_max, max(bytes_max * batch.num_rows // max(batch.nbytes, 1), 1))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def by_topic(topic: str | None, batch: Any) -> list[tuple[str, Any, Any]]:
    """(topic, its rows, which of the batch they are). Rows of a batch without a topic of its own name theirs."""
    if topic is not None:
        return [(topic, batch, np.arange(batch.num_rows))]
    if "topic" not in batch.schema.names:
        raise BadRowsError("there is no column topic, and no topic was given")
    topics = batch.column("topic").cast(pa.utf8())
    if topics.null_count:
        row = pc.index(topics.is_null(), True).as_py()
        raise BadRowsError(f"row {row} has no topic, and no topic was given")
    found = []
    for name in pc.unique(topics).to_pylist():
        numbers = np.flatnonzero(pc.equal(topics, name).to_numpy(zero_copy_only=False))
        found.append((name, batch.take(pa.array(numbers)), numbers))
    return found


def outgoing(batch: Any, now_ms: int, slabs: Slabs | None = None) -> OutgoingRows:
    """BadRowsError when its columns cannot be records."""
    try:
        return OutgoingRows(batch, now_ms=now_ms, slabs=slabs)
    except (ValueError, pa.ArrowException) as error:
        raise BadRowsError(str(error)) from error


def named_partitions(batch: Any) -> Any:
    """What the rows say of their partition, UNPLACED where they say nothing; None without such a column."""
    if "partition" not in batch.schema.names:
        return None
    column = batch.column("partition")
    if pa.types.is_null(column.type):
        return None
    if not pa.types.is_integer(column.type):
        raise BadRowsError(f"the column partition is {column.type}, not of whole numbers")
    named = pc.fill_null(column.cast(pa.int64(), safe=False), UNPLACED).to_numpy(zero_copy_only=False)
    return np.clip(named, UNPLACED - 1, np.iinfo(np.int32).max)


def record_batch(
    keys: list[Any], values: list[Any], headers: list[Any] | None, partitions: list[Any] | None, times: list[int]
) -> Any:
    """Plain records as columns."""
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array(times, pa.int64()),
    }
    if headers is not None:
        columns["headers"] = pa.array(headers, pa.map_(pa.utf8(), pa.binary()))
    if partitions is not None:
        columns["partition"] = pa.array(partitions, pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def numbers(rows: int) -> Any:
    return np.arange(rows)


def offsets(rows: int, places: Iterable[tuple[Any, int]]) -> Any:
    """By row, from (numbers of rows, offset of the first of them); null where there is none."""
    found = np.full(rows, NO_OFFSET, np.int64)
    for numbers, base_offset in places:
        if base_offset != NO_OFFSET:
            found[numbers] = np.arange(base_offset, base_offset + len(numbers))
    return pa.array(found, mask=found == NO_OFFSET)
