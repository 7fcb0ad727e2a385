"""A pipeline, from a file or from Python: checked, explained, run.

pipeline = Pipeline.load("orders.toml")
summary = pipeline.run()
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowwater.errors import ConfigError, LowwaterError
from lowwater.spark.pipeline.checking import check
from lowwater.spark.pipeline.committing import commit_last
from lowwater.spark.pipeline.failures import Failure, failure_of
from lowwater.spark.pipeline.model import Model
from lowwater.spark.pipeline.parsing import parse_document, parse_text
from lowwater.spark.pipeline.problems import PipelineError, Report
from lowwater.spark.pipeline.queries import Query, queries
from lowwater.spark.pipeline.run_lock import alone
from lowwater.spark.pipeline.running import run
from lowwater.spark.pipeline.stop_file import StopFile
from lowwater.spark.pipeline.summary import Summary
from lowwater.spark.pipeline.surroundings import check_surroundings
from lowwater.spark.pipeline.watching import Observer, Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lowwater.spark.pipeline.fixtures import TestReport
    from lowwater.spark.pipeline.resetting import Output, Plan
    from lowwater.spark.pipeline.status import Status


class Pipeline:
    """What it says is right as far as that can be told without Spark and without a broker."""

    def __init__(self, values: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> None:
        """The same keys as in a file, as dicts and lists; a Python step may be the function itself.

        PipelineError has everything that is wrong.
        """
        self.where = ""
        model, self._report = parse_document(values, os.environ, Report(), folder=_full(folder))
        self.model = self._checked(model)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Pipeline:
        """From a TOML file. Relative names in it begin beside it."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot read the pipeline in {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"cannot read the pipeline in {path}: it is not a text file (UTF-8)") from None
        return cls.parse(text, folder=file.parent, where=str(path))

    @classmethod
    def parse(cls, text: str, *, folder: str | os.PathLike[str] = ".", where: str = "") -> Pipeline:
        """From TOML. `where` is what errors call it."""
        pipeline = cls.__new__(cls)
        pipeline.where = where
        try:
            model, pipeline._report = parse_text(text, os.environ, folder=_full(folder))
        except PipelineError as error:
            raise PipelineError(error.problems, where) from None
        pipeline.model = pipeline._checked(model)
        return pipeline

    def _checked(self, model: Model) -> Model:
        check(model, self._report)
        self._raise_problems()
        return model

    def _raise_problems(self) -> None:
        if self._report.problems:
            problems = tuple(self._report.problems)
            raise PipelineError(problems, self.where)

    @property
    def name(self) -> str:
        return self.model.name

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}, {len(self.model.sources)} sources, {len(self.model.sinks)} sinks)"

    def check(self) -> None:
        """What depends on this machine: functions of Python steps, files, packages, Java. PipelineError says all."""
        check_surroundings(self.model, self._report)
        self._raise_problems()

    def reach_brokers(self) -> None:
        """ClientError when a cluster cannot be reached, MissingTopicError for topics that are not there."""
        from lowwater.spark.pipeline.preflight import MissingTopicError, reach_brokers

        report = Report(self._report.places, self.model.secrets)
        reach_brokers(self.model, report)
        if report.problems:
            raise MissingTopicError(str(PipelineError(report.problems, self.where)))

    def run(
        self,
        *,
        spark: SparkSession | None = None,
        observer: Observer | None = None,
        stop: threading.Event | None = None,
    ) -> Summary:
        """Until everything that is there is read, or, with an interval, until `stop` is set or a query fails.

        RunningError when another process runs it.

        `spark` is the session to use; else the active one, or one of its own that is closed at the end.
        """
        self.check()
        from lowwater.spark.session import session_for

        with alone(self.model), session_for(self.model, spark) as session:
            return self.run_in(session, observer=observer, stop=stop)

    def run_in(
        self, session: SparkSession, *, observer: Observer | None = None, stop: threading.Event | None = None
    ) -> Summary:
        """The same in a session that is there, without the checks."""
        from lowwater.spark.pipeline.views import views_put_back

        file = StopFile.of(session)
        try:
            with views_put_back(session, self.model):
                self._prepare_all(session)
                return run(
                    self.model,
                    lambda query: self._start(session, query, file),
                    observer=observer,
                    stop=stop,
                    commit=partial(commit_last, self.model),
                    hold=None if file is None else file.make,
                )
        finally:
            if file is not None:
                file.remove()

    def _prepare_all(self, session: SparkSession) -> None:
        """Nothing starts, and no checkpoint is begun, when Spark refuses a query that would be started later."""
        from lowwater.spark.pipeline.sinks import prepare

        planned = queries(self.model)
        for query in planned if len(planned) > 1 else ():  # a single one is looked at when it is started
            with self._refusals(query):
                prepare(session, self.model, query)

    def _start(self, session: SparkSession, query: Query, stop_file: StopFile | None) -> Running:
        from lowwater.spark.pipeline.sinks import start

        with self._refusals(query):
            return start(session, self.model, query, None if stop_file is None else stop_file.name)

    @contextlib.contextmanager
    def _refusals(self, query: Query) -> Iterator[None]:
        """What Spark refuses of a query, as a PipelineError with its place; StartError where the file is right."""
        from pyspark.errors import AnalysisException, PySparkException

        from lowwater.spark.pipeline.refused import RefusedError

        report = Report(self._report.places, self.model.secrets)
        try:
            yield
            return
        except RefusedError as error:
            error.tell(report)
        except AnalysisException as error:
            failure = failure_of(str(error), self.model.secrets)
            if failure.is_of_python:  # the source or the sink itself, whatever the file says
                raise StartError(query.label, failure) from None
            report.key(("sink", query.of), failure.what)
        except PySparkException as error:
            raise StartError(query.label, failure_of(str(error), self.model.secrets)) from None
        raise PipelineError(report.problems, self.where)

    def explain(self, *, spark: SparkSession | None = None) -> str:
        """What would be done, with the columns and plans that Spark makes of it. Reads nothing, writes nothing."""
        self.check()
        from lowwater.spark.pipeline.explaining import explain
        from lowwater.spark.session import session_for

        report = Report(self._report.places, self.model.secrets)
        with session_for(self.model, spark) as session:
            text = explain(session, self.model, report)
        if report.problems:
            raise PipelineError(report.problems, self.where)
        return text

    def status(self) -> Status:
        """How far its queries and their groups are, by the checkpoints and the brokers. Needs no Spark."""
        from lowwater.spark.pipeline.status import status

        return status(self.model)

    def reset(self, *, sinks: Sequence[str] = (), output: Output | None = None, to: str | None = None) -> Plan:
        """Removes checkpoints, so that the next run starts anew; says what was done.

        Of `sinks`, or of all. `output` says what becomes of files that were written, `to` moves the groups. ConfigError
        when files would be deleted that the next run would not write again, since it goes on where a group is.
        """
        from lowwater.spark.pipeline.going_on import refuse_lost_output, stored_starts
        from lowwater.spark.pipeline.resetting import plan, reset

        planned = plan(self.model, sinks=sinks, output=output, to=to)
        if planned.deletes_output:
            refuse_lost_output(self.model, planned, stored_starts(self.model, planned))
        reset(self.model, planned)
        return planned

    def test(self, fixtures: str | os.PathLike[str], *, spark: SparkSession | None = None) -> TestReport:
        """Runs the steps on the rows of a file, and compares what comes out with what it expects."""
        self.check()
        from lowwater.spark.pipeline.fixtures import load_fixtures
        from lowwater.spark.pipeline.testing import run_fixtures
        from lowwater.spark.session import session_for

        loaded = load_fixtures(os.fspath(fixtures), self.model)
        with session_for(self.model, spark) as session:
            return run_fixtures(session, self.model, loaded)


class StartError(LowwaterError):
    """A query that did not start although its pipeline is right."""

    def __init__(self, query: str, failure: Failure) -> None:
        super().__init__(f"{query} did not start: {failure.what}")
        self.failure = failure


def _full(folder: str | os.PathLike[str]) -> str:
    return os.path.abspath(folder)
