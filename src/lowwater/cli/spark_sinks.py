"""`lowwater spark sinks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.output import Column, Output, Row, output_options
from lowwater.cli.printing import number, tell

if TYPE_CHECKING:
    from lowwater.spark.exactly_once.state import SinkState

COLUMNS = (
    Column("sink", "SINK"),
    Column("name", "OF"),
    Column("batch", "BATCH", number, is_number=True),
    Column("state", "STATE"),
    Column("transactions", "TRANSACTIONS", number, is_number=True),
)


@click.command("sinks")
@click.option("--settle", metavar="SINK", help="Take what this sink was about to commit for done.")
@click.option("--ledger", metavar="TOPIC", help="The ledger, where the option sinkLedger named another.")
@output_options
@connection_options
def command(settle: str | None, ledger: str | None, output: Output, connection: Connection) -> None:
    """Show the last batch that each query has committed through a sink with exactlyOnce.

    OF is the query, by the id that its checkpoint has, or the run of a batch write. STATE is done, or pending: the
    batch is committed, but its transactions are not all ended; the query does that when it is started again. Where it
    says that it cannot, since some of them are over by their timeout, rows are missing. Write those by other means,
    then --settle the sink: what can still be committed is, and the query goes on with the next batch. Not while the
    query runs: it would be stopped by this.
    """
    from lowwater.spark.exactly_once import protocol
    from lowwater.spark.exactly_once.brokers import ClusterBrokers
    from lowwater.spark.exactly_once.ledger import NAME, Ledger

    topic = ledger or NAME
    with connection.open() as connected:
        known = connected.run(Ledger(connected.cluster, topic, "").read_all())
        if settle is not None:
            if settle not in known:
                raise click.ClickException(f"there is no sink {settle!r} in {topic}")
            brokers = ClusterBrokers(connected.cluster, connected.driver, settle, topic)
            _tell_settled(settle, protocol.settle(settle, brokers))
            return
    rows = [row for sink, state in sorted(known.items()) for row in _rows(sink, state)]
    output.rows(COLUMNS, rows)
    if not rows:
        tell("no sink has committed anything")


def _rows(sink: str, state: SinkState) -> Iterator[Row]:
    for name, batch in state.done.items():
        yield {"sink": sink, "name": name, "batch": batch, "state": "done", "transactions": None}
    if (intent := state.intent) is not None:
        count = len(intent.transactions)
        yield {"sink": sink, "name": intent.name, "batch": intent.batch, "state": "pending", "transactions": count}


def _tell_settled(sink: str, before: SinkState) -> None:
    if before.intent is None:
        tell(f"sink {sink} has nothing to settle")
    else:
        tell(f"batch {before.intent.batch} of {before.intent.name} counts as done")
