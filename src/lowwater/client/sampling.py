"""The first data row of partitions at or behind an offset, and how large rows are there."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.peeking import Peeking
from lowwater.client.slices import FetchedSlice
from lowwater.types import Buffer, TopicPartition
from lowwater.wire.records import HEADER_SIZE

_LENGTH = struct.Struct(">8xi11xi")  # of a batch behind this field; and, from its base offset, how far it goes
_BEFORE_LENGTH = 12
_PIECE_BYTES = 128 * 1024  # with most batches in it, so that one Fetch is enough


class Sampled(NamedTuple):
    offset: int
    timestamp_ms: int
    bytes_per_offset: float
    """As stored, so compressed, of what was looked at."""


async def sample(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], *, isolation: str | None = None
) -> dict[TopicPartition, Sampled | None]:
    """As `peek`."""
    sampling = _Sampling(cluster, offsets, isolation or cluster.network.config.str("isolation.level"), {})
    await cluster.retry.run(sampling.attempt, None)
    return {
        one: None if found is None else Sampled(*found, sampling.bytes_per_offset.get(one, 1.0))
        for one, found in sampling.found.items()
    }


class _Sampling(Peeking):
    def __init__(
        self, cluster: Cluster, offsets: Mapping[TopicPartition, int], isolation: str, topic_ids: Mapping[str, bytes]
    ) -> None:
        super().__init__(cluster, offsets, isolation, topic_ids)
        self._piece_bytes = _PIECE_BYTES
        self.bytes_per_offset: dict[TopicPartition, float] = {}

    def _look_into(self, slices: list[FetchedSlice]) -> list[ClientError]:
        for one in slices:
            if (size := bytes_per_offset(one.records)) is not None:
                self.bytes_per_offset[one.partition] = size
        return super()._look_into(slices)


def bytes_per_offset(records: Buffer) -> float | None:
    """By the headers of the batches, also of one that is cut off; None where there is none."""
    at = size = offsets = 0
    while at + HEADER_SIZE <= len(records):
        length, last_delta = _LENGTH.unpack_from(records, at)
        if length <= 0 or last_delta < 0:
            break
        size += _BEFORE_LENGTH + length
        offsets += last_delta + 1
        at += _BEFORE_LENGTH + length
    return size / offsets if offsets else None
