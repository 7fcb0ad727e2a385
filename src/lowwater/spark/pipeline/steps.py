"""Applying a step: a query by Spark's SQL, a function by calling it. What goes wrong is told at the step's place."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lowwater.spark.pipeline.model import Model, PythonStep, SqlStep, Step
from lowwater.spark.pipeline.python_steps import StepError, load_function
from lowwater.spark.pipeline.refused import RefusedError
from lowwater.spark.pipeline.step_modules import send_modules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACE = re.compile(r";?\s*\(?line (\d+),? pos(?:ition)? (\d+)\)?")
_STATE = re.compile(r"\.? SQLSTATE: \w+\.?$")
_POINTED = re.compile(r"== (?:SQL|DataFrame).*?==", re.DOTALL)


def apply_step(spark: SparkSession, model: Model, step: Step, frames: Mapping[str, DataFrame]) -> DataFrame:
    """RefusedError when Spark, or the function, cannot do it."""
    if isinstance(step, SqlStep):
        return _query(spark, model, step)
    return _called(spark, model, step, frames)


def _query(spark: SparkSession, model: Model, step: SqlStep) -> DataFrame:
    from pyspark.errors import AnalysisException, ParseException

    try:
        frame = spark.sql(step.sql)
        _ = frame.columns  # a Connect session looks at a query only when it has to
    except (AnalysisException, ParseException) as error:
        what, line, column = _told(model.secrets.masked(str(error)))
        raise RefusedError(("step", model.steps.index(step), "sql"), what, line, column) from error
    return frame


def _told(text: str) -> tuple[str, int, int]:
    """The first sentence, and where in the SQL."""
    found = _PLACE.search(text)
    line, column = (int(found[1]), int(found[2])) if found else (0, 0)
    first = _POINTED.split(text, maxsplit=1)[0].split(";\n", maxsplit=1)[0]
    words = " ".join(_PLACE.sub("", first).split()).removesuffix(";").strip()
    return _STATE.sub("", words), line, column


def _called(spark: SparkSession, model: Model, step: PythonStep, frames: Mapping[str, DataFrame]) -> DataFrame:
    from pyspark.sql import DataFrame

    path = ("step", model.steps.index(step), "python")
    try:
        function = load_function(step, model.folder)
        send_modules(spark, step, model.folder)
        frame = function(*(frames[name.lower()] for name in step.inputs), **step.arguments)
    except StepError as error:
        raise RefusedError(path, model.secrets.masked(error.what)) from error
    except Exception as error:  # the user's own code: everything it raises is told
        raise RefusedError(path, model.secrets.masked(_raised(error))) from error
    if not isinstance(frame, DataFrame):
        raise RefusedError(path, f"the function returned {type(frame).__name__}, not a DataFrame")
    return frame


def _raised(error: Exception) -> str:
    """What the function raised and where; of what Spark refuses in it the first sentence, without the plan."""
    from pyspark.errors import AnalysisException

    what = _told(str(error))[0] if isinstance(error, AnalysisException) else str(error)
    return f"the function raised {type(error).__name__}: {what}{_place(error)}"


def _place(error: Exception) -> str:
    """The innermost line in the function's own file; none where it was not even entered."""
    called = traceback.extract_tb(error.__traceback__)[1:]
    lines = [each.lineno for each in called if each.filename == called[0].filename]
    return f" ({called[0].filename}, line {lines[-1]})" if lines else ""
