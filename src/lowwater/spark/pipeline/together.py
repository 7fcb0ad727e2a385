"""Sources of one query that are cut at the same moments.

Each plans in a process of its own, and follows the topics of the others as if it read them. So all of them are told the
same: where every topic begins, and one limit. What cannot be the same for all is refused by `check_together`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lowwater.positions.grammar import parse_starts
from lowwater.positions.position import Ago, AtTime, Choice, Latest, StartPosition, StartPositions, Today
from lowwater.spark.pipeline.model import Model, Source
from lowwater.types import TopicPartition


def are_cut_together(model: Model, query: Sequence[Source]) -> bool:
    return model.cut_ms is not None and model.aligns and len(query) > 1


def topics_of(source: Source) -> Sequence[str]:
    """As far as they are known by name."""
    return source.topics or tuple(source.partitions)


def other_topics(source: Source, query: Sequence[Source]) -> list[str]:
    """Those that are followed and not read."""
    return sorted({topic for each in query for topic in topics_of(each)}.difference(topics_of(source)))


def common_limit(source: Source, query: Sequence[Source]) -> int | None:
    """Counts the rows of all topics. Sources of the very same topics count the same rows, each by its own."""
    named = {frozenset(topics_of(each)) for each in query if each.pattern is None}
    if len(named) <= 1 and not other_topics(source, query):
        return source.limit
    limits = [each.limit for each in query if each.limit is not None]
    return sum(limits) if limits else None


def common_start(source: Source, query: Sequence[Source]) -> str:
    """Where each topic begins, by the source that reads it; those of a pattern have no names yet."""
    wishes = [starts_of(each) for each in query]
    topics = {
        topic: _start_in(topic, each) for reader, each in zip(query, wishes, strict=True) for topic in topics_of(reader)
    }
    partitions = {one: wish for each in wishes for one, wish in each.partitions.items() if one.topic in topics}
    if source.pattern is None:
        return str(StartPositions(None, topics, partitions))
    own = starts_of(source)
    return str(StartPositions(own.default, {**own.topics, **topics}, {**own.partitions, **partitions}))


def own_start(source: Source, start: str) -> str:
    """A start of this source without what it says of topics that are followed and not read."""
    starts = parse_starts(start, zone_of(source))
    own = starts.only(source.reads)
    return start if own == starts else str(own) or str(Latest())


def start_alike(topic: str, one: Source, other: Source) -> bool:
    """Whether a topic that both read begins at the same place in both, in all of its partitions."""
    starts, others = starts_of(one), starts_of(other)
    if _start_in(topic, starts) != _start_in(topic, others):
        return False
    named = {each for each in (*starts.partitions, *others.partitions) if each.topic == topic}
    return all(_start_at(each, starts) == _start_at(each, others) for each in named)


def _start_in(topic: str, starts: StartPositions) -> StartPosition:
    """A stream begins at the end of topics that its start says nothing of."""
    return starts.topics.get(topic) or starts.default or StartPosition((Latest(),))


def _start_at(one: TopicPartition, starts: StartPositions) -> StartPosition:
    return starts.partitions.get(one) or _start_in(one.topic, starts)


def at_one_moment(source: Source, now_ms: int) -> Source:
    """Times that count from now do so from `now_ms`: each planner has another now."""
    starts = starts_of(source)

    def fixed(position: StartPosition) -> StartPosition:
        return StartPosition(tuple(_fixed(choice, now_ms) for choice in position.choices))

    return replace(
        source,
        start=str(
            StartPositions(
                None if starts.default is None else fixed(starts.default),
                {topic: fixed(wish) for topic, wish in starts.topics.items()},
                {one: fixed(wish) for one, wish in starts.partitions.items()},
            )
        ),
    )


def _fixed(choice: Choice, now_ms: int) -> Choice:
    return AtTime(choice.timestamp(now_ms)) if isinstance(choice, Ago | Today) else choice


def starts_of(source: Source) -> StartPositions:
    """PositionError for a start that is none."""
    return parse_starts(source.start, zone_of(source), "timeZone in its options")


def zone_of(source: Source) -> tzinfo | None:
    """Of times in its start that name none; what is no zone is told with the source's options."""
    name = option_of(source, "timeZone")
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def option_of(source: Source, name: str) -> str | None:
    return next((value for given, value in source.options.items() if given.lower() == name.lower()), None)


def strangers_of(source: Source) -> Iterator[str]:
    """What its start names, and it neither reads nor is aligned with by an option."""
    followed = {topic.strip() for topic in (option_of(source, "alignWith") or "").split(",")}
    for one in starts_of(source).named:
        topic, shown = (one, one) if isinstance(one, str) else (one.topic, f"{one.topic}[{one.partition}]")
        if topic not in followed and not source.reads(one):
            yield shown
