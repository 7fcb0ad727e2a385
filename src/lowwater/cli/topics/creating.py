"""`lowwater topics create`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.printing import counted, tell
from lowwater.cli.topics.settings import setting_of

if TYPE_CHECKING:
    from lowwater.client.admin.topic_changes import CreatedTopic
    from lowwater.client.errors import ClientError


@click.command("create")
@click.argument("topics", metavar="TOPIC…", nargs=-1, required=True)
@click.option(
    "-p", "--partitions", type=click.IntRange(1), help="How many partitions.  [default: as many as the broker gives]"
)
@click.option(
    "-r", "--replicas", type=click.IntRange(1), help="How many replicas.  [default: as many as the broker gives]"
)
@click.option(
    "-c", "--config", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of the topic. Repeatable."
)
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is no error.")
@click.option("--dry-run", is_flag=True, help="Only find out whether it would work.")
@connection_options
def command(
    topics: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    settings: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    connection: Connection,
) -> None:
    """Make topics.

    \b
      lowwater topics create orders
      lowwater topics create clicks views --partitions 12 --config cleanup.policy=compact
    """
    from lowwater.client.admin.topic_changes import DEFAULT, NewTopic, create_topics

    _check_names(topics)
    config = dict(setting_of(text) for text in settings)
    new = [NewTopic(name, partitions or DEFAULT, replicas or DEFAULT, config) for name in topics]
    with connection.open() as connected:
        outcomes = connected.run(create_topics(connected.cluster, new, validate_only=dry_run))
    for name in topics:
        if name in outcomes:
            click.echo(f"{'would make' if dry_run else 'made'} {name}{_extent(outcomes[name])}")
    failed = {name: error for name, error in outcomes.failed.items() if not (if_not_exists and _is_there(error))}
    for name in outcomes.failed.keys() - failed.keys():
        click.echo(f"{name} is there already")
    for name, error in failed.items():
        tell(_refusal(name, error))
    if failed:
        sys.exit(1)


def _check_names(names: tuple[str, ...]) -> None:
    from lowwater.types import topic_name_problem

    for name in names:
        if (problem := topic_name_problem(name)) is not None:
            raise click.BadParameter(problem, param_hint="TOPIC")


def _extent(topic: CreatedTopic) -> str:
    if topic.partitions < 0:
        return ""
    return f": {counted(topic.partitions, 'partition')}, {counted(topic.replication_factor, 'replica')}"


def _is_there(error: ClientError) -> bool:
    from lowwater.client.errors import BrokerError
    from lowwater.errors import ErrorCode

    return isinstance(error, BrokerError) and error.code == ErrorCode.TOPIC_ALREADY_EXISTS


def _refusal(name: str, error: ClientError) -> str:
    if _is_there(error):
        return f"{name} is there already; --if-not-exists takes that for done"
    return str(error)
