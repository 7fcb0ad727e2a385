"""Modules beside the pipeline's file travel with the functions in them: workers need not have that folder."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from lowwater.spark.pipeline.model import PythonStep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local(\[.*\])?")


def send_modules(spark: SparkSession, step: PythonStep, folder: str) -> None:
    """The module of a step's function, which is loaded, and what it has imported of its folder; packages stay.

    Nothing is sent to workers who have the folder: they may use of it what cannot be pickled.
    """
    if not isinstance(step.function, str) or _workers_have(spark, folder):
        return
    from pyspark import cloudpickle

    found: dict[str, ModuleType] = {}
    _collect(step.function.partition(":")[0], folder, found)
    for module in found.values():
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _workers_have(spark: SparkSession, folder: str) -> bool:
    """Workers on this machine look where the JVM was told to when it was started."""
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession):
        return False  # one of Spark Connect
    context = spark.sparkContext
    if _LOCAL.fullmatch(context.master or "") is None or context._jvm is None:
        return False
    known = context._jvm.java.lang.System.getenv("PYTHONPATH") or ""
    return folder in known.split(os.pathsep)


def _collect(name: str, folder: str, found: dict[str, ModuleType]) -> None:
    module = sys.modules.get(name)
    if module is None or name in found or not _is_of(module, name, folder):
        return
    found[name] = module
    for other in (name.rpartition(".")[0], *_imported(module)):
        _collect(other, folder, found)


def _is_of(module: ModuleType, name: str, folder: str) -> bool:
    """By name and place: what is installed below the folder has a path of its own there."""
    place, file = os.path.join(folder, *name.split(".")), getattr(module, "__file__", None)
    return file is not None and any(_are_same(file, each) for each in (f"{place}.py", f"{place}/__init__.py"))


def _are_same(file: str, other: str) -> bool:
    try:
        return os.path.samefile(file, other)
    except OSError:
        return False


def _imported(module: ModuleType) -> Iterator[str]:
    """Names of modules in its text; some are of what is in them."""
    for node in ast.walk(ast.parse(_text(module))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            name = importlib.util.resolve_name("." * node.level + (node.module or ""), module.__package__ or None)
            yield from (name, *(f"{name}.{alias.name}" for alias in node.names))


def _text(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except OSError:  # it is empty, or was compiled elsewhere
        return ""
