"""Settings of topics, as they are given and as they are shown."""

from __future__ import annotations

import click

from lowwater.cli.printing import duration, size

_LONG_MAX = str((1 << 63) - 1)
_INT_MAX = (1 << 31) - 1
_WITHOUT_LIMIT = "no limit"


def setting_of(text: str) -> tuple[str, str]:
    """Of an option; click.BadParameter when it is not NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.BadParameter(f"expected NAME=VALUE, found {text!r}", param_hint="--config")
    return name.strip(), value.strip()


def humane(name: str, value: str | None) -> str | None:
    """With the value in other words behind it, where the number alone says little."""
    words = None if value is None else _in_words(name, value)
    return value if words is None else f"{value} ({words})"


def _in_words(name: str, value: str) -> str | None:
    if value == _LONG_MAX or (value == "-1" and name.startswith("retention.")):
        return _WITHOUT_LIMIT
    if not value.isdecimal() or int(value) >= _INT_MAX:
        return None
    if name.endswith(".ms") and int(value) >= 10_000:
        return duration(int(value))
    if name.endswith(".bytes") and int(value) >= 10_240:
        return size(int(value))
    return None
