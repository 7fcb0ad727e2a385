"""What a pipeline's sources and topic sinks say, as options of `format("lowwater")`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lowwater.spark.pipeline.model import Model, Sink, Source

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


def reading_options(
    model: Model, source: Source, *, commits: bool = True, query: Sequence[Source] = ()
) -> dict[str, str]:
    """What the user gave under `options` wins over all others. `query`: all sources of the query it is read in."""
    options = _kafka(model.kafka, source.kafka)
    options |= _what_is_read(source)
    options |= {"start": source.start, "group": source.group, "commitOffsets": str(commits).lower()}
    options["failOnDataLoss"] = str(not source.skips_losses).lower()
    if source.limit is not None:
        options["maxOffsetsPerTrigger"] = str(source.limit)
    if "headers" in source.columns:
        options["includeHeaders"] = "true"
    if model.cut_ms is not None and query:
        options |= _cutting(model, source, query)
    return options | _decoding(model, source) | dict(source.options)


def _cutting(model: Model, source: Source, query: Sequence[Source]) -> dict[str, str]:
    """Aligned sources choose the same moments only by the same limit, which counts the rows of all of them."""
    options = {"cut": f"{model.cut_ms}ms"}
    own = set(_topics(source))
    others = sorted({topic for each in query if each.name != source.name for topic in _topics(each)} - own)
    if not model.aligns or not others:
        return options
    limits = [each.limit for each in query if each.limit is not None]
    if limits:
        options["maxOffsetsPerTrigger"] = str(sum(limits))
    return {**options, "alignWith": ",".join(others)}


def _topics(source: Source) -> Sequence[str]:
    return source.topics or tuple(source.partitions)


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
    """Dead letters are written where their records came from."""
    return _kafka(model.kafka, source.kafka) | {"topic": source.bad_rows.topic or ""}


def client_settings(model: Model, source: Source) -> dict[str, str]:
    return {**model.kafka, **source.kafka}


def _kafka(*settings: Mapping[str, str]) -> dict[str, str]:
    return {f"kafka.{name}": value for each in settings for name, value in each.items()}


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
