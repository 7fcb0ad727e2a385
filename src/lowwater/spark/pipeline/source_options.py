"""What a pipeline's sources and topic sinks say, as options of `format("lowwater")`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lowwater.spark.pipeline.model import Model, Sink, Source
from lowwater.spark.pipeline.together import are_cut_together, common_limit, common_start, other_topics, own_start

# Which key of a source an option comes from, so that what is wrong with it is told there.
KEY_OF_OPTION = {
    "subscribe": "topics",
    "subscribepattern": "pattern",
    "assign": "partitions",
    "start": "start",
    "group": "group",
    "failondataloss": "on_data_loss",
    "maxoffsetspertrigger": "limit",
    "includeheaders": "columns",
}
KAFKA = "kafka."
# What dead letters are read without: no watermark is behind them, and nobody waits for other partitions.
_CUTTING = ("cut", "idletimeout", "alignwith")


def reading_options(
    model: Model, source: Source, *, commits: bool = True, query: Sequence[Source] = ()
) -> dict[str, str]:
    """What the user gave under `options` wins over all others.

    `query`: all sources of the query it is read in, where it is not read alone.
    """
    options = _kafka(model.kafka, source.kafka)
    options |= _what_is_read(source)
    options |= {"start": source.start, "group": source.group, "commitOffsets": str(commits).lower()}
    options["failOnDataLoss"] = str(not source.skips_losses).lower()
    if source.limit is not None:
        options["maxOffsetsPerTrigger"] = str(source.limit)
    if "headers" in source.columns:
        options["includeHeaders"] = "true"
    if model.cut_ms is not None:
        options |= _cutting(model, source, query)
    return options | _decoding(model, source) | dict(source.options)


def _cutting(model: Model, source: Source, query: Sequence[Source]) -> dict[str, str]:
    options = {"cut": f"{model.cut_ms}ms"}
    if model.idle_ms is not None:
        options["idleTimeout"] = f"{model.idle_ms}ms"
    if not are_cut_together(model, query):
        return options
    options["start"] = common_start(source, query)
    if (limit := common_limit(source, query)) is not None:
        options["maxOffsetsPerTrigger"] = str(limit)
    if others := other_topics(source, query):
        options["alignWith"] = ",".join(others)
    return options


def dead_letter_reading(model: Model, source: Source) -> dict[str, str]:
    """Of a source, for the query that keeps its dead letters."""
    options = {**reading_options(model, source, commits=False), "includeHeaders": "true"}
    return {
        name: own_start(source, value) if name.lower() == "start" else value
        for name, value in options.items()
        if name.lower() not in _CUTTING
    }


def writing_options(model: Model, sink: Sink) -> dict[str, str]:
    options = _kafka(model.kafka, sink.kafka)
    if sink.topic is not None:
        options["topic"] = sink.topic
    if sink.exactly_once:
        options |= {"exactlyOnce": "true", "sinkId": sink_id(model, sink)}
    return options | dict(sink.options)


def sink_id(model: Model, sink: Sink) -> str:
    """Of a sink that writes once."""
    return sink.sink_id or f"{model.name}-{sink.name}"


def dead_letter_options(model: Model, source: Source) -> dict[str, str]:
    """Dead letters are written where their records came from, by the same login."""
    return _kafka(client_settings(model, source)) | {"topic": source.bad_rows.topic or ""}


def client_settings(model: Model, part: Source | Sink) -> dict[str, str]:
    """Of the table that all share, of the part's own, and of its options: the later ones win."""
    given = {name.lower(): value for name, value in part.options.items()}
    own = {name.removeprefix(KAFKA): value for name, value in given.items() if name.startswith(KAFKA)}
    return {**model.kafka, **part.kafka, **own}


def _kafka(*settings: Mapping[str, str]) -> dict[str, str]:
    return {f"{KAFKA}{name}": value for each in settings for name, value in each.items()}


def _what_is_read(source: Source) -> dict[str, str]:
    if source.pattern is not None:
        return {"subscribePattern": source.pattern}
    if source.partitions:
        return {"assign": json.dumps({topic: list(numbers) for topic, numbers in source.partitions.items()})}
    return {"subscribe": ",".join(source.topics)}


def _decoding(model: Model, source: Source) -> dict[str, str]:
    options = dict(source.decode or {})
    for name in ("decode.schemaFile", "decode.registry.ca"):
        if name in options:
            options[name] = model.location(options[name])
    if options and source.keeps_errors:
        options["decode.onBad"] = "null"
    return options
