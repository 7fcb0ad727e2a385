"""What a query reads, as it travels from the driver to the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lowwater.spark import data_loss
from lowwater.spark.columns import Chosen
from lowwater.spark.decoding.spec import DecodeSpec
from lowwater.spark.lateness import telling
from lowwater.spark.options import SourceOptions
from lowwater.spark.splitting import Task


@dataclass(frozen=True, slots=True)
class Scan:
    """`decode` has its schema inside already, so that all workers decode alike."""

    options: SourceOptions
    chosen: tuple[Chosen, ...]
    decode: DecodeSpec | None = None

    def read(self, task: Task | None) -> Iterator[Any]:
        """The rows of a task as Arrow batches. Spark plans one task, of nothing, where there is nothing to read."""
        # Only workers need Arrow and the kernels; drivers plan without them.
        from lowwater.spark.shaping import shape_of
        from lowwater.spark.worker_client import read_task

        if task is None:
            return iter(())
        shape = shape_of(self.chosen, self.decode)
        settings, patience_ms = self.options.client.settings, self.options.poll_timeout_ms
        if self.options.fail_on_loss:
            return self._told(read_task(settings, task, shape, on_lost=data_loss.fail, patience_ms=patience_ms), task)
        skipping = data_loss.Skipping(self.options, task.lineage)
        batches = read_task(settings, task, shape, on_lost=skipping, patience_ms=patience_ms)
        return _written_down(self._told(batches, task), skipping.write_down)

    def _told(self, batches: Iterator[Any], task: Task) -> Iterator[Any]:
        """Of late rows, where their times are read anyway."""
        if task.late_before_ms is None or "timestamp" not in (each.name for each in self.chosen):
            return batches
        return telling(batches, task.late_before_ms)


def _written_down(batches: Iterator[Any], write_down: Callable[[], None]) -> Iterator[Any]:
    """Also when nobody wants the rest of the rows, or they cannot be read."""
    try:
        yield from batches
    finally:
        write_down()
