"""The functions of Python steps: found by name, and checked before Spark starts."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

from lowwater.spark.pipeline.model import Model, PythonStep
from lowwater.spark.pipeline.problems import Report, did_you_mean
from lowwater.spark.pipeline.toml_places import Path


class StepError(ValueError):
    """A function that is not there, or that cannot be called as the step says. `hint` says what to do."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def load_function(step: PythonStep, folder: str) -> Callable[..., Any]:
    """Modules beside the pipeline's file are found first. StepError when there is no such function."""
    if callable(step.function):
        return step.function
    module_name, _, name = step.function.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever the module does when it is imported
        raise StepError(f"the module {module_name} cannot be imported: {type(error).__name__}: {error}") from error
    function: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(function):
        near = did_you_mean(name, (each for each in vars(module) if callable(getattr(module, each))))
        raise StepError(f"the module {module_name} has no function {name!r}", near)
    return function


def check_functions(model: Model, folder: str, report: Report) -> None:
    """Imports the modules of all Python steps."""
    for place, step in enumerate(model.steps):
        if isinstance(step, PythonStep) and step.function:
            _check(step, folder, ("step", place, "python"), report)


def _check(step: PythonStep, folder: str, path: Path, report: Report) -> None:
    try:
        function = load_function(step, folder)
        signature = inspect.signature(function)
        signature.bind(*step.inputs, **step.arguments)
    except StepError as error:
        report.value(path, error.what, error.hint)
    except TypeError as error:
        given = ", ".join((*step.inputs, *(f"{name}=…" for name in step.arguments)))
        report.value(path, f"it cannot be called with ({given}): {error}", f"it takes {signature}")
