"""Whether the packages are there that Spark's workers need."""

from __future__ import annotations

import importlib.util

from lowwater.client.loading import MissingExtraError, require_extra

ADVICE = "pip install 'lowwater[spark]', on the driver and on every executor"


def require_spark_extra() -> None:
    """MissingExtraError says what to install."""
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtraError("the package pyspark is not installed", advice=ADVICE)
    try:
        require_extra()
    except MissingExtraError as error:
        raise MissingExtraError(error.what, advice=ADVICE) from None
