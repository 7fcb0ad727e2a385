"""`lowwater topics delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lowwater.cli.asking import need_terminal
from lowwater.cli.connecting import Connected, Connection, connection_options
from lowwater.cli.printing import counted, printable, size, tell
from lowwater.cli.topics.completing import complete_topics

if TYPE_CHECKING:
    from lowwater.cli.topics.facts import Facts
    from lowwater.client.admin.topics import DescribedTopic


@click.command("delete")
@click.argument("topics", metavar="TOPIC…", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--if-exists", is_flag=True, help="A topic that is not there is no error.")
@connection_options
def command(topics: tuple[str, ...], yes: bool, if_exists: bool, connection: Connection) -> None:
    """Delete topics with all their records. There is no way back.

    Asks before it does so, and says what would be lost. Without a terminal to ask at it needs --yes.
    """
    from lowwater.cli.topics.choosing import not_there
    from lowwater.client.admin.topic_changes import delete_topics
    from lowwater.client.admin.topics import list_topics

    with connection.open() as connected:
        known = connected.run(list_topics(connected.cluster, internal=True))
        names = [name for name in dict.fromkeys(topics) if name in known]
        missing = [name for name in dict.fromkeys(topics) if name not in known]
        if missing and not if_exists:
            raise not_there(missing, known)
        for name in missing:
            click.echo(f"{printable(name)} is not there")
        if not names or not (yes or _confirmed(connected, {name: known[name] for name in names})):
            return
        outcomes = connected.run(delete_topics(connected.cluster, names))
    for name in outcomes:
        click.echo(f"deleted {printable(name)}")
    for error in outcomes.failed.values():
        tell(error)
    if outcomes.failed:
        sys.exit(1)


def _confirmed(connected: Connected, topics: dict[str, DescribedTopic]) -> bool:
    from lowwater.cli.topics.facts import facts_of

    need_terminal("if these topics are to be deleted")
    facts = connected.run(facts_of(connected.cluster, topics))
    click.echo("This deletes, for good:")
    for topic in topics.values():
        click.echo(f"  {printable(topic.name)}: {_extent(topic, facts)}")
    if click.confirm("Go on?"):
        return True
    click.echo("Nothing was deleted.")
    return False


def _extent(topic: DescribedTopic, facts: Facts) -> str:
    from lowwater.cli.topics.facts import partitions_of

    partitions = partitions_of(topic)
    parts = [counted(len(partitions), "partition")]
    records, bytes_ = facts.count(partitions), facts.size(partitions)
    if records is not None:
        parts.append(counted(records, "record"))
    if bytes_ is not None:
        parts.append(size(bytes_))
    return ", ".join(parts)
