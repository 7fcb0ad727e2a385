"""Names of topics for the shell's completion."""

from __future__ import annotations

import contextlib

import click

from lowwater.cli.connecting import PATIENCE, connection_of

# Who pressed the tabulator key does not wait for long.
HURRY = {
    **PATIENCE,
    "default.api.timeout.ms": "3000",
    "request.timeout.ms": "3000",
    "socket.connection.setup.timeout.ms": "3000",
}


def complete_topics(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin with what was typed and were not named yet; none when no broker says so soon."""
    from lowwater.client.admin.topics import list_topics

    given = ctx.params
    with contextlib.suppress(Exception):  # whatever is wrong is told when the command runs
        connection = connection_of(given.get("bootstrap"), given.get("properties") or (), given.get("settings_file"))
        with connection.open(HURRY, first_contact_ms=0) as connected:
            names = connected.run(list_topics(connected.cluster))
        return [name for name in names if name.startswith(incomplete) and name not in (given.get("topics") or ())]
    return []
