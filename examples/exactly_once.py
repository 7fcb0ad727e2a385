"""Exactly once with the sink's own transaction: rows and the offsets behind them are stored together, or not at all.

The sink is any DB-API connection to a database that knows ON CONFLICT and RETURNING, as SQLite and PostgreSQL do. What
customers spent is added up, so an order that were counted twice, or not at all, would show.

    python -m examples.exactly_once                             a broker and a database of its own
    python -m examples.exactly_once localhost:9092 sales.db     SQLite
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import lowwater
from examples.day_of_orders import TOPIC, broker_with_orders, totals
from lowwater import TopicPartition

Offsets = Mapping[TopicPartition, int]

TABLES = (
    "CREATE TABLE IF NOT EXISTS spent (customer TEXT PRIMARY KEY, amount BIGINT NOT NULL)",
    'CREATE TABLE IF NOT EXISTS read_up_to (topic TEXT, "partition" INTEGER, "offset" BIGINT NOT NULL,'
    ' PRIMARY KEY (topic, "partition"))',
)
STORED = 'SELECT topic, "partition", "offset" FROM read_up_to'
BEGIN = 'INSERT INTO read_up_to VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING "offset"'
GO_ON = 'UPDATE read_up_to SET "offset" = ? WHERE topic = ? AND "partition" = ? AND "offset" = ? RETURNING "offset"'
ADD = "INSERT INTO spent VALUES (?, ?) ON CONFLICT (customer) DO UPDATE SET amount = spent.amount + excluded.amount"


class OvertakenError(Exception):
    """Another process has stored what comes here: it reads the same partition."""


class Sink:
    """`mark` stands for a value in SQL: ? in sqlite3, %s in psycopg."""

    def __init__(self, connection: Any, mark: str = "?") -> None:
        self._connection = connection
        self._mark = mark
        for table in TABLES:
            self._do(table)
        self._connection.commit()

    def _do(self, sql: str, *values: object) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(sql.replace("?", self._mark), values)
        return cursor

    def stored(self) -> dict[TopicPartition, int]:
        """The next offset of each partition. Where nothing was stored yet, there is none."""
        found = {TopicPartition(topic, partition): offset for topic, partition, offset in self._do(STORED).fetchall()}
        self._connection.rollback()  # whoever only reads needs no transaction
        return found

    def take(self, batch: pa.RecordBatch, before: Offsets, behind: Offsets) -> None:
        """Store what the batch brings and where it ends, in one transaction."""
        try:
            for partition, offset in behind.items():
                self._move(partition, before.get(partition), offset)
            for customer, amount in sorted(amounts(batch).items()):
                self._do(ADD, customer, amount)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise

    def _move(self, partition: TopicPartition, before: int | None, behind: int) -> None:
        if before == behind:
            return
        is_new = before is None
        moved = self._do(BEGIN, *partition, behind) if is_new else self._do(GO_ON, behind, *partition, before)
        if moved.fetchone() is None:
            raise OvertakenError(f"{partition} is not at {before} any more")


def amounts(batch: pa.RecordBatch) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
        found[key.decode()] += json.loads(value)["amount"]
    return found


def copy(sink: Sink, bootstrap: str, *, batch_size: int = 500) -> None:
    """Bring the sink up to what the topic has now.

    `order="partition"` keeps each partition in its own order, so that one offset says what was read of it.
    """
    stored = sink.stored()
    with lowwater.read(
        TOPIC, bootstrap=bootstrap, start=stored, stop="latest", order="partition", batch_size=batch_size
    ) as reader:
        for batch in reader:
            behind = reader.positions
            sink.take(batch, stored, behind)
            stored = behind


def main() -> None:
    if len(sys.argv) == 3:
        bootstrap, path = sys.argv[1:]
        copy(Sink(sqlite3.connect(path)), bootstrap)
        return
    database = sqlite3.connect(":memory:")
    with broker_with_orders(count=2_400) as bootstrap:
        for _ in range(2):  # the second time there is nothing new
            copy(Sink(database), bootstrap)
    spent = dict(database.execute("SELECT customer, amount FROM spent ORDER BY customer").fetchall())
    print("\n".join(f"{customer}  {amount:>8,}" for customer, amount in spent.items()))
    assert spent == totals(2_400)


if __name__ == "__main__":
    main()
