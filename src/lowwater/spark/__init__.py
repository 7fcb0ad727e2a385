"""Spark: a source and a sink for topics, and pipelines over them.

What is imported from here is loaded when it is first used: options and offsets can be looked at without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowwater.spark.java import java_home
    from lowwater.spark.ledger import losses
    from lowwater.spark.loss_records import Loss
    from lowwater.spark.offsets import Offset, OffsetError
    from lowwater.spark.option_table import OptionError
    from lowwater.spark.options import SinkOptions, SourceOptions
    from lowwater.spark.pipeline.pipeline import Pipeline
    from lowwater.spark.pipeline.problems import PipelineError
    from lowwater.spark.source import LowwaterSource, register

_HOMES = {
    "Loss": "lowwater.spark.loss_records",
    "LowwaterSource": "lowwater.spark.source",
    "Offset": "lowwater.spark.offsets",
    "OffsetError": "lowwater.spark.offsets",
    "OptionError": "lowwater.spark.option_table",
    "Pipeline": "lowwater.spark.pipeline.pipeline",
    "PipelineError": "lowwater.spark.pipeline.problems",
    "SinkOptions": "lowwater.spark.options",
    "SourceOptions": "lowwater.spark.options",
    "java_home": "lowwater.spark.java",
    "losses": "lowwater.spark.ledger",
    "register": "lowwater.spark.source",
}

__all__ = [
    "Loss",
    "LowwaterSource",
    "Offset",
    "OffsetError",
    "OptionError",
    "Pipeline",
    "PipelineError",
    "SinkOptions",
    "SourceOptions",
    "java_home",
    "losses",
    "register",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # not for those who want a module of the package

    try:
        value = globals()[name] = getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        from lowwater.spark.extra import missing  # which says what to install

        raise missing(error) from error
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
