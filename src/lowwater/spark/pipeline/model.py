"""A pipeline as values: what is read, what is made of it, where it goes. Frozen; `repr` shows no secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias

from lowwater.spark.pipeline.secrets import Secrets
from lowwater.types import TopicPartition

OutputMode: TypeAlias = Literal["append", "update", "complete"]
OUTPUT_MODES: tuple[OutputMode, ...] = ("append", "update", "complete")
RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
FILE_FORMATS = ("parquet", "orc", "json", "csv")
FORMATS = (*FILE_FORMATS, "delta", "topic", "console", "noop")

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

START_DEFAULT = "stored|earliest"
MASTER_DEFAULT = "local[*]"
STOP_WITHIN_DEFAULT_MS = 120_000


def is_address(path: str) -> bool:
    """Whether a path names the file system that it is in: s3a://bucket/x, file:/x."""
    return _ADDRESS.match(path) is not None


@dataclass(frozen=True, slots=True)
class Watermark:
    """Rows that are older than the latest of `column` by more than `delay_ms` may be dropped by Spark."""

    column: str
    delay_ms: int


@dataclass(frozen=True, slots=True)
class BadRows:
    """What becomes of rows that cannot be decoded."""

    action: Literal["fail", "drop", "dead_letter"] = "fail"
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Topics, of which exactly one of `topics`, `pattern` and `partitions` tells."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    start: str = START_DEFAULT
    group: str = ""
    columns: tuple[str, ...] = ()
    decode: Mapping[str, str] | None = field(default=None, repr=False)
    watermark: Watermark | None = None
    bad_rows: BadRows = BadRows()
    skips_losses: bool = False
    limit: int | None = None
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def keeps_errors(self) -> bool:
        """Whether rows that cannot be decoded go on with their reason, to be dropped or kept elsewhere."""
        return self.bad_rows.action != "fail"

    def reads(self, one: str | TopicPartition) -> bool:
        """Whether a topic, or a partition, may be one of this source's; of a topic it may be some partitions."""
        topic = one if isinstance(one, str) else one.topic
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        if topic in self.topics:
            return True
        return topic in self.partitions if isinstance(one, str) else one.partition in self.partitions.get(topic, ())

    @property
    def described(self) -> str:
        """What is read, in a few words."""
        if self.pattern is not None:
            return f"topics like {self.pattern}"
        if self.partitions:
            return ", ".join(f"{topic}{list(numbers)}" for topic, numbers in self.partitions.items())
        return ", ".join(self.topics)


@dataclass(frozen=True, slots=True)
class SqlStep:
    """A query over sources and earlier steps, by their names."""

    name: str
    sql: str = field(repr=False)
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True)
class PythonStep:
    """`function(*inputs, **arguments)` gives a DataFrame. From a file it is named as module:function."""

    name: str
    function: str | Callable[..., Any]
    inputs: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    watermark: Watermark | None = None


Step: TypeAlias = SqlStep | PythonStep


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a source or a step goes; one query of its own."""

    name: str
    source: str
    format: str
    path: str | None = None
    topic: str | None = None
    key: str | None = None
    encode: Literal["json"] | None = None
    exactly_once: bool = False
    sink_id: str | None = None
    mode: OutputMode = "append"
    partition_by: tuple[str, ...] = ()
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Model:
    """The whole. `interval_ms` is None for available-now; `folder` is where relative names begin.

    `cut_ms`: the span of event time of a micro-batch; `idle_ms`: how long a partition without rows holds it; `aligns`:
    sources of one query are cut at the same moments.
    """

    name: str
    checkpoint: str
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    steps: tuple[Step, ...] = ()
    interval_ms: int | None = None
    stop_within_ms: int = STOP_WITHIN_DEFAULT_MS
    cut_ms: int | None = None
    idle_ms: int | None = None
    aligns: bool = True
    master: str = MASTER_DEFAULT
    remote: str | None = field(default=None, repr=False)
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = "."
    secrets: Secrets = field(default_factory=Secrets, compare=False)

    def source(self, name: str) -> Source | None:
        return next((source for source in self.sources if source.name == name), None)

    def location(self, path: str) -> str:
        """Relative names begin beside the file, as long as everything runs on this machine; addresses stay."""
        if is_address(path) or path.startswith("/") or not self.is_local:
            return path
        return str(PurePosixPath(self.folder) / path)

    @property
    def is_local(self) -> bool:
        """Whether driver and workers are on this machine, so that plain paths mean the same to all of them."""
        return self.remote is None and self.master.startswith("local") and not self.master.startswith("local-cluster")

    @property
    def names(self) -> tuple[str, ...]:
        """Of everything that a step or a sink can read."""
        return (*(source.name for source in self.sources), *(step.name for step in self.steps))
