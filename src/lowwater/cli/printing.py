"""What a terminal is shown: nothing that it would take for a command, and numbers that people can read."""

from __future__ import annotations

import click

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SPANS = ((365 * 86_400_000, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
UNKNOWN = "–"


def printable(text: str) -> str:
    """The same text with control characters, and those that turn or hide others, made visible."""
    return text if text.isprintable() else "".join(one if one.isprintable() else _escaped(one) for one in text)


def printable_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(printable(line) for line in text.split("\n"))


def tell(text: object) -> None:
    """On stderr. Names in errors come from brokers and files: none of them talks to the terminal."""
    click.echo(f"lowwater: {printable_lines(str(text))}", err=True)


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")


def number(value: int | None) -> str:
    """Exact, in groups of three."""
    return UNKNOWN if value is None else f"{value:,}"


def size(value: int | None) -> str:
    """Bytes, to three digits: 512 B, 3.42 MiB, 118 GiB."""
    if value is None:
        return UNKNOWN
    if value < 1024:
        return f"{value} B"
    scaled, units = value / 1024, iter(_UNITS)
    unit = next(units)
    while scaled >= 999.5:
        scaled, unit = scaled / 1024, next(units)
    return f"{scaled:.{max(0, 3 - len(str(int(scaled))))}f} {unit}"


def duration(span_ms: int) -> str:
    """In the largest unit that fits: 12 s, 3 min, 5 h, 2 d, 1 y; with the next one where it says more: 1 h 30 min."""
    for place, (unit_ms, unit) in enumerate(_SPANS):
        if span_ms >= unit_ms:
            text, rest_ms = f"{span_ms // unit_ms} {unit}", span_ms % unit_ms
            smaller = place + 1 < len(_SPANS) and rest_ms >= _SPANS[place + 1][0] and span_ms < 10 * unit_ms
            return f"{text} {duration(rest_ms - rest_ms % _SPANS[place + 1][0])}" if smaller else text
    return f"{span_ms} ms"


def age(timestamp_ms: int | None, now_ms: int) -> str:
    """How long ago, in the largest unit that fits."""
    if timestamp_ms is None:
        return UNKNOWN
    span_ms = now_ms - timestamp_ms
    for unit_ms, unit in _SPANS:
        if abs(span_ms) >= unit_ms:
            text = f"{abs(span_ms) // unit_ms} {unit}"
            return f"{text} ago" if span_ms > 0 else f"in {text}"
    return "now"


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 topic, 2 topics."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
