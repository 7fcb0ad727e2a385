"""Which topics a command is about: names, shell patterns and regular expressions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Sequence

import click

from lowwater.cli.printing import counted
from lowwater.client.errors import ClientError
from lowwater.types import OUR_OWN

BROKERS_OWN = ("__consumer_offsets", "__transaction_state", "__share_group_state")
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


def is_kept(name: str) -> bool:
    """Whether it is a topic that brokers and these tools keep for themselves, which a list leaves out."""
    return name in BROKERS_OWN or name.startswith(OUR_OWN)


def meant(missing: Iterable[str], names: Collection[str]) -> str:
    """Asks whether topics were meant that sound alike; empty when none does."""
    import difflib  # only needed once something is wrong already

    alike = list(dict.fromkeys(name for one in missing for name in difflib.get_close_matches(one, names, n=2)))
    return f"did you mean {' or '.join(alike[:3])}?" if alike else ""


def not_there(missing: Sequence[str], names: Collection[str]) -> ClientError:
    """Says which topics are missing, and which are there that sound alike."""
    shown = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    listed = [name for name in names if not is_kept(name)]
    advice = meant([one for one in missing if not is_pattern(one)], names)
    advice = advice or f"`lowwater topics list` shows what there is: {counted(len(listed), 'topic')}"
    verb = "matches" if any(map(is_pattern, missing)) else "is called"
    what = f"no topic {verb} {shown}"
    return ClientError(what, advice=advice)
