"""`lowwater pipeline run`."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import click

from lowwater.cli.pipeline_file import failures_exit, load_pipeline, pipeline_argument
from lowwater.cli.printing import counted, tell

if TYPE_CHECKING:
    from lowwater.spark.pipeline.summary import Summary


@click.command("run")
@pipeline_argument
@click.option("-v", "--verbose", is_flag=True, help="When it fails, print all that Spark said about it.")
def command(file: str, verbose: bool) -> None:
    """Run a pipeline on Spark, from its checkpoint when there is one.

    With `trigger = "available-now"` it ends when all is read that was there; with an interval it goes on until it is
    stopped. Ctrl-C and SIGTERM stop it after the running micro-batch (exit code 3); a second one stops it at once.
    """
    from lowwater.spark.pipeline.preflight import reach_brokers
    from lowwater.spark.pipeline.running import stopping_on_signals
    from lowwater.spark.session import session_for

    pipeline = load_pipeline(file)
    stop = threading.Event()
    with failures_exit():
        pipeline.check()
        reach_brokers(pipeline.model)
        with session_for(pipeline.model) as session, stopping_on_signals(stop):
            summary = pipeline.run_in(session, stop=stop)
    _tell(summary, verbose)
    sys.exit(summary.exit_code)


def _tell(summary: Summary, verbose: bool) -> None:
    click.echo(f"{summary.name}: {summary.outcome.value} after {summary.seconds:.1f} s")
    for query in summary.queries:
        bad = sum(query.bad_rows.values())
        dropped = f", {counted(bad, 'row')} could not be decoded" if bad else ""
        click.echo(
            f"  {query.name}: {counted(query.rows, 'row')} in {counted(query.batches, 'batch', 'batches')}{dropped}"
        )
        if query.failure is not None:
            tell(f"{query.name}: {query.failure.detail if verbose else query.failure.what}")
