"""The last commit of a run: a query that is stopped does not plan again, and commits nothing more by itself."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lowwater.errors import LowwaterError
from lowwater.spark.following import commit_finished
from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import Model, Source
from lowwater.spark.pipeline.queries import Query
from lowwater.spark.pipeline.source_options import reading_options

LOG = logging.getLogger("lowwater.spark")


def commit_last(model: Model, query: Query, event: Mapping[str, Any]) -> None:
    """Commits where the last finished batch of a query ended, to the groups of its sources. Warns when it cannot."""
    for source, end in ends(model, query, event):
        try:
            commit_finished(SourceOptions.parse(reading_options(model, source), streaming=True), end)
        except LowwaterError as error:
            LOG.warning("the last offsets of %s were not committed: %s", source.name, model.secrets.masked(str(error)))


def ends(model: Model, query: Query, event: Mapping[str, Any]) -> Iterator[tuple[Source, Mapping[str, Any]]]:
    """Of the sources that the query commits: the offsets that Spark tells of them, recognised by their topics."""
    for told in event.get("sources") or ():
        end = _offset(told.get("endOffset"))
        topics = set(end.get("topics") or ())
        for source in model.sources:
            if source.name in query.commits and topics and all(_reads(source, topic) for topic in topics):
                yield source, end


def _offset(told: Any) -> Mapping[str, Any]:
    offset = json.loads(told) if isinstance(told, str) else told
    return offset if isinstance(offset, Mapping) else {}


def _reads(source: Source, topic: str) -> bool:
    if source.pattern is not None:
        return re.fullmatch(source.pattern, topic) is not None
    return topic in source.topics or topic in source.partitions
