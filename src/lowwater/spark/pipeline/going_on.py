"""Where the next run goes on after a reset that moves no groups: a source that starts from `stored` begins there.

Output that was deleted would then not be written again: that has to be wished for in so many words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lowwater.errors import ConfigError
from lowwater.spark.pipeline.model import Model, Source
from lowwater.spark.pipeline.queries import queries
from lowwater.spark.pipeline.resetting import Plan
from lowwater.spark.pipeline.status import admin_of
from lowwater.types import TopicPartition


@dataclass(frozen=True, slots=True)
class StoredStart:
    """A source that begins where its group is: `at`, in partitions of which some were read. `left` is behind those."""

    source: Source
    at: Mapping[TopicPartition, int]
    left: int


def stored_starts(model: Model, planned: Plan) -> tuple[StoredStart, ...]:
    """Of the sources that a reset leaves where their group is. ClientError when their brokers do not say."""
    found = (_stored_start(model, source) for source in planned.from_stored)
    return tuple(each for each in found if each.at)


def _stored_start(model: Model, source: Source) -> StoredStart:
    with admin_of(model, source) as admin:
        committed = admin.group_offsets([source.group]).checked()[source.group]
        at = {one: each.offset for one, each in sorted(committed.items()) if each.offset > 0 and source.reads(one)}
        bounds = admin.bounds(at) if at else {}
    return StoredStart(source, at, sum(max(0, bounds[one].end - at[one]) for one in bounds))


def refuse_lost_output(model: Model, planned: Plan, starts: Iterable[StoredStart]) -> None:
    """ConfigError when files would go whose rows the next run would pass over."""
    going = {removal.output_of for removal in planned.removals}
    needed = {name for query in queries(model) if query.kind == "sink" and query.of in going for name in query.reads}
    lost = [each.source for each in starts if each.source.name in needed]
    if lost:
        named = ", ".join(f"{source.name} from the group {source.group}" for source in lost)
        what = (
            f"the next run would not write the deleted output again, since it reads {named}, which has offsets "
            "already: say --to earliest to have everything read again, or --to stored to go on where the group is"
        )
        raise ConfigError(model.secrets.masked(what))
