"""`lowwater pipeline`, and the commands in it."""

from __future__ import annotations

import click

from lowwater.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("lowwater.cli.pipeline_run", "Run a pipeline on Spark."),
    "check": ("lowwater.cli.pipeline_check", "Say what is wrong with a pipeline, without starting anything."),
    "explain": ("lowwater.cli.pipeline_explain", "Show what a pipeline would do, with Spark's columns and plans."),
    "status": ("lowwater.cli.pipeline_status", "Show how far a pipeline has got, without starting Spark."),
    "test": ("lowwater.cli.pipeline_test", "Run the steps of a pipeline on rows that stand in a file."),
    "reset": ("lowwater.cli.pipeline_reset", "Let a pipeline begin anew."),
}


@click.group("pipeline", cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Run pipelines that stand in a file: topics in, steps in SQL and Python, files or topics out.

    \b
      lowwater pipeline check orders.toml
      lowwater pipeline run orders.toml

    \b
    Exit codes, for schedulers:
      0   done
      1   it failed, or was cut off in the middle of a micro-batch
      2   the file or the command line is wrong
      3   stopped by a signal, after the running micro-batch, or by Ctrl-C while Spark starts
      4   rows are not those that were expected (test)
      75  no broker or no Spark could be reached: try again later
    """
