"""--order: records of all partitions in the order of time, through the ordered reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.pouring import Output
from lowwater.cli.cat.talk import CatError
from lowwater.cli.connecting import Connection
from lowwater.client.loading import load
from lowwater.client.reader import Reader
from lowwater.types import TopicPartition

COLUMNS = "lowwater.cli.cat.columns"


def consume_in_order(
    connection: Connection, defaults: Mapping[str, str], topics: Sequence[str], where: Where, looks: Looks
) -> None:
    if looks.unpack:
        raise CatError("-s does not go together with --order")
    settings = connection.client_settings(defaults)
    names = topics if where.partition is None else [f"{topic}[{where.partition}]" for topic in topics]
    start = None if where.starts is None else str(where.starts)
    with connection.open(defaults) as connected:
        connected.run(connected.cluster.topics(topics))
        leader = connected.cluster.leader
        group = connected.config.maybe_str("group.id")
        printer = load(COLUMNS).BatchPrinter(looks, lambda topic, number: leader(TopicPartition(topic, number)))
        output, left = Output(), where.count
        with Reader(
            list(names), start=start, stop=_stop(where), order=where.order, group=group, join=False, config=settings
        ) as reader:
            for batch in reader:
                taken = batch if left is None else batch.slice(0, left)
                if taken.num_rows:
                    output.write(printer.text(taken))
                    output.flush()
                if left is not None and (left := left - taken.num_rows) <= 0:
                    return


def _stop(where: Where) -> str | None:
    if where.stop_ms is not None:
        return f"e@{where.stop_ms}"
    return "latest" if where.exits_at_end else None
