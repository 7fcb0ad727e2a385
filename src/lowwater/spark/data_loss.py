"""Offsets that were gone before Spark could read them: the query fails, or goes on and writes it down."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from lowwater.client.releasing import Lost
from lowwater.errors import LowwaterError
from lowwater.spark.limits import Gap, Why
from lowwater.spark.loss_records import Loss
from lowwater.spark.options import SourceOptions

LOG = logging.getLogger("lowwater.spark")
_ADVICE = "set failOnDataLoss to false to go on without them"
_OR_ELSE = {
    Why.REMOVED: "unless this query does not read it any more: a checkpoint belongs to one query and its topics",
    Why.TRUNCATED: "unless its start was given, and lies behind the end",
}
"""What else it may look like, as far as it can be seen from here."""
_QUERY = "sql.streaming.queryId"


class DataLossError(LowwaterError):
    """Records that a query has to read are not there any more."""


# -- found by a task


def fail(lost: Lost) -> None:
    """failOnDataLoss=true."""
    raise DataLossError(f"{_lost(lost)}: deleted before they were read, or the log was truncated; {_ADVICE}")


class Skipping:
    """failOnDataLoss=false. What one task finds, until it is written down."""

    def __init__(self, options: SourceOptions, lineage: str) -> None:
        self._options = options
        self._lineage = lineage
        self._found: list[Loss] = []

    def __call__(self, lost: Lost) -> None:
        LOG.warning("%s; reading goes on behind them", _lost(lost))
        why = Why.TRUNCATED if lost.is_truncated else Why.EXPIRED
        self._found.append(
            Loss(
                lost.topic,
                lost.partition,
                lost.first,
                lost.behind,
                why.value,
                _now_ms(),
                self._lineage,
                _query(),
                self._options.group or "",
            )
        )

    def write_down(self) -> None:
        found, self._found = self._found, []
        _enter(self._options, found)


def _lost(lost: Lost) -> str:
    return f"{lost.topic!r} partition {lost.partition}: offsets [{lost.first}, {lost.behind}) are gone"


def _query() -> str:
    """The id that Spark shows of the streaming query whose task this is."""
    from pyspark import TaskContext  # known to whoever runs a task

    context = TaskContext.get()
    return "" if context is None else context.getLocalProperty(_QUERY) or ""


# -- found by the driver


def at_planning(found: list[Gap], options: SourceOptions, lineage: str) -> None:
    """What shows before any task reads. What has expired a task finds too, and exactly: it tells of that."""
    if options.fail_on_loss:
        others = [text for why, text in _OR_ELSE.items() if any(gap.why is why for gap in found)]
        raise DataLossError("; ".join([*map(_gap, found), *others, _ADVICE]))
    kept = [gap for gap in found if gap.why is not Why.EXPIRED]
    for gap in kept:
        LOG.warning("%s; the query goes on", _gap(gap))
    now_ms, group = _now_ms(), options.group or ""
    _enter(
        options,
        [Loss(*gap.partition, gap.first, gap.behind, gap.why.value, now_ms, lineage, "", group) for gap in kept],
    )


def _gap(gap: Gap) -> str:
    which = f"offsets from {gap.first} on" if gap.behind is None else f"offsets [{gap.first}, {gap.behind})"
    return f"{gap.partition.topic!r} partition {gap.partition.partition}: {which} are gone, {gap.why.value}"


def _enter(options: SourceOptions, found: Iterable[Loss]) -> None:
    losses = list(found)
    if losses:
        from lowwater.spark.ledger import enter  # a query that loses nothing needs no producer

        enter(options.client.settings, losses, options.ledger)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
