"""What ended a query, found in the long texts that Spark has for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from lowwater.errors import LowwaterError
from lowwater.spark.pipeline.secrets import Secrets

_PYTHON_ERROR = re.compile(
    r"^(?:\w+\.)*(?P<kind>\w+(?:Error|Exception|Warning|Interrupt))(?:: (?P<what>.*))?$", re.MULTILINE
)
_SPARK_ERROR = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]{2,})\] ")
_STATE = re.compile(r"\.? SQLSTATE: \w+[.;]?$")
# Errors of Spark that only say that a Python one follows, or that a query has failed.
_WRAPPERS = (
    "STREAM_FAILED",
    "PYTHON_EXCEPTION",
    "PYTHON_DATA_SOURCE_ERROR",
    "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
)
# The source speaks of its options; in a pipeline a key of the file says what becomes of such a row.
_OPTION_ADVICE = re.compile(r"with decode\.onBad=null such rows are kept, with \w+_error and \w+_raw")
_KEY_ADVICE = 'its source goes on without such rows with on_bad_row = "drop" or { dead_letter = "a topic" }'
_UNREACHABLE = frozenset({"ConnectError", "DisconnectedError", "RequestTimeoutError", "ConnectionRefusedError"})
# A process that did not start within the ten seconds that Spark gives it: the machine is busy.
_TOO_SLOW = "Python worker failed to connect back"
# Spark's words for a checkpoint that cannot be gone on from.
_OUT_OF_STEP = (
    "sources in the checkpoint offsets and now",
    "STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
)
_RESET_ADVICE = (
    "; the pipeline has changed since its checkpoint was made, or that is damaged: `lowwater pipeline reset` lets it "
    "begin anew, with --sink one query alone"
)
_SPARK_UNREACHABLE = ("UNAVAILABLE", "Could not connect to", "All masters are unresponsive")


class ExitCode(IntEnum):
    """What a scheduler is told."""

    DONE = 0
    FAILED = 1
    WRONG_FILE = 2
    STOPPED = 3
    DIFFERS = 4
    UNREACHABLE = 75


@dataclass(frozen=True, slots=True)
class Failure:
    """`what` in one line, for people; `detail` is all that Spark said. `is_of_python`: ours, or a step's function."""

    what: str
    detail: str = field(default="", repr=False)
    is_of_python: bool = False
    may_start_again: bool = False
    exit_code: ExitCode = ExitCode.FAILED


class SparkFailedError(LowwaterError):
    """Spark could not do what was asked of it. `log` is where the rest of its words are, when they were kept."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.log: Path | None = None

    def __str__(self) -> str:
        what = super().__str__()
        return what if self.log is None else f"{what}; {self.log} has what Spark said"


@contextlib.contextmanager
def told_without(secrets: Secrets) -> Iterator[None]:
    """What Spark raises becomes a SparkFailedError in one line."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise SparkFailedError(failure_of(str(error), secrets).what) from None


def failure_of(text: str, secrets: Secrets) -> Failure:
    """The innermost reason. Neither of the two texts has a secret in it."""
    text = secrets.masked(text)
    if _TOO_SLOW in text:
        what = f"{_TOO_SLOW} within the ten seconds that Spark waits: the machine is busy"
        return Failure(what, text, may_start_again=True, exit_code=ExitCode.UNREACHABLE)
    python = _last_python_error(text)
    if python is not None:
        kind, what = python
        code = ExitCode.UNREACHABLE if kind in _UNREACHABLE else ExitCode.FAILED
        return Failure(_OPTION_ADVICE.sub(_KEY_ADVICE, what) or kind, text, is_of_python=True, exit_code=code)
    code = ExitCode.UNREACHABLE if any(sign in text for sign in _SPARK_UNREACHABLE) else ExitCode.FAILED
    advice = _RESET_ADVICE if any(sign in text for sign in _OUT_OF_STEP) else ""
    return Failure(_spark_error(text) + advice, text, exit_code=code)


def _last_python_error(text: str) -> tuple[str, str] | None:
    """Of the first traceback's chain: later ones are attempts of the same."""
    found = None
    for error in _PYTHON_ERROR.finditer(text):
        if "Traceback" in text[: error.start()]:
            found = error["kind"], (error["what"] or "").strip()
    return found


def _spark_error(text: str) -> str:
    """From the name of the last error in it to the end of that line."""
    told = [found.start() for found in _SPARK_ERROR.finditer(text) if found["name"].split(".")[0] not in _WRAPPERS]
    line = text[told[-1] :].split("\n", 1)[0] if told else next(filter(str.strip, text.splitlines()), "")
    return _STATE.sub("", line.strip()) or "Spark gave no reason"
