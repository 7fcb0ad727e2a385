"""`lowwater pipeline check`."""

from __future__ import annotations

import click

from lowwater.cli.pipeline_file import load_pipeline, pipeline_argument, wrong_file_exits
from lowwater.cli.printing import tell


@click.command("check")
@pipeline_argument
@click.option("--outline", is_flag=True, help="Also print what the pipeline reads, makes and writes.")
def command(file: str, outline: bool) -> None:
    """Say everything that is wrong with a pipeline, each with its line, without starting anything.

    Names, types and options are checked, what SQL reads, functions of Python steps (their modules are imported), files,
    packages and Java. What only Spark can tell, such as columns, is checked by `explain`.
    """
    from lowwater.spark.pipeline.checking import warnings

    pipeline = load_pipeline(file)
    with wrong_file_exits():
        pipeline.check()
    for warning in warnings(pipeline.model):
        tell(f"{file}: {warning}")
    if outline:
        from lowwater.spark.pipeline.explaining import outline as outline_of

        click.echo(outline_of(pipeline.model))
    else:
        click.echo(
            f"{file}: nothing wrong was found in {pipeline.name} without Spark; "
            "`lowwater pipeline explain` checks SQL and columns"
        )
