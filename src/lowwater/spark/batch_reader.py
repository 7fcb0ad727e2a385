"""A batch query's reader, as Spark calls it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from lowwater.spark.batch_planner import plan
from lowwater.spark.filters import Bounds, bounds
from lowwater.spark.scan import Scan


class LowwaterReader(DataSourceReader):
    """Nothing is asked before `partitions`; what is read is fixed by that."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._bounds = Bounds()
        self.pushFilters = PushFilters(self)  # type: ignore[method-assign]

    def narrow(self, filters: list[Filter]) -> None:
        """No more is read than rows that may pass these filters."""
        self._bounds = bounds(filters)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(task) for task in plan(self._scan.options, self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._scan.read(partition.value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers read and plan nothing."""
        return LowwaterReader, (self._scan,)


class PushFilters:
    """Stands in for the method: Spark refuses readers that have one of their own unless a setting of it is on.

    It looks whether `__func__` is that of its own class, so that is what it finds here.
    """

    def __init__(self, reader: LowwaterReader) -> None:
        self._reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """All of them stay Spark's to apply as well: they only say what need not be read."""
        self._reader.narrow(filters)
        return filters
