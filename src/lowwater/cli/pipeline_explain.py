"""`lowwater pipeline explain`."""

from __future__ import annotations

import click

from lowwater.cli.pipeline_file import failures_exit, load_pipeline, pipeline_argument


@click.command("explain")
@pipeline_argument
def command(file: str) -> None:
    """Show what a pipeline would do: sources, steps and sinks, with the columns and plans that Spark makes of them.

    Starts Spark, but reads no topic and writes nothing. What Spark's own parser says of the SQL is told with its line.
    """
    pipeline = load_pipeline(file)
    with failures_exit():
        click.echo(pipeline.explain())
