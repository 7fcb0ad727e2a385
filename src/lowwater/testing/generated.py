"""Partitions with made-up contents, for tests: any range of offsets in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lowwater.broker.changes import Decision
from lowwater.broker.metadata_records import PartitionsAdded
from lowwater.errors import LowwaterError
from lowwater.wire.records import Record, build_batch

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

Generator = Callable[[int], Record]

RECORDS_PER_BATCH = 500


def key_and_value(partition: int) -> Generator:
    """Records that say where they are: `key-0-17`, `value-0-17`, a millisecond apart."""

    def generate(offset: int) -> Record:
        key, value = f"key-{partition}-{offset}", f"value-{partition}-{offset}"
        return Record(offset, timestamp=offset, key=key.encode(), value=value.encode())

    return generate


async def ensure_topic(broker: Broker, name: str, partitions: int) -> None:
    """Create the topic, or add the partitions it lacks."""
    await broker.topics.change(lambda: _ensure(broker, name, partitions))


def _ensure(broker: Broker, name: str, partitions: int) -> Decision[None]:
    topic, boot = broker.topics.get(name), broker.store.boot_count
    if topic is None:
        return Decision([broker.topics.create(name, partitions, {}, boot)], None)
    if topic.partition_count < partitions:
        return Decision([PartitionsAdded(topic.id, partitions, boot)], None)
    return Decision([], None)


def fill(broker: Broker, topic: str, partition: int, first: int, end: int, generate: Generator | None) -> None:
    """Make an empty partition span [first, end)."""
    if not 0 <= first <= end:
        raise ValueError(f"a partition spans [first, next) with 0 <= first <= next, not [{first}, {end})")
    target = broker.partition(topic, partition)
    if target.log.next_offset:
        raise LowwaterError(f"{topic}-{partition} has records already; only a fresh partition can be filled")
    target.log.start_at(first)
    make = generate or key_and_value(partition)
    now_ms = broker.clock.now_ms()
    for begin in range(first, end, RECORDS_PER_BATCH):
        records = [
            make(offset)._replace(offset=offset - begin) for offset in range(begin, min(begin + RECORDS_PER_BATCH, end))
        ]
        target.append(memoryview(build_batch(records)), now_ms, zstd_allowed=True)
