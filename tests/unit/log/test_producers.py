"""Idempotent producers: repeated batches are answered again, gaps and old epochs refused."""

from __future__ import annotations

import pytest
from tests.unit.log.support import NOW, SMALL, Home, batch_of, values

from lowwater.errors import ApiError, ErrorCode
from lowwater.log.config import DAY_MS
from lowwater.log.partition_log import Appended
from lowwater.log.producers import SEQUENCE_MAX, Producers, sequence_after


def send(home: Home, sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 9, **fields: int) -> Appended:
    values = [b"%d" % (sequence + place) for place in range(count)]
    return home.append(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def refused(home: Home, sequence: int, **fields: int) -> ErrorCode:
    end = home.log().log_end
    with pytest.raises(ApiError) as caught:
        send(home, sequence, **fields)
    assert home.log().log_end == end
    return caught.value.code


def test_each_of_the_last_five_batches_is_answered_with_its_first_offset() -> None:
    home = Home()
    offsets = [send(home, 2 * number, count=2).base_offset for number in range(5)]
    for number, offset in enumerate(offsets):
        again = send(home, 2 * number, count=2)
        assert again == (offset, offset + 1, -1, 0, True)
    assert home.log().log_end == 10


def test_a_batch_older_than_the_last_five_is_out_of_order() -> None:
    home = Home()
    for number in range(6):
        send(home, number)
    assert refused(home, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(home, 1).duplicate


def test_a_repeated_batch_of_another_length_is_out_of_order() -> None:
    home = Home()
    send(home, 0, count=2)
    assert refused(home, 0, count=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(home, 1, count=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused() -> None:
    home = Home()
    send(home, 0)
    assert refused(home, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not send(home, 1).duplicate


def test_an_unknown_producer_may_begin_anywhere() -> None:
    home = Home()
    assert not send(home, 41).duplicate
    assert not send(home, 42).duplicate


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    home = Home()
    send(home, 0, epoch=3)
    assert refused(home, 1, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(home, 1, epoch=4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not send(home, 0, epoch=4).duplicate
    assert send(home, 0, epoch=4).duplicate
    assert refused(home, 1, epoch=3) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_know_each_other() -> None:
    home = Home()
    send(home, 0, producer_id=1)
    assert not send(home, 0, producer_id=2).duplicate
    assert send(home, 0, producer_id=1).duplicate


def test_sequences_wrap() -> None:
    home = Home()
    send(home, SEQUENCE_MAX - 1, count=2)
    assert not send(home, 0).duplicate
    home.append(b"x", b"y", b"z", producer_id=5, producer_epoch=0, base_sequence=SEQUENCE_MAX - 1)
    assert send(home, 1, producer_id=5).duplicate is False


@pytest.mark.parametrize(
    ("sequence", "count", "after"),
    [(0, 1, 1), (SEQUENCE_MAX, 1, 0), (SEQUENCE_MAX - 1, 3, 1), (SEQUENCE_MAX, 0, SEQUENCE_MAX)],
)
def test_counting_on_from_a_sequence(sequence: int, count: int, after: int) -> None:
    assert sequence_after(sequence, count) == after


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_all_five_batches_are_known_after(how: str) -> None:
    home = Home()
    offsets = [send(home, number).base_offset for number in range(7)]
    getattr(home, how)()
    assert [send(home, number).base_offset for number in range(2, 7)] == offsets[2:]
    assert refused(home, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not send(home, 7).duplicate


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_duplicate_is_answered_with_its_append_time_also_after(how: str) -> None:
    home = Home(config=SMALL.__class__(log_append_time=True))
    first = send(home, 0)
    home.now_ms += 1000
    getattr(home, how)()
    assert send(home, 0) == (*first[:4], True)
    assert first.log_append_time_ms == NOW


def test_producers_survive_the_deletion_of_their_batches() -> None:
    home = Home()
    for number in range(40):
        send(home, number)
    home.log().delete_before(home.log().log_end)
    home.kill()
    assert values(home.log()) == []
    assert send(home, 39).duplicate
    assert send(home, 40).base_offset == 40


def test_a_missing_snapshot_is_rebuilt_from_the_batches() -> None:
    home = Home()
    for number in range(40):
        send(home, number)
    home.store.abandon()
    snapshots = [name for name in home.names() if name.endswith(".snapshot")]
    assert snapshots
    for name in snapshots:
        home.disk.unlink(f"{home.directory}/{name}")
    home.start()
    assert send(home, 35).base_offset == 35


def test_snapshots_go_with_their_segments() -> None:
    home = Home()
    for number in range(200):
        send(home, number)
    log = home.log()
    assert len(log.segments) > 5
    log.delete_before(log.segments[-2].base_offset + 1)
    snapshots = [name.removesuffix(".snapshot") for name in home.names() if name.endswith(".snapshot")]
    assert snapshots == [f"{segment.base_offset:020d}" for segment in log.segments]


def test_a_producer_is_forgotten_after_its_time_and_not_before() -> None:
    home = Home()
    send(home, 5)
    home.log().expire_producers(NOW + DAY_MS - 1)
    assert send(home, 5).duplicate
    home.log().expire_producers(NOW + DAY_MS)
    assert not send(home, 77).duplicate


def test_old_timestamps_do_not_make_a_producer_old() -> None:
    home = Home(config=SMALL.__class__(retention_ms=-1))
    home.append(b"v", times=[5], producer_id=1, producer_epoch=0, base_sequence=0)
    home.kill()
    home.log().apply_retention(NOW + 1)
    assert len(home.log().producers()) == 1


def test_what_is_told_about_producers() -> None:
    home = Home()
    home.append(b"v", b"w", times=[NOW, NOW + 5], producer_id=1, producer_epoch=3, base_sequence=8)
    [(producer_id, state)] = home.log().producers()
    assert producer_id == 1
    assert (state.epoch, state.last_sequence, state.last_timestamp) == (3, 9, NOW + 5)
    assert (state.coordinator_epoch, state.txn_start_offset) == (-1, -1)


def test_plain_producers_leave_no_trace() -> None:
    home = Home()
    home.append(b"v")
    assert home.log().producers() == []


def test_the_encoding_of_producers_keeps_everything() -> None:
    home = Home()
    for number in range(9):
        send(home, number, producer_id=number % 2, epoch=number % 2) if number < 2 else None
    before = home.log().producer_state
    after = Producers.decode(before.encode())
    assert after.encode() == before.encode()
    assert [one for one, _ in after.items()] == [one for one, _ in before.items()]


def test_a_refused_batch_changes_nothing_about_its_producer() -> None:
    home = Home()
    send(home, 0)
    refused(home, 5)
    assert not send(home, 1).duplicate
    batch = batch_of(b"2", producer_id=9, producer_epoch=0, base_sequence=2)
    batch[-1] ^= 1
    with pytest.raises(ApiError):
        home.log().append(batch, NOW)
    assert not send(home, 2).duplicate
