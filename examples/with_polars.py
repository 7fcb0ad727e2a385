"""A topic as a polars DataFrame, and a DataFrame back into a topic: `python -m examples.with_polars`."""

from __future__ import annotations

import polars as pl

import lowwater
from examples.day_of_orders import broker_with_orders, totals

ORDER = pl.Struct({"order": pl.Int64, "amount": pl.Int64})


def spent(bootstrap: str) -> pl.DataFrame:
    frame = lowwater.read("orders", bootstrap=bootstrap).to_polars()
    amount = pl.col("value").cast(pl.String).str.json_decode(ORDER).struct.field("amount")
    return frame.group_by(pl.col("key").cast(pl.String)).agg(amount.sum().alias("spent")).sort("key")


def main() -> None:
    with broker_with_orders(count=2_400) as bootstrap:
        frame = spent(bootstrap)
        with lowwater.Producer(bootstrap) as producer:
            rows = frame.select(pl.col("key").cast(pl.Binary), value=pl.col("spent").cast(pl.String).cast(pl.Binary))
            producer.send_table("spent", rows)  # whatever speaks Arrow can be sent
        back = lowwater.read("spent", bootstrap=bootstrap).to_polars()
    print(frame)
    assert dict(frame.iter_rows()) == totals(2_400)
    assert {key.decode(): int(value) for key, value in back.select("key", "value").iter_rows()} == totals(2_400)


if __name__ == "__main__":
    main()
