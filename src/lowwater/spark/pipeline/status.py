"""How far the queries of a pipeline have got: by their checkpoints, by the brokers, and by the groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field

from lowwater.client.admin.blocking import Admin
from lowwater.client.errors import ClientError
from lowwater.spark.checkpoint import Checkpoint, CheckpointError, read_checkpoint
from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import Model, Source
from lowwater.spark.pipeline.preflight import PATIENCE
from lowwater.spark.pipeline.queries import Query, queries
from lowwater.spark.pipeline.source_options import client_settings, reading_options
from lowwater.spark.progress import Behind
from lowwater.types import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """A partition of a query. `at` is the next offset to read; None: not known."""

    query: str
    one: TopicPartition
    at: int
    end: int | None = None
    committed: int | None = None

    @property
    def behind(self) -> int | None:
        return None if self.end is None else max(0, self.end - self.at)


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """`problem` says why the checkpoint could not be looked into; it is then an empty one."""

    query: Query
    checkpoint: Checkpoint
    partitions: tuple[PartitionStatus, ...] = ()
    problem: str | None = None

    @property
    def behind(self) -> Behind | None:
        """None while nothing was read, and when the brokers could not be asked."""
        ends = {each.one: each.end for each in self.partitions if each.end is not None}
        if not self.partitions or len(ends) < len(self.partitions):
            return None
        return Behind.of({each.one: each.at for each in self.partitions}, ends)


@dataclass(frozen=True, slots=True)
class Status:
    """`problems` are those of asking brokers."""

    queries: tuple[QueryStatus, ...]
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Asked:
    """What brokers say of the partitions of a pipeline, by source. One that did not answer is not asked again."""

    ends: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    committed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def status(model: Model) -> Status:
    """Spark is not started. Where no broker answers, the rest is there all the same."""
    checkpoints = {query.label: _checkpoint(model, query) for query in queries(model)}
    asked = Asked()
    for source in model.sources:
        known = {
            one
            for query in queries(model)
            if source.name in query.reads
            for one in checkpoints[query.label][0].at
            if source.reads(one)
        }
        _ask(model, source, known, asked)
    found = [_status(model, query, *checkpoints[query.label], asked) for query in queries(model)]
    return Status(tuple(found), tuple(asked.problems.values()))


def _checkpoint(model: Model, query: Query) -> tuple[Checkpoint, str | None]:
    try:
        return read_checkpoint(query.checkpoint), None
    except CheckpointError as error:
        return Checkpoint(), model.secrets.masked(str(error))


def _ask(model: Model, source: Source, partitions: Iterable[TopicPartition], asked: Asked) -> None:
    wanted, bootstrap = sorted(partitions), client_settings(model, source).get("bootstrap.servers", "")
    if not wanted or bootstrap in asked.problems:
        return
    try:
        with admin_of(model, source) as admin:
            asked.ends[source.name] = {one: found.end for one, found in admin.bounds(wanted).items()}
            if source.group:
                committed = admin.group_offsets([source.group]).checked()[source.group]
                asked.committed[source.name] = {one: each.offset for one, each in committed.items()}
    except ClientError as error:
        asked.problems[bootstrap] = model.secrets.masked(str(error))


def admin_of(model: Model, source: Source) -> Admin:
    """By the settings of a source, but without much patience."""
    options = SourceOptions.parse(reading_options(model, source), streaming=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of settings without meaning; the source tells them
        return Admin(config={**options.client.settings, **PATIENCE})


def _status(model: Model, query: Query, checkpoint: Checkpoint, problem: str | None, asked: Asked) -> QueryStatus:
    partitions = []
    for one, at in sorted(checkpoint.at.items()):
        source = next((each.name for each in model.sources if each.name in query.reads and each.reads(one)), "")
        commits = asked.committed.get(source, {}) if source in query.commits else {}
        end = asked.ends.get(source, {}).get(one)
        partitions.append(PartitionStatus(query.label, one, at, end, commits.get(one)))
    return QueryStatus(query, checkpoint, tuple(partitions), problem)
