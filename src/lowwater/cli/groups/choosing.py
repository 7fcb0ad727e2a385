"""Which groups a command is about: names, shell patterns and regular expressions; and for the shell's completion."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connected, connection_of
from lowwater.cli.printing import counted, tell
from lowwater.cli.topics.choosing import chosen, is_pattern
from lowwater.cli.topics.completing import HURRY
from lowwater.client.errors import ClientError

if TYPE_CHECKING:
    from lowwater.client.admin.groups import ListedGroup


def listed(connected: Connected) -> tuple[dict[str, ListedGroup], bool]:
    """All groups, and whether every broker has told its own; who has not is told."""
    from lowwater.client.admin.groups import list_groups

    found = connected.run(list_groups(connected.cluster))
    for node, error in found.failed.items():
        tell(f"broker {node}: {error}")
    return dict(found.groups), not found.failed


def all_of_them(connected: Connected) -> tuple[list[str], bool]:
    """The names of all groups, and whether they are all; that they are not is told."""
    found, is_complete = listed(connected)
    if not is_complete:
        tell("these are not all groups: there may be more at brokers that do not answer")
    return list(found), is_complete


def named(connected: Connected, groups: Sequence[str]) -> list[str]:
    """The groups that are meant. ClientError when a pattern matches none, or when a name is not there."""
    known, is_complete = listed(connected)
    exact = [group for group in groups if group in known]
    patterns = [group for group in groups if group not in known and is_pattern(group)]
    found, missing = chosen(patterns, known, at_least_one=True)
    missing += [group for group in groups if group not in known and group not in patterns]
    if missing and is_complete:
        raise not_there(missing, known)
    return sorted({*exact, *found, *(group for group in missing if not is_pattern(group))})


def not_there(missing: Sequence[str], names: Collection[str]) -> ClientError:
    """Says which groups are missing, and which are there that sound alike."""
    import difflib  # only needed once something is wrong already

    alike = list(dict.fromkeys(name for one in missing for name in difflib.get_close_matches(one, names, n=2)))
    if alike:
        advice = f"did you mean {' or '.join(alike[:3])}?"
    else:
        advice = f"`lowwater groups list` shows what there is: {counted(len(names), 'group')}"
    return ClientError(f"there is no group {', '.join(map(repr, missing[:5]))}", advice=advice)


def complete_groups(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin with what was typed and were not named yet; none when no broker says so soon."""
    from lowwater.client.admin.groups import list_groups

    given = ctx.params
    with contextlib.suppress(Exception):  # whatever is wrong is told when the command runs
        connection = connection_of(given.get("bootstrap"), given.get("properties") or (), given.get("settings_file"))
        with connection.open(HURRY, first_contact_ms=0) as connected:
            names = connected.run(list_groups(connected.cluster)).groups
        return [name for name in names if name.startswith(incomplete) and name not in (given.get("groups") or ())]
    return []
