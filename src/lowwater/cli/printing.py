"""What a terminal is shown: nothing that it would take for a command, and numbers that can be read."""

from __future__ import annotations


def printable(text: str) -> str:
    """The same text with control characters, and those that turn or hide others, made visible."""
    return text if text.isprintable() else "".join(one if one.isprintable() else _escaped(one) for one in text)


def printable_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _escaped(one: str) -> str:
    return one.encode("unicode_escape", "backslashreplace").decode("ascii")
