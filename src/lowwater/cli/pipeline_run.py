"""`lowwater pipeline run`."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING

import click

from lowwater.cli.pipeline_file import failures_exit, load_pipeline, pipeline_argument
from lowwater.cli.printing import tell

if TYPE_CHECKING:
    from lowwater.spark.course import Course
    from lowwater.spark.pipeline.pipeline import Pipeline


@click.command("run")
@pipeline_argument
@click.option("-q", "--quiet", is_flag=True, help="No progress; only what happened, at the end.")
@click.option("-v", "--verbose", is_flag=True, help="When it fails, print all that Spark said about it.")
@click.option("--json", "as_json", is_flag=True, help="At the end, print what happened as JSON.")
@click.option(
    "--metrics", type=click.Path(dir_okay=False), metavar="PATH", help="Keep figures for Prometheus in this file."
)
def command(file: str, quiet: bool, verbose: bool, as_json: bool, metrics: str | None) -> None:
    """Run a pipeline on Spark, from its checkpoint when there is one.

    With `trigger = "available-now"` it ends when all is read that was there; with an interval it goes on until it is
    stopped. Ctrl-C and SIGTERM stop it after the running micro-batch (exit code 3); a second one stops it at once.

    Progress is shown on stderr: rows, rows per second, the event time that was reached, how far behind the topics it
    is (in records, and the age of the oldest of them), and how long the rest will take.
    """
    pipeline = load_pipeline(file)
    with failures_exit():
        sys.exit(_run(pipeline, quiet=quiet, verbose=verbose, as_json=as_json, metrics=metrics))


def _run(pipeline: Pipeline, *, quiet: bool, verbose: bool, as_json: bool, metrics: str | None) -> int:
    from lowwater.cli.pipeline_progress import MetricsFile, screen_or_lines, tell_summary
    from lowwater.spark.pipeline.failures import ExitCode
    from lowwater.spark.pipeline.reporting import Reporting, looks_of, report
    from lowwater.spark.pipeline.run_lock import alone
    from lowwater.spark.pipeline.running import stopping_on_signals
    from lowwater.spark.session import log_of, session_for

    def changed(course: Course) -> None:
        if not quiet:
            shown.changed(course)
        if kept is not None:
            kept.changed()

    shown = screen_or_lines()
    reporting = Reporting(changed, looks_of(pipeline.model))
    kept = None if metrics is None else MetricsFile(metrics, reporting.prometheus)
    stop, summary = threading.Event(), None
    pipeline.check()
    pipeline.reach_brokers()
    try:
        with alone(pipeline.model), session_for(pipeline.model) as session, stopping_on_signals(stop):
            try:
                summary = pipeline.run_in(session, observer=reporting, stop=stop)
            finally:
                shown.close()
                reporting.close()
    except KeyboardInterrupt:
        if stop.is_set() or summary is not None:
            raise
        tell(f"{pipeline.name}: stopped before it began")
        return int(ExitCode.STOPPED)
    if kept is not None:
        kept.write()
    if as_json:
        click.echo(json.dumps(report(pipeline.model, summary, reporting.courses), indent=2))
    else:
        tell_summary(pipeline.model, summary, reporting.courses, verbose=verbose)
    if summary.failure is not None and (log := log_of(pipeline.model)) is not None and log.exists():
        tell(f"what Spark wrote is in {log}")
    return int(summary.exit_code)
