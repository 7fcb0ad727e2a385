"""--order: records of all partitions in the order of time, through the ordered reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.consuming import chosen_starts
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
    # A group is for where it left off, and for nothing else: a reader that knows of none commits nothing.
    settings.pop("group.id", None)
    with connection.open(defaults) as connected:
        resolved = connected.run(chosen_starts(connected.cluster, topics, where))
        leader = connected.cluster.leader
        printer = load(COLUMNS).BatchPrinter(looks, lambda topic, number: leader(TopicPartition(topic, number)))
        with Reader(
            list(topics) if where.partition is None else [f"{topic}[{where.partition}]" for topic in topics],
            start=dict(resolved.starts.items()),
            stop=_stop(where),
            order=where.order,
            config=settings,
        ) as reader:
            _print(reader, printer, where, talk)


def _stop(where: Where) -> str | None:
    if where.stop_ms is not None:
        return f"e@{where.stop_ms}"
    return "latest" if where.exits_at_end else None


def _print(reader: Reader, printer: Any, where: Where, talk: Talk) -> None:
    output, left = Output(), where.count
    news = _News(reader, where, talk)
    news.tell()
    while not reader.is_finished:
        batch = reader.poll()
        taken = batch if left is None else batch.slice(0, left)
        if taken.num_rows:
            output.write(printer.text(taken))
            output.flush()
        if left is not None:
            left -= taken.num_rows
            if left <= 0:
                return
        news.tell()


class _News:
    """What is told beside the records: where something is lost, and where partitions end."""

    def __init__(self, reader: Reader, where: Where, talk: Talk) -> None:
        self._reader = reader
        self._talk = talk
        self._exits_at_end = where.exits_at_end
        # With a time to stop at, a partition is read to its end although what is printed of it ends before.
        self._tells_ends = where.stop_ms is None and talk.verbosity > 0
        self._lost = 0
        self._told: dict[TopicPartition, int] = {}

    def tell(self) -> None:
        self._tell_losses()
        if self._tells_ends:
            self._tell_ends()

    def _tell_losses(self) -> None:
        for lost in self._reader.lost[self._lost :]:
            what = f"offsets {lost.first} to {lost.behind - 1} are gone, or left out"
            self._talk.say(f"{lost.topic} [{lost.partition}]: {what}")
            self._lost += 1

    def _tell_ends(self) -> None:
        ended = self._ended()
        news = [one for one in sorted(ended) if self._told.get(one) != ended[one]]
        for one in news:
            self._told[one] = ended[one]
            is_last = self._reader.is_finished and one == news[-1]
            exiting = ": exiting" if is_last else ""
            self._talk.say(f"Reached end of topic {one.topic} [{one.partition}] at offset {ended[one]}{exiting}")

    def _ended(self) -> dict[TopicPartition, int]:
        """Partitions that are printed up to their end: with -e that of the beginning, else the one they have now."""
        positions = self._reader.positions
        if self._exits_at_end:
            ends = self._reader.ends
            return {one: at for one, at in positions.items() if at >= ends[one]}
        lag = self._reader.lag
        return {one: at for one, at in positions.items() if lag.get(one) == 0}
