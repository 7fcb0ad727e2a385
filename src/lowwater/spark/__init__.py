"""Spark: a source and a sink for topics, and pipelines over them.

What is imported from here is loaded when it is first used: options and offsets can be looked at without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowwater.spark.offsets import Offset, OffsetError
    from lowwater.spark.option_table import OptionError
    from lowwater.spark.options import SinkOptions, SourceOptions

_HOMES = {
    "Offset": "lowwater.spark.offsets",
    "OffsetError": "lowwater.spark.offsets",
    "OptionError": "lowwater.spark.option_table",
    "SinkOptions": "lowwater.spark.options",
    "SourceOptions": "lowwater.spark.options",
}

__all__ = ["Offset", "OffsetError", "OptionError", "SinkOptions", "SourceOptions"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # not for those who want a module of the package

    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
