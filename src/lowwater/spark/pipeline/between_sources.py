"""What sources of a pipeline are to each other: whether they can be cut together, and whose group is whose."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import Model, Source
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.queries import Query, queries
from lowwater.spark.pipeline.source_options import client_settings, reading_options
from lowwater.spark.pipeline.together import are_cut_together, option_of, start_alike, starts_of, topics_of

# Of options that a source of such a query cannot have for itself: what says it for all of them.
_SAID_FOR_ALL = {
    "cut": "the key cut, at the top, says it",
    "idletimeout": "the key idle_timeout, at the top, says it",
    "alignwith": "they are aligned with each other",
    "maxoffsetspertrigger": "the key limit of each of them says it",
    "minoffsetspertrigger": "no source waits for itself alone",
    "start": "the key start says it",
    "group": "the key group says it",
}
_SAME_SETTINGS = ("bootstrap.servers", "isolation.level")
_TOGETHER = "sources of one query are cut together"
_WAY_OUT = "or align = false, at the top, lets each be cut for itself"


def check_sources(model: Model, report: Report) -> None:
    """Of a model in which nothing else is wrong."""
    for _, sources in _cut_together(model):
        _check_together(model, sources, report)
    _check_groups(model, report)


def not_waited_for(model: Model) -> Iterator[str]:
    """Of sources whose topics the others of their query do not know."""
    for query, sources in _cut_together(model):
        for source in sources:
            if source.pattern is not None:
                what = f"it reads by pattern, so the other sources of {query.label} are cut without it"
                yield f"source.{source.name}: {what}"


def _cut_together(model: Model) -> Iterator[tuple[Query, list[Source]]]:
    """Queries with several sources that are cut together, and those."""
    for query in queries(model):
        sources = [source for source in model.sources if source.name in query.reads]
        if are_cut_together(model, sources):
            yield query, sources


# ---- sources that are cut together


def _check_together(model: Model, query: Sequence[Source], report: Report) -> None:
    told = len(report.problems)
    for source in query:
        _check_options(source, report)
        if source.partitions:
            what = f"{_TOGETHER}, by whole topics, not by some partitions"
            report.key(("source", source.name, "partitions"), what, f"name topics; {_WAY_OUT}")
    if len(report.problems) > told:
        return
    _check_limits(query, report)
    for source in query[1:]:
        _check_settings(model, query[0], source, report)
        _check_stored(query, source, report)
    for one, other in itertools.combinations(query, 2):
        _check_same_topic(one, other, report)


def _check_options(source: Source, report: Report) -> None:
    for name in source.options:
        if (instead := _SAID_FOR_ALL.get(name.lower())) is not None:
            path = ("source", source.name, "options", name)
            report.key(path, f"{_TOGETHER}: one cannot have a {name} of its own", f"{instead}; {_WAY_OUT}")


def _check_limits(query: Sequence[Source], report: Report) -> None:
    """The limit counts the rows of all: one of some would be that of the others as well."""
    limited = [source.name for source in query if source.limit is not None]
    for source in query if limited else ():
        if source.limit is None:
            what = f"{_TOGETHER}, and their limits count together: limit is missing here, {limited[0]} has one"
            report.key(("source", source.name), what, f"give each of them one, or none; {_WAY_OUT}")


def _check_settings(model: Model, first: Source, source: Source, report: Report) -> None:
    one, other = (
        SourceOptions.parse(reading_options(model, each), streaming=True).client.settings for each in (first, source)
    )
    for name in _SAME_SETTINGS:
        if one.get(name) != other.get(name):
            what = f"{_TOGETHER}: they need the same {name}, and {first.name} has another"
            report.key(("source", source.name, "kafka"), what, f"set it for both; {_WAY_OUT}")


def _check_stored(query: Sequence[Source], source: Source, report: Report) -> None:
    """Each finds out by its own group where the others begin."""
    first = query[0]
    if source.group == first.group or not any(starts_of(each).needs_group for each in query):
        return
    what = f"{_TOGETHER}, and start from one group: {source.group!r} and not {first.group!r}, that of {first.name}"
    hint = f"give them the same group, or starts without stored; {_WAY_OUT}"
    report.key(("source", source.name, "group"), what, hint)


def _check_same_topic(one: Source, other: Source, report: Report) -> None:
    """Of patterns the topics that the other one names: there are no more names yet."""
    for topic in dict.fromkeys(_read_by_both(one, other)):
        if not start_alike(topic, one, other):
            what = f"{_TOGETHER}: {topic} begins elsewhere in the source {one.name}"
            report.key(("source", other.name, "start"), what, f"give both the same start in it; {_WAY_OUT}")
        if one.limit != other.limit and one.pattern is None and other.pattern is None:
            what = f"{_TOGETHER}: {topic} has another limit in the source {one.name}"
            report.key(("source", other.name, "limit"), what, f"give both the same; {_WAY_OUT}")


# ---- groups


def _check_groups(model: Model, report: Report) -> None:
    """Two that commit the same partition to one group would take each other's offsets back."""
    for one, other in itertools.combinations(_committing(model), 2):
        if _cluster(model, one) != _cluster(model, other) or _group(one) != _group(other):
            continue
        if (shared := _shared(one, other)) is not None:
            what = f"{one.name} reads {shared} too, and both commit to the group {_group(other)!r}"
            report.key(("source", other.name, "group"), what, _group_hint(model, one, other))


def _group_hint(model: Model, one: Source, other: Source) -> str:
    """Sources that are cut together may have to begin by the same group."""
    if any(one in sources and other in sources for _, sources in _cut_together(model)):
        return "give one of them options = { commitOffsets = false }"
    return "give each a group of its own, or one of them options = { commitOffsets = false }"


def _committing(model: Model) -> list[Source]:
    committed = {name for query in queries(model) for name in query.commits}
    return [each for each in model.sources if each.name in committed and _commits(each)]


def _commits(source: Source) -> bool:
    return (option_of(source, "commitOffsets") or "true").lower() != "false"


def _group(source: Source) -> str:
    return option_of(source, "group") or source.group


def _cluster(model: Model, source: Source) -> str:
    return client_settings(model, source)["bootstrap.servers"]


def _shared(one: Source, other: Source) -> str | None:
    """Something that both read, as far as that can be told without a broker."""
    if one.pattern is not None and one.pattern == other.pattern:
        return f"topics like {one.pattern}"
    return next((topic for topic in _read_by_both(one, other)), None)


def _read_by_both(one: Source, other: Source) -> Iterator[str]:
    for topic in topics_of(one):
        numbers, others = one.partitions.get(topic), other.partitions.get(topic)
        if other.reads(topic) and (numbers is None or others is None or set(numbers) & set(others)):
            yield topic
    if one.pattern is not None:
        yield from (topic for topic in topics_of(other) if one.reads(topic))
