"""docs/cli.md, written from the commands themselves: `python -m lowwater.cli.reference`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from lowwater.cli.main import lowwater

INTRODUCTION = """\
# Command line

What `--help` prints, for reading at leisure. This page is printed by `python -m lowwater.cli.reference`.
"""


def markdown() -> str:
    return "\n".join([INTRODUCTION, *(_section(context) for context in _contexts())])


def _contexts() -> Iterator[click.Context]:
    yield from _below(click.Context(lowwater, info_name="lowwater", **lowwater.context_settings))


def _below(context: click.Context) -> Iterator[click.Context]:
    """A command, then those in it."""
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            settings = {**lowwater.context_settings, **command.context_settings}
            yield from _below(click.Context(command, info_name=name, parent=context, **settings))


def _section(context: click.Context) -> str:
    # A fixed width: the page must not depend on whose terminal made it.
    formatter = click.HelpFormatter(width=100)
    context.command.format_help(context, formatter)
    return f"## `{context.command_path}`\n\n```\n{formatter.getvalue().rstrip()}\n```\n"


if __name__ == "__main__":
    print(markdown(), end="")
