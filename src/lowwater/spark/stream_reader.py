"""A stream's reader, as Spark calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from lowwater.errors import ConfigError
from lowwater.spark.limits import default_limit
from lowwater.spark.scan import Scan
from lowwater.spark.stream_planner import StreamPlanner


class LowwaterStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Made in processes that only want `read` as well: nothing is asked before the first call of the driver's side."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    @cached_property
    def _planner(self) -> StreamPlanner:
        return StreamPlanner(self._scan.options)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        limit = default_limit(self._scan.options)
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._planner.stop_at_what_is_there()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._planner.initial_offset()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return self._planner.latest_offset(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._planner.reported_offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(task) for task in self._planner.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._scan.read(partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: Spark says so only with the next batch, and not of the last one."""

    def stop(self) -> None:
        """Called after a failure alone."""
        if "_planner" in self.__dict__:
            self._planner.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers read and plan nothing."""
        return LowwaterStreamReader, (self._scan,)


class RefusedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """For options that no stream has: Spark hides an error that is raised before it has a reader behind one of its own,
    and shows what the first call raises."""

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        raise self._error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        raise self._error

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[Any]:
        raise self._error
