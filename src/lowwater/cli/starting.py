"""Start positions on the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lowwater.positions.position import StartPositions

F = TypeVar("F", bound=Callable[..., Any])


class LocalZone(tzinfo):
    """That of this machine, with the hour that each date has there: summer is summer in winter too."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "local"

    def fromutc(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)


def read_zone(ctx: click.Context, param: click.Parameter, text: str | None) -> tzinfo | None:
    """A callback for options."""
    if text is None:
        return None
    if text.lower() in ("utc", "z"):
        return UTC
    if text.lower() == "local":
        return LocalZone()
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (ValueError, OSError, LookupError):  # not a name at all, a directory of zones, no such zone
        reason = f"{text!r} is no time zone; give UTC, local, or a name such as Europe/Berlin"
        raise click.BadParameter(reason, ctx, param) from None


def zone_option(command: F) -> F:
    """Adds --zone to a command, which gets it as `zone`."""
    return click.option(
        "--zone",
        callback=read_zone,
        metavar="ZONE",
        help="Of dates and times that name none: UTC, local, Europe/Berlin.  [default: none; `today` is that of UTC]",
    )(command)


def parsed_starts(text: str, zone: tzinfo | None = None, option: str = "--at") -> StartPositions:
    """click.BadParameter shows which part is wrong, and what could stand there."""
    from lowwater.positions.grammar import PositionError, parse_starts

    try:
        return parse_starts(text, zone, "--zone")
    except PositionError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
