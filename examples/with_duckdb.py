"""SQL over topics with DuckDB: `python -m examples.with_duckdb`.

DuckDB reads batch by batch, as it needs them: the topic does not have to fit into memory.
"""

from __future__ import annotations

import duckdb

import lowwater
from examples.day_of_orders import broker_with_orders, totals

SPENT = """
    SELECT decode(key) AS customer, sum(CAST(decode(value) ->> 'amount' AS INTEGER)) AS spent
    FROM orders GROUP BY customer ORDER BY customer
"""


def spent(bootstrap: str) -> list[tuple[str, int]]:
    with lowwater.read("orders", bootstrap=bootstrap, order=None) as reader:
        orders = duckdb.from_arrow(reader.to_reader())
        return orders.query("orders", SPENT).fetchall()


def main() -> None:
    with broker_with_orders(count=2_400) as bootstrap:
        rows = spent(bootstrap)
    for customer, amount in rows:
        print(f"{customer}  {amount:>8,}")
    assert dict(rows) == totals(2_400)


if __name__ == "__main__":
    main()
