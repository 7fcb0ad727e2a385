"""Letting a pipeline begin anew: what has to go, and doing it.

A checkpoint must not go alone. Spark's file sink keeps a list of the micro-batches it has written beside the files,
and takes the first batches of a new checkpoint for ones that it knows: their rows would be missing without a word. So
either the output goes as well, or that list does.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lowwater.errors import ConfigError
from lowwater.positions.grammar import PositionError, parse_starts
from lowwater.positions.names import refuse_strangers
from lowwater.positions.position import StartPositions
from lowwater.spark.checkpoint import CheckpointError, local_folder
from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import FILE_FORMATS, Model, Sink, Source
from lowwater.spark.pipeline.queries import Query, queries
from lowwater.spark.pipeline.run_lock import alone
from lowwater.spark.pipeline.source_options import reading_options
from lowwater.spark.pipeline.status import admin_of
from lowwater.spark.pipeline.together import topics_of
from lowwater.types import TopicPartition

SINK_LOG = "_spark_metadata"
STORED = "stored"


class Output(Enum):
    """What becomes of files that were written."""

    DELETE = "delete"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Removal:
    """A folder that goes. `output_of`: the sink whose output it is, rather than what Spark notes of it."""

    folder: Path
    what: str
    output_of: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A group that is set to other offsets in the topics of a source."""

    source: Source
    to: str


@dataclass(frozen=True, slots=True)
class Plan:
    removals: tuple[Removal, ...]
    moves: tuple[Move, ...] = ()
    from_stored: tuple[Source, ...] = ()
    """Without moves a group stays where it is, and these sources begin there; none when that is what was wished."""

    @property
    def is_empty(self) -> bool:
        return not self.removals and not self.moves

    @property
    def deletes_output(self) -> bool:
        return any(removal.output_of is not None for removal in self.removals)


def plan(model: Model, *, sinks: Sequence[str] = (), output: Output | None = None, to: str | None = None) -> Plan:
    """What a reset would do; of all queries, or of those of some sinks.

    ConfigError when it cannot be done so: a sink that is not there, a position that is none, or files about which
    nothing was said. CheckpointError for folders that are not on this machine.
    """
    chosen = _chosen(model, sinks)
    from_stored = _from_stored(model, chosen) if to is None else ()
    removals = [*_checkpoints(model, chosen), *_outputs(model, chosen, output, from_stored)]
    there = tuple(each for each in removals if each.folder.exists())
    return Plan(there, tuple(_moves(model, chosen, to)), from_stored)


def reset(model: Model, planned: Plan) -> dict[TopicPartition, int]:
    """Does it; where groups stand now. Groups come first, and none before all are known: then nothing is gone yet.

    RunningError while the pipeline runs: it would go on from memory, and never write again what is deleted.
    """
    with alone(model):
        found = [(move, _offsets(model, move)) for move in planned.moves]
        for move, offsets in found:
            with admin_of(model, move.source) as admin:
                admin.alter_group_offsets(move.source.group, offsets).checked()
        for removal in planned.removals:
            shutil.rmtree(removal.folder)
        return {one: at for _, offsets in found for one, at in offsets.items()}


def _chosen(model: Model, sinks: Sequence[str]) -> tuple[Query, ...]:
    known = [sink.name for sink in model.sinks]
    for name in sinks:
        if name not in known:
            raise ConfigError(f"there is no sink {name!r}; there are {', '.join(known)}")
    return tuple(query for query in queries(model) if not sinks or (query.kind == "sink" and query.of in sinks))


def _checkpoints(model: Model, chosen: Iterable[Query]) -> list[Removal]:
    return [Removal(_local(model, query.checkpoint), f"the checkpoint of {query.label}") for query in chosen]


def _outputs(
    model: Model, chosen: Iterable[Query], output: Output | None, from_stored: Sequence[Source]
) -> list[Removal]:
    removals = []
    for sink in (sink for sink in model.sinks if any(query.of == sink.name for query in chosen)):
        folder = _files(model, sink)
        if folder is None or not folder.exists():
            continue
        if output is None:
            what = f"{sink.name} has written files to {folder}{_choice(from_stored)}"
            raise ConfigError(model.secrets.masked(what))
        if output is Output.DELETE:
            removals.append(Removal(folder, f"the output of {sink.name}", sink.name))
        else:
            removals.append(Removal(folder / SINK_LOG, f"the list of what {sink.name} has written"))
    return removals


def _choice(from_stored: Sequence[Source]) -> str:
    if from_stored:
        return (
            ", and a new run goes on where its groups are: say --keep-output, or --delete-output --to earliest "
            "to have all rows written anew"
        )
    return ", and a new run would write its rows once more: say --delete-output, or --keep-output to have them twice"


def _files(model: Model, sink: Sink) -> Path | None:
    """Delta has a log of its own, by the query's id; other tables and topics are not ours to delete."""
    return _local(model, model.location(sink.path)) if sink.format in FILE_FORMATS and sink.path is not None else None


def _local(model: Model, location: str) -> Path:
    folder = local_folder(location)
    if folder is None:
        what = f"{location} is not on this machine: it has to be deleted where it is"
        raise CheckpointError(model.secrets.masked(what))
    return folder


def _from_stored(model: Model, chosen: Iterable[Query]) -> tuple[Source, ...]:
    """Those whose start asks for what their group has committed."""

    def asks(source: Source) -> bool:
        return SourceOptions.parse(reading_options(model, source), streaming=True).start.positions.needs_group

    return tuple(filter(asks, _read_by(model, chosen)))


def _moves(model: Model, chosen: Iterable[Query], to: str | None) -> list[Move]:
    if to is None:
        return []
    sources = [source for source in _read_by(model, chosen) if source.group]
    starts = _checked(to, sources)
    return [] if str(starts) == STORED else [Move(source, to) for source in sources]


def _read_by(model: Model, chosen: Iterable[Query]) -> list[Source]:
    names = {name for query in chosen for name in query.reads}
    return [source for source in model.sources if source.name in names]


def _checked(to: str, sources: Sequence[Source]) -> StartPositions:
    """ConfigError as far as no broker is needed to see that it is none for these sources."""
    try:
        starts = parse_starts(to)
    except PositionError as error:
        raise ConfigError(str(error)) from None
    strangers = [one for one in starts.named if not any(source.reads(one) for source in sources)]
    if sources:
        refuse_strangers(strangers, [each for source in sources for each in _asked_for(source)], "the position")
    said = {one if isinstance(one, str) else one.topic for one in starts.named}
    for topic in (topic for source in sources for topic in topics_of(source)):
        if starts.default is None and topic not in said:
            raise ConfigError(f"{to!r} does not say where to start in {topic!r}")
    return starts


def _asked_for(source: Source) -> Sequence[str]:
    return topics_of(source) if source.pattern is None else (source.pattern,)


def _offsets(model: Model, move: Move) -> dict[TopicPartition, int]:
    """Where its group would stand. What the position says of other sources is not for this one."""
    source = move.source
    with admin_of(model, source) as admin:
        topics = topics_of(source)
        if source.pattern is not None:
            topics = [topic for topic in admin.list_topics() if source.reads(topic)]
        offsets = admin.offsets_at(parse_starts(move.to).only(source.reads), topics, group=source.group)
    return {one: at for one, at in offsets.items() if source.reads(one)}
