"""The last six hours of a topic as a pandas DataFrame: `python -m examples.with_pandas`."""

from __future__ import annotations

import json

import pandas as pd

import lowwater
from examples.day_of_orders import broker_with_orders


def orders_by_hour(bootstrap: str) -> pd.DataFrame:
    reader = lowwater.read("orders", bootstrap=bootstrap, start="-6h", columns=["key", "value", "timestamp"])
    frame = reader.to_pandas()
    frame["amount"] = [json.loads(value)["amount"] for value in frame["value"]]
    return frame.groupby(frame["timestamp"].dt.floor("h"))["amount"].agg(["count", "sum"])


def main() -> None:
    with broker_with_orders(count=2_400) as bootstrap:
        by_hour = orders_by_hour(bootstrap)
    print(by_hour)
    # 100 an hour; the six hours are counted back from when we read, which is a little later.
    assert 590 <= by_hour["count"].sum() <= 600, by_hour["count"].sum()


if __name__ == "__main__":
    main()
