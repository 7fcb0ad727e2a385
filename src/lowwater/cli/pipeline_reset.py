"""`lowwater pipeline reset`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lowwater.cli.asking import need_terminal
from lowwater.cli.pipeline_file import failures_exit, load_pipeline, pipeline_argument
from lowwater.cli.printing import counted, number, printable, tell

if TYPE_CHECKING:
    from lowwater.spark.pipeline.model import Model
    from lowwater.spark.pipeline.resetting import Plan


@click.command("reset")
@pipeline_argument
@click.option("--sink", "sinks", multiple=True, metavar="NAME", help="Only the query of this sink. May be repeated.")
@click.option("--to", metavar="POSITION", help="Set the groups to this start position, such as earliest or -7d.")
@click.option("--delete-output", "output", flag_value="delete", help="Delete the files that were written.")
@click.option("--keep-output", "output", flag_value="keep", help="Keep them; a new run may write rows again.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(file: str, sinks: tuple[str, ...], to: str | None, output: str | None, dry_run: bool, yes: bool) -> None:
    """Let a pipeline begin anew: delete its checkpoints, so that the next run starts where its sources say.

    A source whose start is `stored` begins at the offsets of its group: --to moves those. Files that were written have
    to be deleted or kept, in so many words, and are not deleted where a group would keep the next run from writing
    them again. A pipeline that is being run is not reset.
    """
    from lowwater.spark.pipeline.resetting import Output, plan, reset
    from lowwater.spark.pipeline.run_lock import refuse_running

    pipeline = load_pipeline(file)
    with failures_exit():
        refuse_running(pipeline.model)
        planned = plan(pipeline.model, sinks=sinks, output=None if output is None else Output(output), to=to)
        _tell(planned)
        if not planned.is_empty:
            _tell_where_it_goes_on(pipeline.model, planned)
        if planned.is_empty or dry_run:
            return
        if not yes:
            _ask()
        for one, offset in sorted(reset(pipeline.model, planned).items()):
            click.echo(f"{printable(str(one))} begins at {number(offset)}")
    click.echo("done")


def _ask() -> None:
    """Ends the command when the answer is no."""
    need_terminal("if that is to be done")
    if not click.confirm("Do that?", err=True):
        tell("nothing was done")
        sys.exit(1)


def _tell(planned: Plan) -> None:
    if planned.is_empty:
        click.echo("there is nothing to reset")
    for removal in planned.removals:
        click.echo(f"delete {removal.what}: {printable(str(removal.folder))}")
    for move in planned.moves:
        click.echo(f"set the group {printable(move.source.group)} to {move.to} in {printable(move.source.described)}")


def _tell_where_it_goes_on(model: Model, planned: Plan) -> None:
    """Brokers have to say it before output is deleted; else it is only told."""
    from lowwater.client.errors import ClientError
    from lowwater.spark.pipeline.going_on import refuse_lost_output, stored_starts

    try:
        starts = stored_starts(model, planned)
    except ClientError as error:
        if planned.deletes_output:
            raise
        tell(f"it is not known where the next run goes on: {error}")
        return
    if planned.deletes_output:
        refuse_lost_output(model, planned, starts)
    for each in starts:
        left = counted(each.left, "record") if each.left else "nothing"
        group, read = printable(each.source.group), printable(each.source.described)
        click.echo(f"the next run goes on where the group {group} is in {read}, with {left} left; --to moves it")
