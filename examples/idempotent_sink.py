"""A sink to which a record may come twice: its key is (topic, partition, offset), and the second time changes nothing.

The group's committed offsets say where to go on. They are committed after the rows are stored, so a crash in between
brings some rows again, and never leaves one out. Any DB-API connection to a database with ON CONFLICT will do.

    python -m examples.idempotent_sink
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pyarrow as pa

import lowwater
from examples.day_of_orders import TOPIC, broker_with_orders

GROUP = "warehouse"
TABLE = """
    CREATE TABLE IF NOT EXISTS orders (
        topic TEXT, "partition" INTEGER, "offset" BIGINT, customer TEXT, amount BIGINT NOT NULL,
        PRIMARY KEY (topic, "partition", "offset")
    )
"""
STORE = "INSERT INTO orders VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"


class Sink:
    """`mark` stands for a value in SQL: ? in sqlite3, %s in psycopg."""

    def __init__(self, connection: Any, mark: str = "?") -> None:
        self._connection = connection
        self._store = STORE.replace("?", mark)
        self._connection.cursor().execute(TABLE)
        self._connection.commit()

    def take(self, batch: pa.RecordBatch) -> None:
        self._connection.cursor().executemany(self._store, rows_of(batch))
        self._connection.commit()


def rows_of(batch: pa.RecordBatch) -> list[tuple[str, int, int, str, int]]:
    names = ("topic", "partition", "offset", "key", "value")
    columns = (batch.column(name).to_pylist() for name in names)
    return [
        (topic, partition, offset, key.decode(), json.loads(value)["amount"])
        for topic, partition, offset, key, value in zip(*columns, strict=True)
    ]


def copy(sink: Sink, bootstrap: str, *, batch_size: int = 500) -> None:
    """What the group has not read yet. A batch is committed when the next one is asked for, or at the end."""
    with lowwater.read(TOPIC, bootstrap=bootstrap, group=GROUP, stop="latest", batch_size=batch_size) as reader:
        for batch in reader:
            sink.take(batch)


class FailingSink(Sink):
    """Stores one batch, and fails before anybody hears of it."""

    def take(self, batch: pa.RecordBatch) -> None:
        super().take(batch)
        raise ConnectionError("the power went")


def main() -> None:
    database = sqlite3.connect(":memory:")
    with broker_with_orders(count=2_400) as bootstrap:
        try:
            copy(FailingSink(database), bootstrap)
        except ConnectionError as error:
            stored = database.execute("SELECT count(*) FROM orders").fetchone()[0]
            print(f"{error}: {stored} orders are stored, none of them is committed")
        copy(Sink(database), bootstrap)
    count, different = database.execute("SELECT count(*), count(DISTINCT amount) FROM orders").fetchone()
    print(f"{count} orders are stored, each once")
    assert (count, different) == (2_400, 97)


if __name__ == "__main__":
    main()
