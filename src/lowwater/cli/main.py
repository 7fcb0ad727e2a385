"""The `lowwater` command. Commands are loaded when they are used, so that `--help` is quick."""

from __future__ import annotations

import importlib
import sys

import click

from lowwater import __version__
from lowwater.errors import LowwaterError

COMMANDS = {
    "broker": ("lowwater.cli.broker", "Run a broker that real Kafka clients can use."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="lowwater")
def lowwater() -> None:
    """Everything about offsets in a partitioned log.

    \b
    Start a broker, then point any Kafka client at it:
      lowwater broker --data-dir ./data
      kcat -b 127.0.0.1:9092 -t greetings -P <<< hello
      kcat -b 127.0.0.1:9092 -t greetings -C -e
    """


def main() -> None:
    try:
        lowwater()
    except LowwaterError as error:
        click.echo(f"lowwater: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
