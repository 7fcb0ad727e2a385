"""Which streaming queries a pipeline is: one for each sink, and one for the dead letters of each source with some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lowwater.spark.pipeline.model import Model, PythonStep, Sink, Source, Step
from lowwater.spark.pipeline.sql_names import tables_read

DEAD_LETTERS = "dead-letters"


@dataclass(frozen=True, slots=True)
class Query:
    """`label` is the sink, or dead-letters/<source>; `name` is what Spark calls it, the pipeline's name in front.

    `reads` are the sources in it; of those in `commits` it commits the group's offsets.
    """

    label: str
    kind: Literal["sink", "dead letters"]
    of: str
    name: str
    checkpoint: str
    reads: tuple[str, ...]
    commits: frozenset[str] = frozenset()


def queries(model: Model) -> tuple[Query, ...]:
    """In the order in which they are started.

    A source that several queries read has its offsets committed by the last of them: a query that starts from the
    group must do so before another one moves the group on.
    """
    planned = [_dead_letters(model, source) for source in _with_dead_letters(model)]
    planned += [_of_sink(model, sink) for sink in model.sinks]
    last = {source: query.name for query in planned if query.kind == "sink" for source in query.reads}
    return tuple(
        replace(query, commits=frozenset(source for source in query.reads if last.get(source) == query.name))
        for query in planned
    )


def checkpoints(model: Model) -> dict[str, str]:
    """The folder of each query's checkpoint by its label, also of a model whose steps cannot be understood."""
    labels = [_label(source) for source in _with_dead_letters(model)] + [sink.name for sink in model.sinks]
    return {label: _folder(model, label) for label in labels}


def needed(model: Model, name: str) -> tuple[tuple[Source, ...], tuple[Step, ...]]:
    """What has to be there before `name` is: sources and steps, in the order of the file, `name` itself included."""
    wanted = {name.lower()}
    for step in reversed(model.steps):
        if step.name.lower() in wanted:
            wanted.update(each.lower() for each in inputs_of(step))
    sources = tuple(source for source in model.sources if source.name.lower() in wanted)
    return sources, tuple(step for step in model.steps if step.name.lower() in wanted)


def inputs_of(step: Step) -> Iterable[str]:
    """The names that a step reads; those of a catalog are not ours."""
    if isinstance(step, PythonStep):
        return step.inputs
    return [table.parts[0] for table in tables_read(step.sql) if len(table.parts) == 1]


def _of_sink(model: Model, sink: Sink) -> Query:
    sources, _ = needed(model, sink.source)
    return Query(
        label=sink.name,
        kind="sink",
        of=sink.name,
        name=f"{model.name}.{sink.name}",
        checkpoint=_folder(model, sink.name),
        reads=tuple(source.name for source in sources),
    )


def _dead_letters(model: Model, source: Source) -> Query:
    label = _label(source)
    return Query(
        label=label,
        kind="dead letters",
        of=source.name,
        name=f"{model.name}.{DEAD_LETTERS}.{source.name}",
        checkpoint=_folder(model, label),
        reads=(source.name,),
    )


def _with_dead_letters(model: Model) -> list[Source]:
    return [source for source in model.sources if source.bad_rows.action == "dead_letter"]


def _label(source: Source) -> str:
    return f"{DEAD_LETTERS}/{source.name}"


def _folder(model: Model, name: str) -> str:
    return f"{model.location(model.checkpoint).rstrip('/')}/{name}"
