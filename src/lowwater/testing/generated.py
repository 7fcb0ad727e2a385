"""Partitions with made-up contents, for tests: any range of offsets in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lowwater.wire.records import Record, build_batch

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

Generator = Callable[[int], Record]

RECORDS_PER_BATCH = 500


def key_and_value(partition: int) -> Generator:
    """Records that say where they are: `key-0-17`, `value-0-17`, a millisecond apart."""

    def generate(offset: int) -> Record:
        return Record(
            key=f"key-{partition}-{offset}".encode(), value=f"value-{partition}-{offset}".encode(), timestamp=offset
        )

    return generate
