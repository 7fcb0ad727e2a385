"""What the commands of `lowwater pipeline` share: the file they are given, and how its problems are told."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

from lowwater.cli.printing import tell
from lowwater.errors import LowwaterError

if TYPE_CHECKING:
    from lowwater.spark.pipeline.pipeline import Pipeline

T = TypeVar("T")


def pipeline_argument(command: Callable[..., T]) -> Callable[..., T]:
    """Adds FILE to a command, which gets it as `file`."""
    return click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))(command)


def load_pipeline(file: str) -> Pipeline:
    """Exits with 2 when the file is wrong."""
    from lowwater.spark.pipeline.pipeline import Pipeline

    with wrong_file_exits():
        return Pipeline.load(file)


@contextlib.contextmanager
def wrong_file_exits() -> Iterator[None]:
    """Everything that is wrong with a pipeline, line by line, and exit code 2."""
    from lowwater.errors import ConfigError
    from lowwater.spark.pipeline.failures import ExitCode
    from lowwater.spark.pipeline.problems import PipelineError

    try:
        yield
    except PipelineError as error:
        for line in str(error).split("\n"):
            tell(line)
        sys.exit(ExitCode.WRONG_FILE)
    except ConfigError as error:
        tell(error)
        sys.exit(ExitCode.WRONG_FILE)


@contextlib.contextmanager
def failures_exit() -> Iterator[None]:
    """A query that did not start, and a broker or Spark that cannot be reached, by their exit codes."""
    from lowwater.client.errors import ClientError
    from lowwater.spark.pipeline.failures import ExitCode
    from lowwater.spark.pipeline.pipeline import StartError
    from lowwater.spark.session import SparkStartError

    try:
        with wrong_file_exits():
            yield
    except StartError as error:
        tell(error)
        sys.exit(error.failure.exit_code)
    except SparkStartError as error:
        tell(error)
        sys.exit(error.exit_code)
    except ClientError as error:
        tell(error)
        sys.exit(ExitCode.UNREACHABLE if error.retriable else ExitCode.FAILED)
    except LowwaterError as error:
        tell(error)
        sys.exit(ExitCode.FAILED)
