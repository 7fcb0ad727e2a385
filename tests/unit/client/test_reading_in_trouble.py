"""A reader some of whose partitions cannot be read for a while, or for good: what is held meanwhile, and asked for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import NODES, Batch, PlayedCluster, PlayedLog
from tests.unit.client.virtual import refused

from lowwater.client.columns import Held
from lowwater.client.coordinator import Committed
from lowwater.client.errors import ClientError, LogTruncatedError
from lowwater.client.flow import Flow
from lowwater.client.reading import Options, Reading
from lowwater.client.wanted import start_position, wanted
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.compression import ZSTD
from lowwater.wire.records import Record, build_batch

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
KILOBYTE = b"v" * 1000
HELD_BYTES_MAX = 64 * 1024
METADATA_MAX_AGE_MS = 300_000


class Played:
    """A reader on brokers that are played, all on virtual time. Batches are of ten rows of a kilobyte, one a ms."""

    def __init__(self, *logs: range, leaders: tuple[int, ...] = (1, 1, 1)) -> None:
        self.brokers = PlayedCluster()
        for one, starts_ms in zip(self.brokers.create("t", *leaders[: len(logs)]), logs, strict=True):
            for start_ms in starts_ms:
                self.brokers.append(one, 10, KILOBYTE, start_ms)
        self.most_held_bytes = 0

    def append_packed(self, one: TopicPartition, start_ms: int) -> None:
        log = self.brokers.logs[one]
        records = [Record(log.end + at, start_ms + at, None, KILOBYTE) for at in range(10)]
        data = bytes(build_batch(records, base_offset=log.end, codec=ZSTD, leader_epoch=log.epoch))
        log.batches.append(Batch(log.end, log.end + 10, data, log.epoch))
        log.end += 10

    def begin(self, *, stop: Any = "latest", **options: Any) -> Reading:
        options = {"held_bytes_max": HELD_BYTES_MAX} | options
        self.reading = Reading(self.brokers.cluster, wanted("t", stop=stop), Options(**options))
        self.run(self.reading.begin())
        return self.reading

    def run(self, coroutine: Any) -> Any:
        flow = Flow(coroutine)
        self.brokers.time.advance(0)
        return flow.result()

    def poll(self, times: int, step_ms: int = 10) -> list[int]:
        """The times of the rows that came."""
        found: list[int] = []
        for _ in range(times):
            self.brokers.time.advance(step_ms)
            self.run(self.reading.poll(0))
            if (batch := self.reading.take()) is not None:
                found += batch.column("timestamp").cast("int64").to_pylist()
            assert self.reading.partitions.releasing is not None
            self.most_held_bytes = max(self.most_held_bytes, self.reading.partitions.releasing.held_bytes)
        return found

    def asked_for(self, one: TopicPartition) -> int:
        """How often."""
        return sum(
            each.partition == one.partition
            for request in self.brokers.fetches()
            for topic in request.topics
            for each in topic.partitions
        )


EARLY, LATE = range(0, 600, 10), range(10_000, 10_600, 10)
ALL_OF = {EARLY: [*range(600)], LATE: [*range(10_000, 10_600)]}


@pytest.mark.parametrize("polls_before", [0, 1, 5])
def test_those_ahead_are_not_asked_for_again_and_again_while_the_one_behind_cannot_be_read(polls_before: int) -> None:
    played = Played(EARLY, LATE)
    if not polls_before:
        played.brokers.fails_at[1, T0] = ErrorCode.KAFKA_STORAGE_ERROR
    played.begin()
    rows = played.poll(polls_before)
    played.brokers.fails_at[1, T0] = ErrorCode.KAFKA_STORAGE_ERROR
    rows += played.poll(150)
    assert played.asked_for(T1) < 10
    played.brokers.fails_at.clear()
    rows += played.poll(500)
    assert rows == ALL_OF[EARLY] + ALL_OF[LATE]


def test_nobody_ahead_is_asked_for_while_the_broker_of_the_one_behind_is_gone() -> None:
    played = Played(range(0, 6_000_000, 100_000), range(3_000_000, 3_000_600, 10), leaders=(2, 1))
    played.begin()
    rows = played.poll(3)
    played.brokers.driver.unreachable[NODES[2]] = refused(NODES[2])
    for line in played.brokers.driver.open_lines:
        if line.address == NODES[2]:
            line.drop()
    rows += played.poll(20)
    asked = played.asked_for(T1)
    rows += played.poll(150)
    assert played.asked_for(T1) == asked, "although there is little of the one behind in so much time"
    played.brokers.driver.unreachable.clear()
    rows += played.poll(1_000)
    assert (len(rows), rows) == (1_200, sorted(rows))


@pytest.mark.parametrize("held_bytes_max", [10_000, 10_500, 11_000, HELD_BYTES_MAX])
def test_one_that_others_wait_for_is_asked_for_however_much_is_held(held_bytes_max: int) -> None:
    played = Played(EARLY, LATE)
    slow = played.brokers.logs[T0]
    slow.is_slow, slow.local_start = True, slow.end
    played.begin(held_bytes_max=held_bytes_max)
    assert played.poll(100, 50) == []
    assert played.asked_for(T1) < 10
    slow.is_slow = False
    assert played.poll(2_000, 50) == ALL_OF[EARLY] + ALL_OF[LATE]


def test_one_that_was_read_up_to_where_it_ended_at_the_beginning_holds_nobody_up_when_it_cannot_be_read() -> None:
    played = Played(range(0, 10, 10), LATE)
    played.begin(stop=None)
    rows = played.poll(3)
    for _ in range(60):
        played.brokers.append(T0, 10, KILOBYTE, 0)
    rows += played.poll(3)
    played.brokers.fails_at[1, T0] = ErrorCode.KAFKA_STORAGE_ERROR
    rows += played.poll(300)
    assert played.reading.partitions.lag()[T0] > 100, "and it is known to have more"
    assert set(rows) == {*range(10), *ALL_OF[LATE]}


def test_a_new_partition_whose_leader_is_away_for_long_does_not_end_the_reader() -> None:
    played = Played(EARLY)
    played.begin(stop=None)
    rows = played.poll(200)
    played.brokers.logs[T1] = PlayedLog(leader=2)
    played.brokers.append(T1, 10, KILOBYTE, 2_000)
    played.brokers.driver.unreachable[NODES[2]] = refused(NODES[2])
    rows += played.poll(3, METADATA_MAX_AGE_MS)
    played.brokers.append(T0, 10, KILOBYTE, 1_000)
    rows += played.poll(100)
    assert rows == [*ALL_OF[EARLY], *range(1_000, 1_010)]
    played.brokers.driver.unreachable.clear()
    assert played.poll(3, METADATA_MAX_AGE_MS) == [*range(2_000, 2_010)]


def test_a_caller_who_polls_over_an_error_has_no_more_held_than_is_allowed() -> None:
    played = Played(EARLY, range(10_000, 20_000, 10))
    played.begin()
    played.brokers.fails_at[1, T0] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for _ in range(100):
        with pytest.raises(ClientError, match="TOPIC_AUTHORIZATION_FAILED"):
            played.poll(10)
        assert played.reading.partitions.releasing is not None
        assert played.reading.partitions.releasing.held_bytes <= HELD_BYTES_MAX


def test_what_did_not_fit_once_it_was_unpacked_comes_in_its_turn_and_nothing_else_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(Held.__init__.__kwdefaults__, "decompressed_bytes_max", 1)
    played = Played(EARLY, range(0))
    for start_ms in LATE:
        played.append_packed(T1, start_ms)
    played.begin()
    rows: list[int] = []
    while len(rows) < 500:
        rows += played.poll(1)
    assert played.asked_for(T1) <= 2
    assert rows + played.poll(500) == ALL_OF[EARLY] + ALL_OF[LATE]


def finished() -> Played:
    """A reader that returned everything up to its stop; what the leader of the fifth epoch took."""
    played = Played(range(0, 10, 10))
    played.begin()
    assert played.poll(5) == [*range(10)]
    assert played.reading.partitions.committing({T0: 10}) == {T0: Committed(10, leader_epoch=5)}
    return played


def test_whoever_seeks_to_the_stop_commits_no_epoch_of_what_he_read_elsewhere() -> None:
    played = finished()
    played.run(played.reading.seek(T0, start_position(10)))
    assert played.reading.is_finished
    assert played.reading.partitions.committing({T0: 10}) == {T0: 10}


def test_a_partition_that_is_given_back_empty_has_no_epoch_of_what_it_was_before() -> None:
    played = finished()
    played.reading.partitions.remove([T0])
    log = played.brokers.logs[T0]
    log.start, log.batches = log.end, []
    played.run(played.reading.partitions.add([T0]))
    assert played.reading.partitions.plans[T0].is_empty
    assert played.reading.partitions.committing({T0: 10}) == {T0: 10}


def test_a_truncated_log_is_told_with_its_bounds() -> None:
    played = Played(range(0, 20, 10))
    played.begin(stop=None)
    played.poll(5)
    played.brokers.logs[T0].truncate(10)
    played.brokers.append(T0, 3)
    with pytest.raises(LogTruncatedError, match=r"\[0, 13\]") as raised:
        played.poll(200, 100)
    assert (raised.value.log_start, raised.value.log_end) == (0, 13)
