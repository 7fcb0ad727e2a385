"""Logs of partitions as a Fetch brings them, with every kind of batch, and the rows that a reader should see."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from lowwater.client.slices import FetchedSlice
from lowwater.types import TopicPartition
from lowwater.wire.control import build_end_marker
from lowwater.wire.records import (
    TRANSACTIONAL,
    BatchHeader,
    Record,
    build_batch,
    read_records,
    set_log_append_time,
    set_position,
)

P0, P1, P2 = (TopicPartition("cars", index) for index in range(3))
Row = tuple[Any, ...]


def batch(first: int, *timestamps: int, codec: int = 0, value: bytes = b"v", **header: Any) -> bytearray:
    """Records from offset `first` on."""
    records = [Record(first + at, timestamp, b"k%d" % at, value) for at, timestamp in enumerate(timestamps)]
    return build_batch(records, base_offset=first, codec=codec, **header)


def rows_of(arrow: Any) -> list[Row]:
    """(topic, partition, offset, timestamp, its type, key, value, headers) of each row."""
    if arrow is None:
        return []
    arrow.validate(full=True)
    columns = arrow.to_pydict()
    times = [-1 if one is None else one for one in arrow.column("timestamp").cast("int64").to_pylist()]
    headers = [tuple((pair["key"], pair["value"]) for pair in one) for one in columns["headers"]]
    names = ("topic", "partition", "offset")
    fields = [columns[name] for name in names]
    rest = [columns["timestamp_type"], columns["key"], columns["value"], headers]
    return list(zip(*fields, times, *rest, strict=True))


@dataclass
class RandomLog:
    """One partition's log: transactions, control batches, gaps, emptied batches, every codec."""

    partition: TopicPartition
    chance: random.Random
    batches: list[bytearray] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first offset, marker's offset
    end: int = 0

    def __post_init__(self) -> None:
        self._open: dict[int, tuple[int, list[int]]] = {}  # by producer: its first offset and its batches
        self._dropped: set[int] = set()
        for _ in range(self.chance.randint(0, 12)):
            self.chance.choice((self._data, self._data, self._data, self._end, self._emptied, self._gap))()
        for producer_id in list(self._open):
            self._end(producer_id)

    def _append(self, data: bytearray) -> None:
        set_position(data, self.end, 0)
        self.batches.append(data)
        self.end = BatchHeader.parse(data).next_offset

    def _data(self) -> None:
        chance = self.chance
        offsets = sorted(chance.sample(range(12), chance.randint(1, 6)))
        offsets = [one - offsets[0] for one in offsets]
        fields = (None, b"", b"short", chance.randbytes(300))
        headers = ((), (("n", None), ("é", b"x")), (("", b""),))
        records = [
            Record(at, chance.randint(-1, 50), chance.choice(fields), chance.choice(fields), chance.choice(headers))
            for at in offsets
        ]
        producer_id = chance.choice((-1, 1, 2))
        data = build_batch(
            records,
            codec=chance.randrange(5),
            last_offset=offsets[-1] + chance.randint(0, 2),
            producer_id=producer_id,
            attributes=TRANSACTIONAL if producer_id > 0 else 0,
        )
        if chance.random() < 0.2:
            set_log_append_time(data, BatchHeader.parse(data).attributes, chance.randint(0, 50))
        if producer_id > 0:
            self._open.setdefault(producer_id, (self.end, []))[1].append(len(self.batches))
        self._append(data)

    def _end(self, producer_id: int | None = None) -> None:
        if not self._open:
            return
        producer_id = self.chance.choice(list(self._open)) if producer_id is None else producer_id
        first, batches = self._open.pop(producer_id)
        commit = self.chance.random() < 0.5
        if not commit:
            self.aborted.append((producer_id, first, self.end))
            self._dropped.update(batches)
        self._append(build_end_marker(producer_id, 0, commit, 0, 5))

    def _emptied(self) -> None:
        self._append(build_batch([], base_offset=0, last_offset=self.chance.randint(0, 5)))

    def _gap(self) -> None:
        self.end += self.chance.randint(1, 5)

    def slice(self, fetch_offset: int, cut: int = 0) -> FetchedSlice:
        """What a Fetch from there gets; the last bytes are missing when `cut`."""
        data = b"".join(self._whole(fetch_offset))
        aborted = [(producer, first) for producer, first, marker in self.aborted if marker >= fetch_offset]
        return FetchedSlice(self.partition, fetch_offset, memoryview(data)[: max(0, len(data) - cut)], aborted=aborted)

    def _whole(self, fetch_offset: int) -> list[bytearray]:
        return [one for one in self.batches if BatchHeader.parse(one).next_offset > fetch_offset]

    def rows(self, fetch_offset: int, size: int | None = None) -> tuple[list[Row], int]:
        """The rows in the first `size` bytes from there, and the position behind them."""
        rows: list[Row] = []
        position, room = fetch_offset, 1 << 60 if size is None else size
        for data in self._whole(fetch_offset):
            room -= len(data)
            if room < 0:
                break
            header = BatchHeader.parse(data)
            position = header.next_offset
            is_dropped = header.is_control or self.batches.index(data) in self._dropped
            for one in () if is_dropped else read_records(data):
                if one.offset >= fetch_offset:
                    kind = int(header.has_log_append_time)
                    place = (*self.partition, one.offset, one.timestamp, kind)
                    rows.append((*place, one.key, one.value, tuple(one.headers)))
        return rows, position
