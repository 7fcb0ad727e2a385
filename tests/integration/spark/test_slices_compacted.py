"""A batch in order that is read again when compaction has taken rows: only late ones have another place then."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.fresh import fresh
from tests.integration.spark.test_compacted import COMPACT, PATIENCE_S, QUICK
from tests.integration.spark.test_slices import MINUTE, T0, Options, Row, oracle, read, unplanned
from tests.reader.writing import Writer

from lowwater.spark.batch_planner import plan
from lowwater.spark.filters import Bounds
from lowwater.testing import Broker

ROWS = 240
EARLY = 6
"""Every so many rows one is five minutes early, and makes those behind it late; the next of its key takes it away."""
SLICES = 4
Placed = tuple[str, int, int, int]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=QUICK) as broker:
        yield broker


def write_early_ones_among_others(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for row in range(ROWS):
        is_early = row % EARLY == 3 and 40 < row < 160
        key = "early" if is_early else f"k{row % 200}"
        stamped = T0 + 5000 * row + 5 * MINUTE * is_early
        for partition in (0, 1):
            producer.produce(topic, bytes(20_000), key=key, partition=partition, timestamp=stamped)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def compact(broker: Broker, topic: str) -> None:
    settings = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET),
        ],
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.incremental_alter_configs([settings])[settings].result(PATIENCE_S)


def wait_until_compacted(broker: Broker, topic: str, rows: int) -> list[Row]:
    """Until nothing more goes; what is left then, with the keys it has now."""
    deadline, before = time.monotonic() + PATIENCE_S, oracle(broker, topic, MINUTE)
    while True:
        after = oracle(broker, topic, MINUTE)
        if after == before and len(after) <= rows:
            return after
        before = after
        assert time.monotonic() < deadline, "it is compacted"


@pytest.mark.parametrize("is_planned", [True, False])
def test_compaction_moves_late_rows_only_and_none_that_is_kept_is_lost(
    options: Options, broker: Broker, writer: Writer, is_planned: bool
) -> None:
    topic = fresh("compacted")
    writer.create(topic, 2, {**COMPACT, "cleanup.policy": "delete", "retention.ms": "-1"})
    write_early_ones_among_others(broker, topic)
    chosen = options(streaming=False, subscribe=topic, order="timestamp", maxOutOfOrder="1m", minPartitions=SLICES)
    tasks = plan(chosen, Bounds())
    before = [read(chosen, task) for task in tasks]
    late = {row[1:] for row in oracle(broker, topic, MINUTE) if row[0] > row[4]}
    compact(broker, topic)
    left = [row[1:] for row in wait_until_compacted(broker, topic, 2 * ROWS - 20)]
    after = [read(chosen, task if is_planned else unplanned(task)) for task in tasks]
    assert [row for part in after for row in part] == left
    assert without(before, late | gone(before, left)) == without(after, late)
    assert without(before, gone(before, left)) != after, "some are not late any more"


def gone(before: list[list[Placed]], left: list[Placed]) -> set[Placed]:
    return {row for part in before for row in part} - set(left)


def without(parts: list[list[Placed]], some: set[Placed]) -> list[list[Placed]]:
    return [[row for row in part if row not in some] for part in parts]
