"""`lowwater topics offsets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import click

from lowwater.cli.connecting import Connected, Connection, connection_options
from lowwater.cli.output import Column, Output, Row, output_options
from lowwater.cli.printing import number, tell
from lowwater.cli.starting import parsed_starts, zone_option
from lowwater.cli.topics.completing import complete_topics

if TYPE_CHECKING:
    from lowwater.client.admin.offsets import Bounds
    from lowwater.positions.position import StartPositions
    from lowwater.types import TopicPartition

TOPIC = Column("topic", "TOPIC")
BOUNDS = (
    Column("partition", "PARTITION", str, is_number=True),
    Column("start", "START", number, is_number=True),
    Column("end", "END", number, is_number=True),
)
RECORDS = Column("records", "RECORDS", number, is_number=True)


@click.command("offsets")
@click.argument("topics", metavar="TOPIC…", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("-o", "--at", "positions", metavar="POSITION", multiple=True, help="A start position. Repeatable.")
@click.option("-g", "--group", metavar="GROUP", help="The group whose committed offsets `stored` means.")
@zone_option
@output_options
@connection_options
def command(
    topics: tuple[str, ...],
    positions: tuple[str, ...],
    group: str | None,
    zone: tzinfo | None,
    output: Output,
    connection: Connection,
) -> None:
    """Show where partitions start and end, and where a reader would start.

    \b
      lowwater topics offsets orders
      lowwater topics offsets orders --at -1h
      lowwater topics offsets orders --at @2026-11-01T00:00Z --at stored --group billing

    A POSITION is one of: earliest, latest, stored, 17 (an offset), -5 (before the end), -1h (ago), today,
    @2026-11-01T00:00Z (a moment), s@1793491200000 (in ms), with fallbacks stored|-1h|earliest, and topic by topic
    orders=stored,clicks=-1h.

    START is the first offset that is still there, END the one that the next record will have. TO READ is what lies
    between a position and the end, and RECORDS what lies between start and end: an upper bound, since compaction and
    transactions leave gaps.
    """
    wishes = {text: parsed_starts(text, zone) for text in positions}
    if group is None and any(wish.needs_group for wish in wishes.values()):
        raise click.UsageError("`stored` is the committed offset of a group: say which one with --group")
    with connection.open() as connected:
        names, unknown = _names(connected, topics)
        _print(_rows(connected, names, wishes, group), wishes, output, shows_topic=len(names) > 1)
    if unknown is not None:
        raise unknown


def _names(connected: Connected, topics: tuple[str, ...]) -> tuple[list[str], Exception | None]:
    from lowwater.cli.topics.choosing import chosen, not_there
    from lowwater.client.admin.topics import list_topics

    known = connected.run(list_topics(connected.cluster, internal=True))
    names, missing = chosen(topics, known, at_least_one=True)
    return names, not_there(missing, known) if missing else None


def _rows(connected: Connected, names: list[str], wishes: Mapping[str, StartPositions], group: str | None) -> list[Row]:
    from lowwater.client.admin.offsets import bounds, offsets_at
    from lowwater.types import TopicPartition

    topics = connected.run(connected.cluster.topics(names))
    partitions = [TopicPartition(name, each) for name in names for each in topics[name].partitions]
    outcomes = connected.run(bounds(connected.cluster, partitions))
    found = dict(outcomes)
    for error in outcomes.failed.values():
        tell(error)
    now_ms = connected.driver.now_ms()
    at = {
        text: connected.run(offsets_at(connected.cluster, wish, names, group=group, now_ms=now_ms))
        for text, wish in wishes.items()
    }
    return [_row(one, found.get(one), {text: each[one] for text, each in at.items()}) for one in partitions]


def _row(one: TopicPartition, bounds: Bounds | None, at: Mapping[str, int]) -> Row:
    row: dict[str, Any] = {
        "topic": one.topic,
        "partition": one.partition,
        "start": None if bounds is None else bounds.start,
        "end": None if bounds is None else bounds.end,
        "records": None if bounds is None else bounds.count,
    }
    for text, offset in at.items():
        row[f"at {text}"] = offset
        row[f"to read {text}"] = None if bounds is None else max(bounds.end - max(offset, bounds.start), 0)
    return row


def _print(rows: list[Row], wishes: Mapping[str, StartPositions], output: Output, *, shows_topic: bool) -> None:
    if output.is_json:
        output.document([_nested(row, wishes) for row in rows])
        return
    columns = [*([TOPIC] if shows_topic or output.is_csv else []), *BOUNDS]
    for text in wishes:
        columns.append(Column(f"at {text}", f"AT {text}", number, is_number=True, style=_out_of_range(text)))
        columns.append(Column(f"to read {text}", "TO READ", number, is_number=True))
    output.rows(columns if wishes and output.is_for_people else [*columns, RECORDS], rows)


def _out_of_range(text: str) -> Callable[[Row], str]:
    def style(row: Row) -> str:
        known = row["start"] is not None and row["end"] is not None
        return "red" if known and not row["start"] <= row[f"at {text}"] <= row["end"] else ""

    return style


def _nested(row: Row, wishes: Mapping[str, StartPositions]) -> Row:
    plain = {name: row[name] for name in ("topic", "partition", "start", "end", "records")}
    if not wishes:
        return plain
    return {
        **plain,
        "at": {text: row[f"at {text}"] for text in wishes},
        "to_read": {text: row[f"to read {text}"] for text in wishes},
    }
