"""-C: print the records of topics, up to their ends, a time or a count, or for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.listing import error_words, topics_meant
from lowwater.cli.cat.talk import CatError, Talk
from lowwater.cli.cat.tap import Tap
from lowwater.cli.connecting import Connection
from lowwater.client.coordinator import Coordinator
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.offsets import Resolved, resolve
from lowwater.positions.plan import UnresolvedError
from lowwater.positions.position import Choice, Earliest, Latest, StartPosition, Stored
from lowwater.types import TopicPartition

if TYPE_CHECKING:
    from lowwater.client.cluster import Cluster

EARLIEST = StartPosition((Earliest(),))
RESETS: dict[str, Choice] = {
    "earliest": Earliest(), "beginning": Earliest(), "smallest": Earliest(),
    "latest": Latest(), "end": Latest(), "largest": Latest(),
}  # fmt: skip
"""What auto.offset.reset says of where to go on."""


def consume(
    connection: Connection,
    defaults: Mapping[str, str],
    topics: Sequence[str],
    where: Where,
    looks: Looks,
    talk: Talk,
) -> None:
    with connection.open(defaults) as connected:
        resolved = connected.run(chosen_starts(connected.cluster, topics, where))
        fetcher = Fetcher(connected.cluster, tell_ends=True)
        tap = Tap(connected.cluster, fetcher, where, looks, talk)
        tap.begin(resolved)
        fetcher.add(resolved.starts)
        try:
            while not tap.is_done:
                connected.driver.wait(fetcher.fetched(), tap.patience_ms())
                tap.pour(fetcher.take())
                tap.settle()
        finally:
            fetcher.close()


async def chosen_starts(cluster: Cluster, topics: Sequence[str], where: Where) -> Resolved:
    """Where -o leads in what -t and -p choose."""
    partitions = await _chosen(cluster, list(dict.fromkeys(topics)), where)
    wishes = {one: where.start_of(one) or EARLIEST for one in partitions}
    return await resolve_starts(cluster, wishes, cluster.network.config.maybe_str("group.id"))


async def _chosen(cluster: Cluster, topics: Sequence[str], where: Where) -> list[TopicPartition]:
    """All partitions of the topics, or the one of -p."""
    problems = await cluster.retry.run(lambda left_ms: cluster.refresh(topics, left_ms))
    wanted = []
    for name in topics:
        if name in problems:
            what = f"Topic {name} error: {error_words(problems[name].code)}"
            raise CatError(what + await topics_meant(cluster, name, problems[name]))
        topic = cluster.known(name)
        numbers = list(topic.partitions) if topic is not None else []
        for partition in where.partitions_named(name):
            if partition not in numbers:
                raise CatError(
                    f"Topic {name} (with partitions 0..{len(numbers) - 1}): partition {partition} does not exist"
                )
        wanted += [TopicPartition(name, number) for number in numbers if where.partition in (None, number)]
    return wanted


async def resolve_starts(
    cluster: Cluster,
    wishes: Mapping[TopicPartition, StartPosition],
    group: str | None,
    *,
    now_ms: int | None = None,
    ends: bool = True,
) -> Resolved:
    """Where to start, and where the partitions end now; where nothing is committed, auto.offset.reset decides."""
    if group is None and any(wish.needs_group for wish in wishes.values()):
        raise CatError("a start at the committed offset needs a group: -X group.id=…")
    reset = RESETS.get(cluster.network.config.str("auto.offset.reset"))
    committed = None if group is None else Coordinator(cluster, group).committed
    complete = {one: _with_reset(wish, reset) for one, wish in wishes.items()}
    try:
        at_ms = cluster.network.driver.now_ms() if now_ms is None else now_ms
        return await resolve(cluster, complete, now_ms=at_ms, ends=ends, committed=committed)
    except UnresolvedError as error:
        raise CatError(str(error)) from None


def _with_reset(wish: StartPosition, reset: Choice | None) -> StartPosition:
    return wish.otherwise(reset) if reset is not None and isinstance(wish.choices[-1], Stored) else wish
