"""`lowwater groups export`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.changing import topic_option
from lowwater.cli.groups.choosing import all_of_them, complete_groups, named
from lowwater.cli.output import Output, output_options, print_csv
from lowwater.cli.printing import tell

if TYPE_CHECKING:
    from lowwater.lag.resetting import Selection


@click.command("export")
@click.argument("groups", metavar="[GROUP]…", nargs=-1, shell_complete=complete_groups)
@click.option("--all-groups", is_flag=True, help="All groups there are.")
@topic_option
@output_options
@connection_options
def command(
    groups: tuple[str, ...], all_groups: bool, selection: Selection, output: Output, connection: Connection
) -> None:
    """Print committed offsets, for a file that `import`, `reset --from-file` and kafka-consumer-groups.sh read.

    Lines are topic,partition,offset of one group, and group,topic,partition,offset of several; --csv means the same.
    Without --topic, all topics. --json has the notes and leader epochs as well.
    """
    from lowwater.client.admin.group_offsets import group_offsets
    from lowwater.lag.offsets_csv import to_csv

    if bool(groups) == all_groups:
        raise click.UsageError("which groups? Name them, or say --all-groups")
    with connection.open() as connected:
        names, is_complete = all_of_them(connected) if all_groups else (named(connected, groups), True)
        outcomes = connected.run(group_offsets(connected.cluster, names))
    is_all = selection.is_all or not selection.topics
    found = {
        group: {one: each for one, each in sorted(offsets.items()) if is_all or selection.has(one)}
        for group, offsets in outcomes.items()
    }
    if output.is_json:
        output.document([
            {"group": group, "topic": one.topic, "partition": one.partition, "offset": each.offset,
             "leader_epoch": None if each.leader_epoch < 0 else each.leader_epoch, "metadata": each.metadata}
            for group, offsets in found.items() for one, each in offsets.items()
        ])  # fmt: skip
    else:
        plain = {group: {one: each.offset for one, each in offsets.items()} for group, offsets in found.items()}
        print_csv(to_csv(plain))
    for error in outcomes.failed.values():
        tell(error)
    if outcomes.failed or not is_complete:
        sys.exit(1)
