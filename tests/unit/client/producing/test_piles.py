"""Plain records leave together: after a while, when they are many, or when all has to leave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from lowwater.client.errors import BadRowsError
from lowwater.client.producing import tables
from lowwater.client.producing.piles import Pile, Piles, field_bytes, header_pairs, milliseconds, partition_number
from lowwater.client.producing.reports import Report
from lowwater.errors import ConfigError


class Heap:
    """Piles whose driver is the test."""

    def __init__(self, bytes_max: int = 10_000) -> None:
        self.posted: list[Callable[[], None]] = []
        self.lingering: list[Callable[[], None]] = []
        self.taken: list[Pile] = []
        self.piles = Piles(
            self.posted.append, self.lingering.append, self.taken.append, bytes_max=bytes_max, new_report=Report
        )

    def add(self, value: bytes, topic: str = "t") -> Report:
        return self.piles.add(topic, value, None, None, None, 5)

    def turn(self) -> None:
        posted, self.posted[:] = list(self.posted), []
        for callback in posted:
            callback()

    def values(self) -> list[list[bytes]]:
        return [pile.record_batch(tables).column("value").to_pylist() for pile in self.taken]


def test_records_leave_together_when_their_time_is_over() -> None:
    heap = Heap()
    reports = {id(heap.add(b"%d" % number)) for number in range(3)}
    assert len(reports) == 1
    assert len(heap.posted) == 1, "the first of a pile says so"
    heap.turn()
    assert heap.taken == []
    heap.lingering.pop()()
    assert heap.values() == [[b"0", b"1", b"2"]]
    assert heap.piles.size == 0


def test_a_full_pile_leaves_before_its_time_and_its_timer_does_not_touch_the_next() -> None:
    heap = Heap(bytes_max=200)
    first = heap.add(b"x" * 100)
    assert heap.add(b"y" * 100) is first
    second = heap.add(b"z")
    assert second is not first
    heap.turn()
    assert heap.values() == [[b"x" * 100, b"y" * 100]]
    heap.lingering[0]()
    assert len(heap.taken) == 1, "the time of the first pile is not that of the second"
    heap.lingering[1]()
    assert heap.values()[1] == [b"z"]


def test_topics_have_piles_of_their_own_and_all_leave_when_asked() -> None:
    heap = Heap()
    heap.add(b"1", "a")
    heap.add(b"2", "b")
    assert heap.piles.size > 0
    heap.piles.close_all()
    assert [pile.topic for pile in heap.taken] == ["a", "b"]
    assert heap.piles.size == 0
    heap.turn()
    for over in heap.lingering:
        over()
    assert len(heap.taken) == 2


def test_records_of_many_threads_are_all_there_and_those_of_one_in_order() -> None:
    heap = Heap(bytes_max=2_000)
    threads = [
        threading.Thread(target=lambda who=who: [heap.add(b"%d %05d" % (who, number)) for number in range(2_000)])
        for who in range(4)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        heap.turn()
    heap.turn()
    heap.piles.close_all()
    values = [value for pile in heap.values() for value in pile]
    assert len(values) == 8_000
    for who in range(4):
        own = [value for value in values if value.startswith(b"%d " % who)]
        assert own == sorted(own)


def test_headers_partitions_and_times_are_columns() -> None:
    pile = Pile("t", Report())
    pile.add(b"v", b"k", header_pairs({"h": "text", "n": None}), 3, 7)
    pile.add(None, None, None, None, 8)
    batch = pile.record_batch(tables)
    assert batch.to_pylist() == [
        {"key": b"k", "value": b"v", "timestamp": 7, "headers": [("h", b"text"), ("n", None)], "partition": 3},
        {"key": None, "value": None, "timestamp": 8, "headers": None, "partition": None},
    ]


def test_texts_and_numbers_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(BadRowsError, match="UTF-8"):
        field_bytes("\udc80")
    with pytest.raises(BadRowsError, match="UTF-8"):
        header_pairs({"\udc80": b""})
    for partition in (-2, 2**31, "1", 1.0):
        with pytest.raises(BadRowsError, match="partition"):
            partition_number(partition)  # type: ignore[arg-type]
    assert partition_number(7) == 7


def test_times_are_milliseconds() -> None:
    assert milliseconds(5) == 5
    assert milliseconds(datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)) == 2_500
    with pytest.raises(BadRowsError, match="no time zone"):
        milliseconds(datetime(2026, 1, 1))
    for time_ms in (1 << 70, -5, datetime(1969, 1, 1, tzinfo=UTC)):
        with pytest.raises(BadRowsError, match="is no time in milliseconds since 1970"):
            milliseconds(time_ms)
    assert milliseconds(-1) == -1, "the time of records that have none"
    assert type(milliseconds(np.int64(7))) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("timestamp", ["now", 1700000000.5, 5.0, True, b"5", np.array([5, 6])])
def test_what_is_no_time_is_refused(timestamp: Any) -> None:
    with pytest.raises(ConfigError, match="timestamp is a datetime or whole milliseconds, not "):
        milliseconds(timestamp)


@pytest.mark.parametrize("headers", ["a=1", b"a=1", 5, ["ab"], [("a",)], [("a", b"1", b"2")], [5]])
def test_what_are_no_headers_is_refused(headers: Any) -> None:
    with pytest.raises(ConfigError, match="headers are a mapping, or pairs of a name and a value, not "):
        header_pairs(headers)


@pytest.mark.parametrize("value", [5, 1.5, ["x"], object()])
def test_what_is_no_field_is_refused(value: Any) -> None:
    with pytest.raises(BadRowsError, match="bytes, text or None"):
        field_bytes(value)
    with pytest.raises(BadRowsError):
        header_pairs([("name", value)])
    with pytest.raises(BadRowsError, match="name of a header"):
        header_pairs([(b"name", b"x")])  # type: ignore[list-item]
