"""Groups of commands that are loaded when they are used, so that `--help` is quick."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """Knows its commands by name, in order: the module that has each as `command`, and a line of help."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **others: Any) -> None:
        super().__init__(*args, **others)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _ = self._table[cmd_name]
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command that there is not is refused with the nearest ones."""
        if args[0] not in self._table and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{_nearest(args[0], self._table)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in self._table.items()])


def _nearest(name: str, known: Mapping[str, object]) -> str:
    import difflib  # only needed once something is wrong already

    close = difflib.get_close_matches(name, known)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else f" There are {', '.join(known)}."
