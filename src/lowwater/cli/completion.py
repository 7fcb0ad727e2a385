"""`lowwater completion`: what a shell needs to complete commands, options and names of topics."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that lets your shell complete commands, options and names of topics.

    \b
    To have it in every new shell:
      lowwater completion bash >> ~/.bashrc
      lowwater completion zsh >> ~/.zshrc
      lowwater completion fish > ~/.config/fish/completions/lowwater.fish
    """
    from lowwater.cli.main import lowwater

    found = get_completion_class(shell)
    assert found is not None, shell
    click.echo(found(lowwater, {}, "lowwater", "_LOWWATER_COMPLETE").source())
