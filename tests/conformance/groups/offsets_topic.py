"""What stands in `__consumer_offsets`, read as any consumer reads it and decoded by its schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.asking import Ask, fetch_one, metadata
from tests.conformance.raw import Wire
from tests.sim.batches import decode_all

from lowwater.groups import records
from lowwater.groups.record_schemas import GroupMetadataKey
from lowwater.outcome import StateRecord

OFFSETS_TOPIC = "__consumer_offsets"


def stored(address: tuple[str, int]) -> Iterator[tuple[Any, Any]]:
    """Every (key, value or None), partition by partition, in the order of the log."""
    with Wire(address) as wire:
        [topic] = metadata(wire, OFFSETS_TOPIC).topics
        for partition in topic.partitions:
            yield from _of_partition(wire, partition.partition_index)


def _of_partition(wire: Wire, partition: int) -> Iterator[tuple[Any, Any]]:
    position = 0
    while True:
        answer = fetch_one(wire, Ask(OFFSETS_TOPIC, position, partition, bytes_max=8 << 20))
        assert answer.error_code == 0, answer
        batches = list(decode_all(bytes(answer.records or b"")))
        for record in (each for batch in batches for each in batch.records):
            position = record.offset + 1
            if found := records.decode(StateRecord(record.key, record.value)):
                yield found
        if position >= answer.high_watermark or not batches:
            return


def generations(address: tuple[str, int], group: str) -> list[int]:
    """Of a classic group, one for each of its metadata records."""
    return [
        value.generation
        for key, value in stored(address)
        if isinstance(key, GroupMetadataKey) and key.group == group and value is not None
    ]
