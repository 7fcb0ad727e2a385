"""Where a query starts and stops, by whichever of its options says so."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lowwater.positions.position import Choice, Earliest, Latest
from lowwater.spark.given import Given
from lowwater.spark.option_table import OptionError
from lowwater.spark.wishes import (
    StartWish,
    StopWish,
    by_offsets,
    by_timestamp,
    by_timestamps,
    everywhere,
    start_by_grammar,
    start_of_group,
    stop_by_grammar,
)

# The one that goes first counts, as in the Kafka connector.
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_STOPS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")


def start_wish(given: Given, *, streaming: bool) -> StartWish:
    """Where a query starts that has no checkpoint."""
    otherwise: Choice = Latest() if streaming else Earliest()
    others = [name for name in _STARTS if name in given]
    has_to_match = given.value("startingOffsetsByTimestampStrategy") == "error"
    if "start" in given:
        if others:
            raise OptionError(f"start and {others[0]} both say where to start: give one of them")
        wish = start_by_grammar(given.text("start"), _zone(given), otherwise)
    elif not others:
        wish = start_of_group(otherwise) if "group" in given else StartWish("startingOffsets", everywhere(otherwise))
    elif others[0] == "startingTimestamp":
        wish = StartWish(others[0], by_timestamp(given.text(others[0])), has_to_match=has_to_match)
    elif others[0] == "startingOffsetsByTimestamp":
        wish = StartWish(others[0], by_timestamps(given.text(others[0])), True, has_to_match)
    else:
        wish = StartWish(others[0], *by_offsets(given.text(others[0])))
    if wish.positions.needs_group and "group" not in given:
        raise OptionError("start says stored, which is where a group is: say which, by the option group")
    if not streaming:
        _check_end("starting", wish, Latest())
    return wish


def stop_wish(given: Given) -> StopWish:
    """Where a batch query ends."""
    others = [name for name in _STOPS if name in given]
    if "stop" in given:
        if others:
            raise OptionError(f"stop and {others[0]} both say where to end: give one of them")
        wish = stop_by_grammar(given.text("stop"), _zone(given))
    elif not others:
        wish = StopWish("endingOffsets", everywhere(Latest()))
    elif others[0] == "endingTimestamp":
        wish = StopWish(others[0], by_timestamp(given.text(others[0])))
    elif others[0] == "endingOffsetsByTimestamp":
        wish = StopWish(others[0], by_timestamps(given.text(others[0])), True)
    else:
        wish = StopWish(others[0], *by_offsets(given.text(others[0])))
    _check_end("ending", wish, Earliest())
    return wish


def check_no_stop(given: Given) -> None:
    """A stream has no end."""
    for name in ("stop", *_STOPS):
        if name in given:
            what = "timestamp" if "Timestamp" in name else "offset"
            raise OptionError(f"ending {what} not valid in streaming queries: leave {name} out")


def _check_end(which: str, wish: StartWish | StopWish, forbidden: Choice) -> None:
    """A batch query has to have something to read between its two ends."""
    if wish.positions.default is not None and wish.positions.default.choices == (forbidden,):
        raise OptionError(f"{which} offset can't be {forbidden} for batch queries on Kafka")
    said = "ending offset" if wish.option == "endingOffsets" else wish.option  # as the connector says it
    for one, position in (*wish.positions.topics.items(), *wish.positions.partitions.items()):
        if position.choices == (forbidden,):
            raise OptionError(f"{said} for {one} can't be {forbidden} for batch queries on Kafka")


def _zone(given: Given) -> tzinfo | None:
    name = given.value("timeZone")
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise OptionError(f"timeZone cannot be {name!r}; it takes names such as UTC and Europe/Berlin") from None
