"""`lowwater topics alter`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lowwater.cli.connecting import Connected, Connection, connection_options
from lowwater.cli.printing import counted, printable, tell
from lowwater.cli.topics.completing import complete_topics
from lowwater.cli.topics.settings import setting_of

if TYPE_CHECKING:
    from lowwater.client.admin.outcomes import Outcomes
    from lowwater.client.admin.topics import DescribedTopic


@click.command("alter")
@click.argument("topics", metavar="TOPIC…", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("-p", "--partitions", type=click.IntRange(1), help="How many partitions there shall be. Never fewer.")
@click.option("-c", "--config", "settings", metavar="NAME=VALUE", multiple=True, help="Set a setting. Repeatable.")
@click.option("-u", "--unset", metavar="NAME", multiple=True, help="Set a setting back to the broker's. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Only find out whether it would work.")
@connection_options
def command(
    topics: tuple[str, ...],
    partitions: int | None,
    settings: tuple[str, ...],
    unset: tuple[str, ...],
    dry_run: bool,
    connection: Connection,
) -> None:
    """Change settings of topics, and let them grow.

    \b
      lowwater topics alter orders --config retention.ms=86400000 --unset cleanup.policy
      lowwater topics alter orders --partitions 12
    """
    from lowwater.cli.topics.choosing import not_there
    from lowwater.client.admin.topics import list_topics

    changes = _changes(settings, unset)
    if not changes and partitions is None:
        raise click.UsageError("nothing to change: give --config, --unset or --partitions")
    with connection.open() as connected:
        known = connected.run(list_topics(connected.cluster, internal=True))
        if missing := [name for name in dict.fromkeys(topics) if name not in known]:
            raise not_there(missing, known)
        done = _set(connected, topics, changes, dry_run) if changes else True
        if partitions is not None:
            done &= _grow(connected, {name: known[name] for name in topics}, partitions, dry_run)
    if not done:
        sys.exit(1)


def _changes(settings: tuple[str, ...], unset: tuple[str, ...]) -> dict[str, str | None]:
    changes: dict[str, str | None] = dict(setting_of(text) for text in settings)
    for name in unset:
        if name in changes:
            raise click.UsageError(f"{name} is both set and unset")
        changes[name] = None
    return changes


def _set(connected: Connected, topics: tuple[str, ...], changes: Mapping[str, str | None], dry_run: bool) -> bool:
    from lowwater.client.admin.configs import alter_configs

    wanted = dict.fromkeys(topics, changes)
    outcomes = connected.run(alter_configs(connected.cluster, wanted, validate_only=dry_run))
    told = ", ".join(f"{name}={value}" if value is not None else f"{name} unset" for name, value in changes.items())
    for resource in outcomes:
        click.echo(f"{'would change' if dry_run else 'changed'} {printable(resource.name)}: {printable(told)}")
    return _told(outcomes)


def _grow(connected: Connected, topics: Mapping[str, DescribedTopic], count: int, dry_run: bool) -> bool:
    from lowwater.client.admin.topic_changes import create_partitions

    counts = dict.fromkeys(topics, count)
    outcomes = connected.run(create_partitions(connected.cluster, counts, validate_only=dry_run))
    for name in outcomes:
        before = len(topics[name].partitions)
        click.echo(f"{'would grow' if dry_run else 'grew'} {printable(name)}: {before} → {counted(count, 'partition')}")
    if outcomes:
        click.echo("Records of a key may be in another partition than before from now on.", err=True)
    return _told(outcomes)


def _told(outcomes: Outcomes[Any, Any]) -> bool:
    for error in outcomes.failed.values():
        tell(error)
    return not outcomes.failed
