"""The last commit of a run: a query that is stopped does not plan again, and commits nothing more by itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lowwater.errors import LowwaterError
from lowwater.spark.following import commit_finished
from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import Model, Source
from lowwater.spark.pipeline.queries import Query
from lowwater.spark.pipeline.source_options import reading_options
from lowwater.types import TopicPartition

LOG = logging.getLogger("lowwater.spark")


def commit_last(model: Model, query: Query, event: Mapping[str, Any]) -> None:
    """Commits where the last finished batch of a query ended, to the groups of its sources. Warns when it cannot."""
    for source, end in ends(model, query, event):
        try:
            commit_finished(SourceOptions.parse(reading_options(model, source), streaming=True), end)
        except LowwaterError as error:
            LOG.warning("the last offsets of %s were not committed: %s", source.name, model.secrets.masked(str(error)))


def ends(model: Model, query: Query, event: Mapping[str, Any]) -> Iterator[tuple[Source, Mapping[str, Any]]]:
    """Of the sources that the query commits: the offsets that Spark tells of them, recognised by their partitions.

    Spark does not say whose offsets are whose. What two sources of the query may have read is left to them.
    """
    for told in event.get("sources") or ():
        end = _offset(told.get("endOffset"))
        readers = _readers(model, query, _partitions(end))
        if len(readers) == 1 and readers[0].name in query.commits:
            yield readers[0], end


def _readers(model: Model, query: Query, partitions: Collection[TopicPartition]) -> list[Source]:
    return [
        source
        for source in model.sources
        if source.name in query.reads and partitions and all(source.reads(one) for one in partitions)
    ]


def _offset(told: Any) -> Mapping[str, Any]:
    offset = json.loads(told) if isinstance(told, str) else told
    return offset if isinstance(offset, Mapping) else {}


def _partitions(end: Mapping[str, Any]) -> list[TopicPartition]:
    topics = end.get("topics", {}) if "lowwater" in end else {}
    return [TopicPartition(topic, int(number)) for topic, each in topics.items() for number in each["at"]]
