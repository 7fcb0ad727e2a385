"""The partitions of an ordered task by small numbers, and how far each of them has come in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lowwater.spark.offsets import Bound
from lowwater.spark.ordering.keys import END, NO_CLOCK, find_keys
from lowwater.spark.splitting import Slice
from lowwater.types import TopicPartition


class Keyed(NamedTuple):
    """`places` order rows by key, topic and partition; rows of the same place come by offset already. `chosen`: which
    rows of the batch they are of; None: all."""

    places: Any
    chosen: Any


class Partitions:
    """Numbered by topic and partition, which is how rows of the same key are ordered."""

    def __init__(self, partitions: Iterable[TopicPartition], part: Slice) -> None:
        self._names = sorted(partitions)
        self._numbers = {one: number for number, one in enumerate(self._names)}
        self._slice = part
        self._topics = sorted({one.topic for one in self._names})
        codes = {topic: code for code, topic in enumerate(self._topics)}
        self._topic_of = np.array([codes[one.topic] for one in self._names], np.int32)
        self._partition_of = np.array([one.partition for one in self._names], np.int32)
        self._width = max((one.partition for one in self._names), default=0) + 1
        self._number_at = np.full(len(self._topics) * self._width, -1, np.int32)
        self._number_at[self._topic_of * self._width + self._partition_of] = np.arange(len(self._names))
        self._clocks = np.full(len(self._names), NO_CLOCK, np.int64)
        self._starts, self._ends = self._limits(part.start, NO_CLOCK), self._limits(part.end, END)
        self._limit = (END >> 1) // max(len(self._names), 1)
        self.late_rows = 0

    def _limits(self, bound: Bound | None, nowhere: int) -> Any:
        """By number, the key and the offset from which rows lie behind the bound."""
        limits = np.empty((2, len(self._names)), np.int64)
        if bound is None:
            limits[0], limits[1] = nowhere, END if nowhere == END else 0
            return limits
        limits[0], limits[1] = bound.key_ms, 0
        for number, one in enumerate(self._names):
            if one < (bound.topic, bound.partition):
                limits[:, number] = bound.key_ms, END  # all of that moment lie before it
            elif one == (bound.topic, bound.partition):
                limits[:, number] = bound.key_ms, bound.offset
        return limits

    def __len__(self) -> int:
        return len(self._names)

    # -- rows that came

    def keyed(self, batch: Any) -> Keyed:
        """What of a batch of the client's is in the slice, and in which order. Rows of a partition come by offset."""
        count = batch.num_rows
        tags = self._tags(batch)
        keys, kept = np.empty(count, np.int64), np.empty(count, np.uint8)
        found, late = find_keys(
            tags,
            _numbers(batch, "offset", np.int64),
            _numbers(batch, "timestamp", np.int64),
            self._clocks,
            self._starts[0],
            self._starts[1],
            self._ends[0],
            self._ends[1],
            self._slice.out_of_order_ms,
            NO_CLOCK if self._slice.floor_ms is None else self._slice.floor_ms,
            END if self._slice.cap_ms is None else self._slice.cap_ms,
            NO_CLOCK if self._slice.late_before_ms is None else self._slice.late_before_ms,
            keys,
            kept,
        )
        self.late_rows += late
        chosen = None if found == count else np.flatnonzero(kept)
        if chosen is not None:
            keys, tags = keys[chosen], tags[chosen]
        places = self._places(keys, tags)
        return Keyed(places, chosen)

    def _tags(self, batch: Any) -> Any:
        topics = batch.column("topic")
        partitions = _numbers(batch, "partition", np.int32)
        if len(self._topics) == 1:
            return self._number_at[partitions]
        codes = np.array([self._code(name) for name in topics.dictionary.to_pylist()], np.int32)
        of_rows = np.frombuffer(topics.indices.buffers()[1], np.int32, len(topics))
        return self._number_at[codes[of_rows] * self._width + partitions]

    def _code(self, topic: str) -> int:
        return self._topics.index(topic) if topic in self._topics else 0

    def _places(self, keys: Any, tags: Any) -> Any:
        """Times beyond some hundred thousand years count as the same."""
        return np.clip(keys, -self._limit, self._limit) * len(self) + tags

    # -- how far they have come

    def places_of(self, partitions: Iterable[TopicPartition]) -> Iterator[int]:
        """Of each that is not past: rows of it that are to come have no place before that."""
        floor_ms = NO_CLOCK if self._slice.floor_ms is None else self._slice.floor_ms
        limit = self._limit
        for one in partitions:
            if self.is_past(one):
                continue
            number = self._numbers[one]
            clock = int(self._clocks[number])
            key = max(clock - self._slice.out_of_order_ms, floor_ms)
            yield NO_CLOCK if clock == NO_CLOCK else min(max(key, -limit), limit) * len(self) + number

    def is_past(self, one: TopicPartition) -> bool:
        """Whether all rows of it that are to come lie behind the slice."""
        number = self._numbers[one]
        clock, (keys, offsets) = int(self._clocks[number]), self._ends
        if clock == NO_CLOCK or self._slice.end is None:
            return False
        key = clock - self._slice.out_of_order_ms
        return key > int(keys[number]) or (key == int(keys[number]) and int(offsets[number]) == 0)

    # -- rows that go

    def columns(self, places: Any) -> dict[str, Any]:
        """Topic and partition of rows, by their places."""
        tags = places % len(self)
        topics = pa.DictionaryArray.from_arrays(pa.array(self._topic_of[tags]), pa.array(self._topics, pa.utf8()))
        return {"topic": topics, "partition": pa.array(self._partition_of[tags])}


def _numbers(batch: Any, name: str, kind: Any) -> Any:
    """Without a copy. Records without a time have -1 under their null."""
    return np.frombuffer(batch.column(name).buffers()[1], kind, batch.num_rows)


def client_columns(wanted: Sequence[str]) -> tuple[str, ...]:
    """What has to be read to know the order as well."""
    return tuple(dict.fromkeys((*wanted, "topic", "partition", "offset", "timestamp")))
