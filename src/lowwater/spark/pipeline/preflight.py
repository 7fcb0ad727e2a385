"""Whether brokers and topics are there, asked before the half minute that Spark may take to start."""

from __future__ import annotations

import warnings
from collections.abc import Collection

from lowwater.client.admin.blocking import Admin
from lowwater.errors import LowwaterError
from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import Model, Source
from lowwater.spark.pipeline.problems import Report, did_you_mean
from lowwater.spark.pipeline.source_options import reading_options
from lowwater.spark.pipeline.toml_places import Path

# Somebody, or a scheduler, waits.
PATIENCE = {"default.api.timeout.ms": "6000", "socket.connection.setup.timeout.ms": "3000"}


class MissingTopicError(LowwaterError):
    """A source names a topic that its cluster does not have."""


def reach_brokers(model: Model, report: Report) -> None:
    """Reports topics that are not there. ClientError when a cluster cannot be reached."""
    for source in model.sources:
        options = SourceOptions.parse(reading_options(model, source), streaming=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings without meaning; the source tells them
            with Admin(config={**options.client.settings, **PATIENCE}) as admin:
                report_missing(source, admin.list_topics(internal=True), report)


def report_missing(source: Source, known: Collection[str], report: Report) -> None:
    """Topics that a source names and `known` has not."""
    for topic in sorted({*source.topics, *source.partitions}.difference(known)):
        key: Path = ("partitions", topic) if topic in source.partitions else ("topics",)
        near, making = did_you_mean(topic, known), f"lowwater topics create {topic} makes it"
        hint = f"{near} Else {making}" if near else making
        report.value(("source", source.name, *key), f"there is no topic {topic!r}", hint)
