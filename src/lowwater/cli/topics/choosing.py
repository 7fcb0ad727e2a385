"""Which topics a command is about: names, shell patterns and regular expressions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Sequence

import click

from lowwater.cli.printing import counted
from lowwater.client.errors import ClientError

_SHELL_PATTERN = re.compile(r"[*?\[]")


def chosen(wanted: Sequence[str], names: Collection[str], *, at_least_one: bool = False) -> tuple[list[str], list[str]]:
    """The names that are wanted, in order, and what is not there: names, and with `at_least_one` patterns as well."""
    found: dict[str, None] = {}
    missing: dict[str, None] = {}
    for text in wanted:
        matches = _matches(text, names)
        found |= dict.fromkeys(matches)
        if not matches and (at_least_one or not is_pattern(text)):
            missing[text] = None
    return sorted(found), list(missing)


def is_pattern(text: str) -> bool:
    return text.startswith("^") or _SHELL_PATTERN.search(text) is not None


def _matches(text: str, names: Iterable[str]) -> list[str]:
    if not is_pattern(text):
        return [text] if text in set(names) else []
    pattern = text if text.startswith("^") else fnmatch.translate(text)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise click.UsageError(f"{text!r} is not a regular expression: {error}") from None
    return [name for name in names if expression.fullmatch(name)]


def not_there(missing: Sequence[str], names: Collection[str]) -> ClientError:
    """Says which topics are missing, and which are there that sound alike."""
    import difflib  # only needed once something is wrong already

    shown = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    exact = [one for one in missing if not is_pattern(one)]
    alike = list(dict.fromkeys(name for one in exact for name in difflib.get_close_matches(one, names, n=2)))
    if alike:
        advice = f"did you mean {' or '.join(alike[:3])}?"
    else:
        advice = f"`lowwater topics list` shows what there is: {counted(len(names), 'topic')}"
    verb = "matches" if any(map(is_pattern, missing)) else "is called"
    what = f"no topic {verb} {shown}"
    return ClientError(what, advice=advice)
