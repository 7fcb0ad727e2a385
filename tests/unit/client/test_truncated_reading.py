"""A reader whose log is cut off: what the caller was given is told, what he never got is silently made right."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import PlayedCluster

from lowwater.client.errors import LogTruncatedError
from lowwater.client.flow import Flow
from lowwater.client.reading import Options, Reading
from lowwater.client.releasing import Lost
from lowwater.client.wanted import start_position, wanted
from lowwater.types import TopicPartition

T0, T1 = (TopicPartition("t", number) for number in range(2))


class Played:
    """A reader on brokers that are played, all on virtual time."""

    def __init__(self, *rows: int, **options: Any) -> None:
        self.brokers = PlayedCluster()
        for one, count in zip(self.brokers.create("t", *[1] * len(rows)), rows, strict=True):
            self.brokers.append(one, count, b"old")
        self.reading = Reading(self.brokers.cluster, wanted("t"), Options(**options))

    def run(self, coroutine: Any, advance_ms: int = 0) -> Any:
        flow = Flow(coroutine)
        self.brokers.time.advance(advance_ms)
        return flow.result()

    def begin(self) -> None:
        self.run(self.reading.begin())

    def rows(self) -> list[tuple[int, int, str]]:
        """(partition, offset, value) of everything that comes within some seconds, by partition and offset."""
        found = []
        for _ in range(20):
            self.brokers.time.advance(200)
            self.run(self.reading.poll(0))
            while (batch := self.reading.take()) is not None:
                columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "value"))
                found += [(*place, value.decode()) for *place, value in zip(*columns, strict=True)]
                self.run(self.reading.poll(0))
        return sorted(found)

    @property
    def lost(self) -> list[Lost]:
        assert self.reading.partitions.releasing is not None
        return self.reading.partitions.releasing.lost


def of(partition: int, first: int, behind: int, value: str) -> list[tuple[int, int, str]]:
    return [(partition, offset, value) for offset in range(first, behind)]


def cut_off(played: Played, one: TopicPartition, end: int, *, then: int) -> None:
    played.brokers.logs[one].truncate(end)
    played.brokers.append(one, then, b"new")


def test_rows_that_were_returned_and_are_gone_are_an_error_that_names_them() -> None:
    played = Played(10)
    played.brokers.append(T0, 10, b"old")
    played.begin()
    assert played.rows() == of(0, 0, 20, "old")
    cut_off(played, T0, 10, then=30)
    for _ in range(2):
        with pytest.raises(LogTruncatedError, match="offsets 10 to 19") as raised:
            played.rows()
    error = raised.value
    assert (error.topic, error.partition, error.first, error.behind) == ("t", 0, 10, 20)
    assert 'on_lost="earliest"' in str(error)
    played.run(played.reading.seek(T0, start_position(10)))
    assert played.rows() == of(0, 10, 40, "new"), "whoever has undone it goes on"


@pytest.mark.parametrize("on_lost", ["earliest", "latest"])
def test_with_on_lost_reading_goes_on_where_the_log_is_another_one(on_lost: str) -> None:
    played = Played(10, on_lost=on_lost)
    played.brokers.append(T0, 10, b"old")
    played.begin()
    assert played.rows() == of(0, 0, 20, "old")
    cut_off(played, T0, 10, then=30)
    assert played.rows() == of(0, 10, 40, "new")
    assert played.lost == [Lost("t", 0, 10, 20, is_truncated=True)]
    assert played.reading.partitions.positions() == {T0: 40}


def test_rows_that_were_only_held_are_replaced_without_a_word() -> None:
    played = Played(10, 5)
    played.brokers.append(T0, 10, b"old")
    slow = played.brokers.logs[T1]
    slow.is_slow, slow.local_start = True, 5
    played.begin()
    assert played.rows() == [], "the other partition is waited for"
    assert played.reading.partitions.releasing is not None
    assert played.reading.partitions.releasing.held_rows == 20
    cut_off(played, T0, 10, then=30)
    assert played.rows() == []
    slow.is_slow = False
    rows = played.rows()
    assert rows == of(0, 0, 10, "old") + of(0, 10, 40, "new") + of(1, 0, 5, "old")
    assert played.lost == []


def test_what_is_cut_off_after_everything_up_to_the_stop_was_returned_does_not_matter() -> None:
    played = Played(10, on_lost="earliest")
    played.begin()
    assert played.rows() == of(0, 0, 10, "old")
    played.run(played.reading.stop_now())
    played.brokers.logs[T0].truncate(4)
    played.brokers.grew()
    assert played.rows() == []
    assert played.reading.is_finished
