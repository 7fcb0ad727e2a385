"""`lowwater groups describe`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.choosing import complete_groups, named
from lowwater.cli.output import Column, Output, Row, output_options, print_table
from lowwater.cli.printing import counted, printable, tell

if TYPE_CHECKING:
    from lowwater.client.admin.group_members import DescribedGroup, GroupMember
    from lowwater.types import TopicPartition


def _spread(partitions: list[dict[str, Any]] | None) -> str:
    """orders 0-2,5, clicks 1"""
    if partitions is None:
        return "–"
    by_topic: dict[str, list[int]] = {}
    for one in partitions:
        by_topic.setdefault(one["topic"], []).append(one["partition"])
    return ", ".join(f"{printable(topic)} {_runs(found)}" for topic, found in by_topic.items()) or "nothing"


def _runs(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for one in sorted(numbers):
        if runs and one == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], one]
        else:
            runs.append([one])
    return ",".join("-".join(map(str, run)) for run in runs)


MEMBERS = (
    Column("client_id", "CLIENT"),
    Column("host", "HOST"),
    Column("partitions", "READS", _spread),
    Column("member_id", "MEMBER"),
    Column("instance_id", "INSTANCE"),
)
FLAT = (Column("group", "GROUP"), Column("state", "STATE"), *MEMBERS)


@click.command("describe")
@click.argument("groups", metavar="GROUP…", nargs=-1, required=True, shell_complete=complete_groups)
@output_options
@connection_options
def command(groups: tuple[str, ...], output: Output, connection: Connection) -> None:
    """Show state and members of groups, and which partitions each member reads.

    A GROUP is a name, a pattern such as 'billing*', or a regular expression that begins with ^. How far they have read
    is shown by `lowwater groups lag`.
    """
    from lowwater.client.admin.group_members import describe_groups

    with connection.open() as connected:
        found = connected.run(describe_groups(connected.cluster, named(connected, groups)))
    documents = [_document(one) for one in found.values()]
    if output.is_json:
        output.document(documents)
    elif output.is_csv:
        output.rows(FLAT, [row for each in documents for row in _flat(each)])
    else:
        for each in documents:
            _show(each)
    for error in found.failed.values():
        tell(error)
    if found.failed:
        sys.exit(1)


def _document(group: DescribedGroup) -> dict[str, Any]:
    return {
        "group": group.group,
        "state": group.state,
        "kind": group.kind,
        "protocol": group.protocol,
        "assignor": group.assignor or None,
        "epoch": None if group.epoch < 0 else group.epoch,
        "coordinator": group.coordinator,
        "members": [_member(one) for one in group.members],
    }


def _member(one: GroupMember) -> dict[str, Any]:
    return {
        "member_id": one.member_id,
        "client_id": one.client_id,
        "host": one.host,
        "instance_id": one.instance_id,
        "topics": None if one.topics is None else list(one.topics),
        "partitions": _listed(one.partitions),
        "target": _listed(one.target),
    }


def _listed(partitions: tuple[TopicPartition, ...] | None) -> list[dict[str, Any]] | None:
    return None if partitions is None else [{"topic": one.topic, "partition": one.partition} for one in partitions]


def _flat(each: dict[str, Any]) -> list[Row]:
    about = {"group": each["group"], "state": each["state"]}
    nobody = dict.fromkeys(column.name for column in MEMBERS)
    return [{**about, **one, "partitions": _spread(one["partitions"])} for one in each["members"]] or [
        {**about, **nobody}
    ]


def _show(each: dict[str, Any]) -> None:
    parts = [each["state"], f"{each['kind']} protocol", counted(len(each["members"]), "member")]
    if each["assignor"]:
        parts.append(f"shared by {printable(each['assignor'])}")
    click.echo(f"{printable(each['group'])}  {', '.join(parts)}, coordinated by broker {each['coordinator']}")
    if each["members"]:
        shows_instances = any(one["instance_id"] for one in each["members"])
        print_table(MEMBERS if shows_instances else MEMBERS[:-1], each["members"], indent=2)
