"""Questions before something is done for good."""

from __future__ import annotations

import sys

import click


def need_terminal(otherwise: str) -> None:
    """UsageError, which is exit code 2, when nobody can be asked. `otherwise` goes on behind "say --yes"."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"there is no terminal to ask at: say --yes {otherwise}")
