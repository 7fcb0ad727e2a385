"""`lowwater spark losses`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.output import Column, Output, Row, output_options
from lowwater.cli.pipeline_progress import moment
from lowwater.cli.printing import number, tell

if TYPE_CHECKING:
    from lowwater.spark.loss_records import Loss

COLUMNS = (
    Column("found_ms", "FOUND", moment),
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", number, is_number=True),
    Column("first", "FROM", number, is_number=True),
    Column("behind", "UP TO", number, is_number=True),
    Column("count", "OFFSETS", number, is_number=True),
    Column("why", "WHY"),
    Column("group", "GROUP"),
    Column("lineage", "LINEAGE"),
    Column("query", "QUERY"),
)


@click.command("losses")
@click.option("--topic", "topics", metavar="TOPIC", multiple=True, help="Only of this topic. Repeatable.")
@click.option("--query", metavar="ID", help="Only of the query with this id, lineage or group.")
@click.option("--ledger", metavar="TOPIC", help="The ledger, where the option lossLedger named another.")
@output_options
@connection_options
def command(
    topics: tuple[str, ...], query: str | None, ledger: str | None, output: Output, connection: Connection
) -> None:
    """Show what queries with failOnDataLoss=false went on without.

    Each row is a range of offsets that a query was to read, and that were gone before: from FROM, and not including
    UP TO. Offsets are an upper bound of rows: compaction and transactions leave gaps, which are no losses. LINEAGE
    stands in the offsets of the query's checkpoint, QUERY is the id that Spark shows.
    """
    from lowwater.spark.ledger import LEDGER, losses

    with connection.open():  # says what is wrong when no broker is there
        found = losses(config=connection.client_settings(), ledger=ledger or LEDGER)
    chosen = [loss for loss in found if _is_wanted(loss, topics, query)]
    output.rows(COLUMNS, [_row(loss) for loss in chosen])
    if not chosen:
        tell("nothing is known to be lost")


def _is_wanted(loss: Loss, topics: tuple[str, ...], query: str | None) -> bool:
    is_of_query = query is None or query in (loss.query, loss.lineage, loss.group)
    return is_of_query and (not topics or loss.topic in topics)


def _row(loss: Loss) -> Row:
    return {**asdict(loss), "count": loss.count}
