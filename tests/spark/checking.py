"""Whether a query of the option matrix gave its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.spark.matrix import LIMIT, Case, Query
from tests.spark.writing import Written


def check(case: Case, query: Query, batches: Sequence[list[dict[str, Any]]]) -> None:
    """Every row once, whole; and no batch has more than its limit, beside one of each partition."""
    found = [row for batch in batches for row in batch]
    assert query.rows is not None
    if case.columns == "fewer":
        few = [(row.topic, row.partition, row.offset, row.value) for row in query.rows]
        assert sorted(tuple(row.values()) for row in found) == sorted(few), str(case)
        return
    assert sorted(map(written, found), key=lambda row: row[:3]) == query.rows, str(case)
    assert {row["timestampType"] for row in found if row["topic"].endswith("-stamped")} <= {1}, str(case)
    assert {row["timestampType"] for row in found if not row["topic"].endswith("-stamped")} <= {0}, str(case)
    if case.mode == "limited stream":
        assert all(len(batch) <= LIMIT + 7 for batch in batches), str(case)


def written(row: dict[str, Any]) -> Written:
    headers = row.get("headers")
    pairs = None if headers is None else tuple((each["key"], each["value"]) for each in headers)
    timestamp_ms = round(row["timestamp"].timestamp() * 1_000)
    return Written(row["topic"], row["partition"], row["offset"], timestamp_ms, row["key"], row["value"], pairs)
