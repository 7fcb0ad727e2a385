"""Rows that no record can be made of fail their task before anybody is asked to write them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lowwater.client.errors import BadRowsError
from lowwater.spark.sink_columns import WrittenColumns
from lowwater.spark.worker_producer import write_rows

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


def write(to: str | None, **columns: Any) -> None:
    batch = pa.record_batch(columns)
    places = WrittenColumns(tuple(columns), tuple(range(len(columns))), to)
    write_rows(NOWHERE, places, iter([batch.slice(0, 0), batch]))


def test_a_row_without_a_topic_fails_the_task() -> None:
    with pytest.raises(BadRowsError, match="null topic present in the data"):
        write(None, value=["a", "b"], topic=["t", None])


def test_a_row_of_a_partition_that_cannot_be_fails_the_task() -> None:
    with pytest.raises(BadRowsError, match="Invalid partition -1 present in the data"):
        write("t", value=["a", "b", "c"], partition=pa.array([0, None, -1], pa.int32()))


def test_headers_without_a_key_fail_the_task() -> None:
    headers = pa.array([[(None, b"v")]], pa.list_(pa.struct([("key", pa.utf8()), ("value", pa.binary())])))
    with pytest.raises(BadRowsError, match="a header has no key"):
        write("t", value=["a"], headers=headers)
