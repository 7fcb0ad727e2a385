"""--order: records of all partitions in the order of time, through the ordered reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.pouring import Output
from lowwater.cli.cat.talk import CatError, Talk
from lowwater.cli.connecting import Connection
from lowwater.client.loading import load
from lowwater.client.reader import Reader
from lowwater.types import TopicPartition

COLUMNS = "lowwater.cli.cat.columns"


def consume_in_order(
    connection: Connection,
    defaults: Mapping[str, str],
    topics: Sequence[str],
    where: Where,
    looks: Looks,
    talk: Talk,
) -> None:
    if looks.unpack:
        raise CatError("-s does not go together with --order")
    settings = connection.client_settings(defaults)
    group = settings.pop("group.id", None)
    with connection.open(defaults) as connected:
        connected.run(connected.cluster.topics(topics))
        leader = connected.cluster.leader
        printer = load(COLUMNS).BatchPrinter(looks, lambda topic, number: leader(TopicPartition(topic, number)))
        with Reader(
            list(topics) if where.partition is None else [f"{topic}[{where.partition}]" for topic in topics],
            start=None if where.starts is None else str(where.starts),
            stop=_stop(where),
            order=where.order,
            # A group is for where it left off, and for nothing else: -o beginning is the beginning.
            group=group if where.starts is not None and where.starts.needs_group else None,
            join=False,
            config=settings,
        ) as reader:
            _print(reader, printer, where.count, talk)


def _print(reader: Reader, printer: Any, count: int | None, talk: Talk) -> None:
    output, left, told = Output(), count, 0
    for batch in reader:
        taken = batch if left is None else batch.slice(0, left)
        if taken.num_rows:
            output.write(printer.text(taken))
            output.flush()
        for lost in reader.lost[told:]:
            talk.say(
                f"{lost.topic} [{lost.partition}]: offsets {lost.first} to {lost.behind - 1} are gone, or left out"
            )
            told += 1
        if left is not None:
            left -= taken.num_rows
            if left <= 0:
                return


def _stop(where: Where) -> str | None:
    if where.stop_ms is not None:
        return f"e@{where.stop_ms}"
    return "latest" if where.exits_at_end else None
