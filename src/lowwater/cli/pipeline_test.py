"""`lowwater pipeline test`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lowwater.cli.pipeline_file import failures_exit, load_pipeline, pipeline_argument
from lowwater.cli.printing import counted, printable_lines


@click.command("test")
@pipeline_argument
@click.argument("fixtures", metavar="[TESTS]", required=False, type=click.Path(dir_okay=False))
def command(file: str, fixtures: str | None) -> None:
    """Run the steps of a pipeline on rows that stand in a file, and compare what comes out.

    TESTS is a TOML file, by default the one beside FILE that ends in .test.toml. Each [[case]] has rows that are given
    to sources and rows that are expected of steps. No topic is read, nothing is written. Exit code 4 when rows differ.
    """
    from lowwater.spark.pipeline.failures import ExitCode
    from lowwater.spark.pipeline.fixtures import load_fixtures
    from lowwater.spark.pipeline.testing import run_fixtures
    from lowwater.spark.session import session_for

    pipeline = load_pipeline(file)
    with failures_exit():
        tests = load_fixtures(fixtures or str(Path(file).with_suffix(".test.toml")), pipeline.model)
        pipeline.check()
        with session_for(pipeline.model) as session:
            report = run_fixtures(session, pipeline.model, tests)
    for difference in report.differences:
        click.echo(printable_lines(str(difference)))
    differing = f", {len(report.differences)} of them differ" if report.differences else ": all as expected"
    click.echo(f"{counted(report.cases, 'case')}, {counted(report.steps, 'result')}{differing}")
    sys.exit(ExitCode.DONE if report.is_right else ExitCode.DIFFERS)
