"""Code that was written for kafkars. Only the line that imports it was changed: `python -m examples.from_kafkars`."""

from __future__ import annotations

from examples.day_of_orders import broker_with_orders
from lowwater import ConsumerManager, SourceTopic  # was: from kafkars import ConsumerManager, SourceTopic


def replay(bootstrap: str) -> list[int]:
    """Timestamps of the last six hours, in milliseconds, in order across all partitions."""
    manager = ConsumerManager(
        config={"bootstrap.servers": bootstrap, "group.id": "replay"},
        topics=[SourceTopic.from_relative_time("orders", 6 * 3600 * 1000)],
        batch_size=500,
    )
    times: list[int] = []
    while not manager.is_live():
        batch = manager.poll(timeout_ms=1000)
        times += batch.column("timestamp").cast("int64").to_pylist()
    print(manager.partition_state().to_pandas()[["partition", "replay_start_offset", "replay_end_offset", "is_live"]])
    return times


def main() -> None:
    with broker_with_orders(count=2_400) as bootstrap:
        times = replay(bootstrap)
    print(f"{len(times)} orders, in order")
    assert times == sorted(times)
    assert 590 <= len(times) <= 600


if __name__ == "__main__":
    main()
