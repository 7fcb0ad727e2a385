"""Whether brokers and topics are there, asked before the half minute that Spark may take to start."""

from __future__ import annotations

import warnings

from lowwater.client.admin.blocking import Admin
from lowwater.errors import LowwaterError
from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import Model
from lowwater.spark.pipeline.source_options import reading_options

# Somebody, or a scheduler, waits.
PATIENCE = {"default.api.timeout.ms": "6000", "socket.connection.setup.timeout.ms": "3000"}


class MissingTopicError(LowwaterError):
    """A source names a topic that its cluster does not have."""


def reach_brokers(model: Model) -> None:
    """ClientError when a cluster cannot be reached, MissingTopicError for topics that are not there."""
    for source in model.sources:
        options = SourceOptions.parse(reading_options(model, source), streaming=True)
        named = {*source.topics, *source.partitions}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings without meaning; the source tells them
            with Admin(config={**options.client.settings, **PATIENCE}) as admin:
                missing = sorted(named.difference(admin.list_topics(internal=True)))
        if missing:
            raise MissingTopicError(
                f"source {source.name}: there is no topic {missing[0]!r}; lowwater topics create {missing[0]} makes it"
            )
