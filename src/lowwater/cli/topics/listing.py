"""`lowwater topics list`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connected, Connection, connection_options
from lowwater.cli.output import Column, Output, Row, output_options
from lowwater.cli.printing import counted, number, size, tell
from lowwater.cli.topics.completing import complete_topics

if TYPE_CHECKING:
    from lowwater.cli.topics.facts import Facts
    from lowwater.client.admin.topics import DescribedTopic

COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partitions", "PARTITIONS", number, is_number=True),
    Column("replicas", "REPLICAS", number, is_number=True),
    Column("records", "RECORDS", number, is_number=True),
    Column("bytes", "SIZE", size, is_number=True),
    Column("trouble", "TROUBLE", style="red"),
)
ERRORS_MAX = 3
MORE = (Column("id", "ID"), Column("internal", "INTERNAL"))


@click.command("list")
@click.argument("topics", metavar="[TOPIC]…", nargs=-1, shell_complete=complete_topics)
@click.option(
    "-a", "--all", "internal", is_flag=True, help="Also topics that brokers and these tools keep for themselves."
)
@click.option("-q", "--quiet", is_flag=True, help="Only the names, one per line.")
@output_options
@connection_options
def command(topics: tuple[str, ...], internal: bool, quiet: bool, output: Output, connection: Connection) -> None:
    """List topics: all, or those of some names.

    A TOPIC is a name, a pattern such as 'orders*', or a regular expression that begins with ^.

    RECORDS is the number of offsets between the first record and the end. Compaction and transactions leave gaps, so
    that there may be fewer. SIZE is that of one replica.
    """
    from lowwater.cli.topics.choosing import chosen, not_there

    with connection.open() as connected:
        known = _known(connected, internal=internal or any(name.startswith("__") for name in topics))
        names, missing = chosen(topics, known) if topics else (list(known), [])
        if quiet:
            click.echo("".join(f"{name}\n" for name in names), nl=False)
        else:
            _print(connected, {name: known[name] for name in names}, output)
            if not names and not missing and output.is_for_people:
                click.echo(_nothing(topics, len(known)), err=True)
        if missing:
            raise not_there(missing, known)


def _known(connected: Connected, *, internal: bool) -> dict[str, DescribedTopic]:
    from lowwater.cli.topics.choosing import is_kept
    from lowwater.client.admin.topics import list_topics

    found = connected.run(list_topics(connected.cluster, internal=internal))
    return {name: topic for name, topic in found.items() if internal or not is_kept(name)}


def _print(connected: Connected, topics: dict[str, DescribedTopic], output: Output) -> None:
    from lowwater.cli.topics.facts import facts_of

    facts = connected.run(facts_of(connected.cluster, topics))
    for error in facts.failed[:ERRORS_MAX]:
        tell(error)
    rows = [_row(topic, facts) for topic in topics.values()]
    if not output.is_for_people:
        output.rows((*COLUMNS, *MORE), rows)
        return
    has_trouble = any(row["trouble"] for row in rows)
    output.rows([column for column in COLUMNS if has_trouble or column.name != "trouble"], rows)
    if sys.stdout.isatty() and len(rows) > 1:
        click.secho(_total(rows), dim=True)


def _nothing(patterns: tuple[str, ...], known: int) -> str:
    if patterns and known:
        return f"None of {counted(known, 'topic')} matches {' or '.join(patterns)}."
    return "There are no topics here. `lowwater topics create NAME` makes one."


def _row(topic: DescribedTopic, facts: Facts) -> Row:
    from lowwater.cli.topics.facts import id_text, partitions_of, troubles

    partitions = partitions_of(topic)
    return {
        "topic": topic.name,
        "partitions": len(partitions),
        "replicas": topic.replication_factor,
        "records": facts.count(partitions),
        "bytes": facts.size(partitions),
        "trouble": troubles(topic),
        "id": id_text(topic.id),
        "internal": topic.is_internal,
    }


def _total(rows: list[Row]) -> str:
    parts = [counted(len(rows), "topic"), counted(sum(row["partitions"] for row in rows), "partition")]
    if all(row["records"] is not None for row in rows):
        parts.append(counted(sum(row["records"] for row in rows), "record"))
    if all(row["bytes"] is not None for row in rows):
        parts.append(size(sum(row["bytes"] for row in rows)))
    return ", ".join(parts)
