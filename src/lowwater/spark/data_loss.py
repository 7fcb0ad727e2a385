"""What becomes of offsets that were gone before Spark could read them."""

from __future__ import annotations

import logging

from lowwater.client.releasing import Lost
from lowwater.errors import LowwaterError

LOG = logging.getLogger("lowwater.spark")


class DataLossError(LowwaterError):
    """Records that a query has to read are not there any more."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(
            f"{describe(lost)}: records were deleted before they were read, or the topic was truncated; "
            "set failOnDataLoss to false to go on without them"
        )
        self.lost = lost


def describe(lost: Lost) -> str:
    return f"{lost.topic!r} partition {lost.partition}: offsets [{lost.first}, {lost.behind}) are gone"


def fail(lost: Lost) -> None:
    """failOnDataLoss=true."""
    raise DataLossError(lost)


def skip(lost: Lost) -> None:
    """failOnDataLoss=false."""
    LOG.warning("%s; reading goes on behind them", describe(lost))
