"""What becomes of offsets that were gone before Spark could read them."""

from __future__ import annotations

import logging

from lowwater.client.releasing import Lost
from lowwater.errors import LowwaterError
from lowwater.spark.limits import Gap, Why

LOG = logging.getLogger("lowwater.spark")
_ADVICE = "set failOnDataLoss to false to go on without them"


class DataLossError(LowwaterError):
    """Records that a query has to read are not there any more."""


# -- found by a task


def fail(lost: Lost) -> None:
    """failOnDataLoss=true."""
    raise DataLossError(f"{_lost(lost)}: deleted before they were read, or the log was truncated; {_ADVICE}")


def skip(lost: Lost) -> None:
    """failOnDataLoss=false."""
    LOG.warning("%s; reading goes on behind them", _lost(lost))


def _lost(lost: Lost) -> str:
    return f"{lost.topic!r} partition {lost.partition}: offsets [{lost.first}, {lost.behind}) are gone"


# -- found by the driver


def at_planning(found: list[Gap], *, fails: bool) -> None:
    """What shows before any task reads. What has expired a task finds too, and exactly: it tells of that."""
    if fails:
        raise DataLossError(f"{'; '.join(map(_gap, found))}; {_ADVICE}")
    for gap in found:
        if gap.why is not Why.EXPIRED:
            LOG.warning("%s; the query goes on", _gap(gap))


def _gap(gap: Gap) -> str:
    which = f"offsets from {gap.first} on" if gap.behind is None else f"offsets [{gap.first}, {gap.behind})"
    return f"{gap.partition.topic!r} partition {gap.partition.partition}: {which} are gone, {gap.why.value}"
