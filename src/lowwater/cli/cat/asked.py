"""What a command line asks for, read and checked before anything is connected."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

import click

from lowwater.cli.cat.escapes import EscapeError, delimiter
from lowwater.cli.cat.layout import NULL, Field, Layout, LayoutError, Unpack, parse_layout, plain_layout
from lowwater.cli.cat.unpacking import packing_problem, unpacker
from lowwater.errors import ConfigError
from lowwater.positions.grammar import PositionError, parse_start, parse_starts, parse_stop
from lowwater.positions.names import check_names
from lowwater.positions.position import AtTime, StartPosition, StartPositions
from lowwater.types import TopicPartition

Order: TypeAlias = Literal["timestamp", "partition"] | None
NO_AVRO = "Avro and schema registries are not spoken here"


class Mode(Enum):
    CONSUME = "C"
    PRODUCE = "P"
    GROUP = "G"
    LIST = "L"
    QUERY = "Q"


class Question(NamedTuple):
    """-Q: the first offset at or behind a moment; `when` is a number as kcat has it, or a start position."""

    partition: TopicPartition
    when: int | StartPosition


@dataclass(frozen=True, slots=True)
class Where:
    """What is read: -o, with its stop; -p; -e; -c."""

    starts: StartPositions | None = None
    stop_ms: int | None = None
    partition: int | None = None
    exits_at_end: bool = False
    count: int | None = None
    order: Order = None

    def start_of(self, one: TopicPartition) -> StartPosition | None:
        return None if self.starts is None else self.starts.of(one)

    def partitions_named(self, topic: str) -> list[int]:
        """By -p, and by -o with a start of their own."""
        starts = [] if self.starts is None else [one.partition for one in self.starts.partitions if one.topic == topic]
        return starts if self.partition is None else [self.partition, *starts]


@dataclass(frozen=True, slots=True)
class Looks:
    """How records are printed. `delimiter` is what stands behind each with -J."""

    layout: Layout
    is_json: bool = False
    unpack: dict[Field, Unpack] = field(default_factory=dict)
    is_unbuffered: bool = False


@dataclass(frozen=True, slots=True)
class Sending:
    """How input becomes records."""

    delimiter: bytes = b"\n"
    key_delimiter: bytes | None = None
    fixed_key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    empty_is_null: bool = False
    is_teed: bool = False
    by_line: bool = False
    partition: int | None = None
    count: int | None = None


def where_of(options: dict[str, Any], topics: Sequence[str]) -> Where:
    zone = options["zone"]
    starts: StartPositions | None = None
    stop_ms: int | None = None
    for text in options["offsets"]:
        try:
            if text.strip().startswith("e@"):
                stop = parse_stop(text, zone)
                assert isinstance(stop, AtTime)
                stop_ms = stop.timestamp_ms
            else:
                starts = parse_starts(text, zone, "--zone")
                if not any(topic.startswith("^") for topic in topics):
                    check_names(starts, topics, repr(text))
        except ConfigError as error:
            raise click.UsageError(f"-o: {error}") from None
    return Where(
        starts, stop_ms, _partition(options), options["exits_at_end"], options["count"] or None, options["order"]
    )


def looks_of(options: dict[str, Any]) -> Looks:
    null = NULL if options["nulls"] else b""
    try:
        if options["layout"] is not None:
            layout = parse_layout(os.fsencode(options["layout"]), null)
        elif options["json"]:
            layout = parse_layout(_delimiter(options["delimiter"]), null)
        else:
            key_delimiter = _delimiter(options["key_delimiter"]) if options["key_delimiter"] is not None else None
            line_end = _delimiter(options["delimiter"])
            layout = plain_layout(key_delimiter, line_end, offsets=options["prints_offsets"], null=null)
    except LayoutError as error:
        raise click.UsageError(str(error)) from None
    return Looks(layout, options["json"], _unpacking(options["packings"]), options["is_unbuffered"])


def sending_of(options: dict[str, Any]) -> Sending:
    line_end = _delimiter(options["delimiter"])
    if not line_end:
        raise click.UsageError("Message delimiter -D must not be empty when producing")
    if options["packings"]:
        raise click.UsageError("-s serdes only available in the consumer")
    return Sending(
        delimiter=line_end,
        key_delimiter=_delimiter(options["key_delimiter"]) if options["key_delimiter"] else None,
        fixed_key=os.fsencode(options["fixed_key"]) if options["fixed_key"] is not None else None,
        headers=tuple(map(_header, options["headers"])),
        empty_is_null=options["nulls"],
        is_teed=options["is_teed"],
        by_line=options["by_line"],
        partition=_partition(options),
        count=options["count"] or None,
    )


def questions_of(texts: Sequence[str], zone: tzinfo | None) -> list[Question]:
    if not texts:
        raise click.UsageError("-t <topic>:<partition>:<offset_or_timestamp> missing")
    return [_question(text, zone) for text in texts]


def _question(text: str, zone: tzinfo | None) -> Question:
    topic, _, rest = text.partition(":")
    number, _, when = rest.partition(":")
    if not topic or not re.fullmatch("[0-9]{1,10}", number, re.ASCII) or not when:
        raise click.UsageError('-t: expected "topic:partition:offset_or_timestamp"')
    partition = TopicPartition(topic, int(number))
    if re.fullmatch("-?[0-9]{1,18}", when, re.ASCII):
        return Question(partition, int(when))
    if re.fullmatch("-?[0-9]+", when, re.ASCII):
        raise click.UsageError(f"-t: {when} is no time in milliseconds")
    try:
        return Question(partition, parse_start(when, zone, "--zone"))
    except PositionError as error:
        raise click.UsageError(f"-t {text}: {error}") from None


def _partition(options: dict[str, Any]) -> int | None:
    """-1 is any, as without -p."""
    partition: int | None = options["partition"]
    return None if partition == -1 else partition


def _delimiter(text: str) -> bytes:
    try:
        return delimiter(os.fsencode(text))
    except EscapeError as error:
        raise click.UsageError(str(error)) from None


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not name:
        raise click.UsageError('Expected -H "name=value.." or -H "name"')
    return name, os.fsencode(value) if equals else None


def _unpacking(packings: Sequence[str]) -> dict[Field, Unpack]:
    unpack: dict[Field, Unpack] = {}
    for text in packings:
        name, equals, letters = text.partition("=")
        if not equals or name not in ("key", "value"):
            name, letters = "", text
        if letters == "avro":
            raise click.UsageError(NO_AVRO)
        for what, one in (("key", Field.KEY), ("value", Field.VALUE)):
            if name in ("", what):
                if (problem := packing_problem(what, letters)) is not None:
                    raise click.UsageError(problem)
                unpack[one] = unpacker(what, letters)
    return unpack
