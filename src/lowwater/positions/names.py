"""Positions that name topics: each has to be one that is asked for, or nobody would notice a slip of the pen."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lowwater.errors import ConfigError
from lowwater.positions.position import StartPositions
from lowwater.types import TopicPartition

SHOWN_MAX = 8


def check_names(positions: StartPositions, topics: Collection[str], what: str) -> None:
    """ConfigError when `what` (an option) has a wish for a topic that is not among these."""
    named = [*positions.topics, *(one.topic for one in positions.partitions)]
    refuse_strangers([name for name in named if name not in topics], topics, what)


def refuse_strangers(strangers: Iterable[str | TopicPartition], topics: Collection[str], what: str) -> None:
    """ConfigError for the first of them, with the topic that may have been meant."""
    for one in strangers:
        name, shown = (one, one) if isinstance(one, str) else (one.topic, f"{one.topic}[{one.partition}]")
        raise ConfigError(f"{what} names {shown!r}, which is not asked for; {_hint(name, topics)}")


def _hint(name: str, topics: Collection[str]) -> str:
    import difflib  # only needed once something is wrong already

    close = [] if name in topics else difflib.get_close_matches(name, topics, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(topics) - SHOWN_MAX} more" if len(topics) > SHOWN_MAX else ""
    return f"these are: {', '.join(sorted(topics)[:SHOWN_MAX])}{more}"
