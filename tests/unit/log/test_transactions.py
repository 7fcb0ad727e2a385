"""Transactions in a log: what may be written, where readers of committed records stop, what they leave out."""

from __future__ import annotations

import pytest
from tests.unit.log.support import NOW, SMALL, Home, batch_of, read_batches, values
from tests.unit.log.transactional import Writer, committed_values

from lowwater.errors import ApiError, ErrorCode
from lowwater.log.config import DAY_MS, LogConfig
from lowwater.wire.control import EndMarker, read_end_marker
from lowwater.wire.plain_batch import build_plain_batch
from lowwater.wire.records import CONTROL, TRANSACTIONAL, BatchHeader


def refusal(action: object, *arguments: object, **named: object) -> ErrorCode:
    assert callable(action)
    with pytest.raises(ApiError) as caught:
        action(*arguments, **named)
    return caught.value.code


# -- what may be written


def test_a_transactional_batch_without_a_transaction_is_refused_and_nothing_is_written() -> None:
    home = Home()
    assert refusal(Writer(home).send, b"a", in_transaction=False) == ErrorCode.INVALID_TXN_STATE
    assert home.log().log_end == 0


def test_once_begun_a_transaction_goes_on_without_asking_the_coordinator() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    assert home.log().has_transaction(1, 0)
    assert writer.send(b"b", in_transaction=False).base_offset == 1


def test_after_the_marker_the_coordinator_must_be_asked_again_and_the_sequence_goes_on() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a", b"b")
    writer.commit()
    assert not home.log().has_transaction(1, 0)
    assert refusal(writer.send, b"c", in_transaction=False) == ErrorCode.INVALID_TXN_STATE
    assert writer.send(b"c").base_offset == 3


def test_a_repeated_batch_is_known_also_after_its_transaction_ended() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    writer.commit()
    writer.sequence = 0
    again = writer.send(b"a", in_transaction=False)
    assert (again.base_offset, again.duplicate) == (0, True)
    assert home.log().last_stable == 2


def test_another_epoch_has_no_part_in_the_transaction() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    assert not home.log().has_transaction(1, 1)
    assert not home.log().has_transaction(2, 0)
    writer.begin_epoch()
    assert refusal(writer.send, b"b", in_transaction=False) == ErrorCode.INVALID_TXN_STATE


def test_a_plain_batch_of_a_producer_in_its_transaction_is_refused() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    assert refusal(writer.send, b"b", attributes=0) == ErrorCode.INVALID_TXN_STATE
    writer.commit()
    assert writer.send(b"b", attributes=0).base_offset == 2


def test_a_transactional_batch_needs_a_producer_id() -> None:
    batch = batch_of(b"a", attributes=TRANSACTIONAL)
    assert refusal(Home().log().append, batch, NOW, in_transaction=True) == ErrorCode.INVALID_TXN_STATE


def test_clients_cannot_write_markers() -> None:
    batch = batch_of(b"a", attributes=TRANSACTIONAL | CONTROL, producer_id=1, producer_epoch=0, base_sequence=0)
    assert refusal(Home().log().append, batch, NOW, in_transaction=True) == ErrorCode.INVALID_RECORD


def test_the_epoch_of_an_ended_transaction_is_fenced_by_a_marker_with_a_higher_one() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    home.log().append_marker(1, 1, False, 0, NOW)
    assert refusal(writer.send, b"b") == ErrorCode.INVALID_PRODUCER_EPOCH
    writer.begin_epoch()
    writer.sequence = 1
    assert refusal(writer.send, b"c") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    writer.sequence = 0
    assert writer.send(b"c").base_offset == 2


def test_where_each_transaction_has_an_epoch_an_unknown_producer_begins_at_zero() -> None:
    home = Home()
    late = batch_of(b"b", attributes=TRANSACTIONAL, producer_id=1, producer_epoch=3, base_sequence=1)
    code = refusal(home.log().append, late, NOW, in_transaction=True, epoch_bumped=True)
    assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert home.log().append(late, NOW, in_transaction=True).base_offset == 0


# -- markers


def test_a_marker_is_a_control_batch_that_says_how_it_ended() -> None:
    home = Home()
    writer = Writer(home, producer_id=7, epoch=3)
    writer.send(b"a")
    assert writer.end(commit=False, coordinator_epoch=5).base_offset == 1
    batch = read_batches(home.log())[-1]
    header = BatchHeader.parse(batch)
    assert (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence) == (0x30, 7, 3, -1)
    assert read_end_marker(batch, header) == EndMarker(commit=False, coordinator_epoch=5)


def test_a_marker_of_an_older_producer_epoch_is_refused() -> None:
    home = Home()
    writer = Writer(home, epoch=4)
    writer.send(b"a")
    assert refusal(home.log().append_marker, 1, 3, True, 0, NOW) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert home.log().last_stable == 0


def test_a_marker_of_an_older_coordinator_is_refused() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    writer.end(commit=True, coordinator_epoch=5)
    writer.send(b"b")
    assert refusal(writer.end, commit=True, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert home.restart().last_stable == 2
    assert refusal(writer.end, commit=True, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    writer.end(commit=True, coordinator_epoch=5)
    assert home.log().last_stable == 4


def test_a_late_copy_of_the_marker_before_does_not_end_the_next_transaction() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    log = home.log()
    log.append_marker(1, 1, True, 0, NOW, epoch_bumped=True)
    log.append_marker(1, 1, True, 0, NOW, epoch_bumped=True)
    writer.begin_epoch()
    writer.send(b"b")
    assert refusal(log.append_marker, 1, 1, True, 0, NOW, epoch_bumped=True) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.last_stable == 3


def test_the_last_epoch_of_all_may_be_said_twice() -> None:
    home = Home()
    writer = Writer(home, epoch=32767)
    writer.send(b"a")
    home.log().append_marker(1, 32767, False, 0, NOW, epoch_bumped=True)
    assert home.log().last_stable == 2


def test_a_marker_without_a_transaction_changes_nothing_for_readers() -> None:
    home = Home()
    home.append(b"a")
    home.log().append_marker(1, 0, False, 0, NOW)
    log = home.log()
    assert (log.last_stable, log.log_end) == (2, 2)
    assert log.aborted_transactions(0, 2) == []
    assert committed_values(log) == [b"a"]


# -- the last stable offset


def test_the_last_stable_offset_is_the_first_of_any_open_transaction() -> None:
    home = Home()
    one, two, three = (Writer(home, producer_id) for producer_id in (1, 2, 3))
    home.append(b"plain")
    one.send(b"a")
    two.send(b"b")
    three.send(b"c")
    log = home.log()
    assert log.last_stable == 1
    two.commit()
    assert log.last_stable == 1
    one.abort()
    assert log.last_stable == 3
    one.send(b"d")
    assert log.last_stable == 3
    three.commit()
    assert log.last_stable == 6
    one.commit()
    assert log.last_stable == log.log_end == 9


def test_readers_of_committed_records_stop_there_and_others_do_not() -> None:
    home = Home()
    writer = Writer(home)
    home.append(b"plain")
    writer.send(b"a")
    home.append(b"later")
    assert committed_values(home.log()) == [b"plain"]
    assert values(home.log()) == [b"plain", b"a", b"later"]
    writer.commit()
    assert committed_values(home.log()) == [b"plain", b"a", b"later"]


@pytest.mark.parametrize("how", ["restart", "kill", "power_cut"])
def test_open_transactions_survive(how: str) -> None:
    home = Home()
    one, two = Writer(home, 1), Writer(home, 2)
    home.append(b"plain")
    one.send(b"a")
    two.send(b"b")
    one.commit()
    home.log().flush()
    log = getattr(home, how)()
    assert log.last_stable == 2
    assert log.has_transaction(2, 0)
    assert not log.has_transaction(1, 0)
    assert two.send(b"c", in_transaction=False).last_offset >= 4
    two.commit()
    assert log.last_stable == log.log_end


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_the_oldest_open_transaction_is_known_after_a_restart_whoever_wrote_last(how: str) -> None:
    home = Home()
    one, two = Writer(home, 1), Writer(home, 2)
    one.send(b"a")
    two.send(b"b")
    one.send(b"c")
    log = getattr(home, how)()
    assert log.has_transaction(1, 0)
    assert log.last_stable == 0
    one.commit()
    assert log.last_stable == 1


def test_a_log_that_was_not_loaded_yet_knows_its_last_stable_offset() -> None:
    home = Home()
    writer = Writer(home)
    home.append(b"plain")
    writer.send(b"a")
    log = home.restart()
    assert (log.last_stable, log.is_loaded) == (1, False)


def test_an_idle_producer_in_a_transaction_is_not_forgotten() -> None:
    home = Home()
    idle, open_one = Writer(home, 1), Writer(home, 2)
    idle.send(b"a")
    open_one.send(b"b")
    idle.commit()
    home.log().expire_producers(NOW + 10 * DAY_MS)
    assert [producer_id for producer_id, _ in home.log().producers()] == [2]
    assert home.log().last_stable == 1


# -- what was aborted


def test_aborted_records_are_told_to_those_who_would_read_them() -> None:
    home = Home()
    one, two = Writer(home, 1), Writer(home, 2)
    one.send(b"a")  # 0
    two.send(b"b")  # 1
    one.abort()  # 2
    one.send(b"c")  # 3
    two.abort()  # 4
    one.commit()  # 5
    log = home.log()
    assert log.aborted_transactions(0, 6) == [(1, 0), (2, 1)]
    assert log.aborted_transactions(2, 6) == [(1, 0), (2, 1)]
    assert log.aborted_transactions(3, 6) == [(2, 1)]
    assert log.aborted_transactions(0, 1) == [(1, 0)]
    assert log.aborted_transactions(5, 6) == []
    assert committed_values(log) == [b"c"]
    assert values(log)[:2] == [b"a", b"b"]


def test_a_transaction_that_began_behind_a_read_is_not_told_to_it() -> None:
    home = Home()
    long, short = Writer(home, 1), Writer(home, 2)
    long.send(b"a")  # 0
    home.append(b"plain")  # 1
    short.send(b"b")  # 2
    short.abort()  # 3
    long.abort()  # 4
    assert home.log().aborted_transactions(0, 2) == [(1, 0)]
    assert home.log().aborted_transactions(0, 3) == [(2, 2), (1, 0)]


def fill(home: Home, count: int = 12) -> None:
    """Enough plain records to begin new segments."""
    for _ in range(count):
        home.append(b"x" * 300, key=b"filler")


def test_a_transaction_over_segments_is_left_out_in_all_of_them() -> None:
    home = Home()
    writer = Writer(home)
    expected = []
    for number in range(20):
        writer.send(b"never" * 50)
        expected.append(home.append(b"%d" % number).base_offset)
    writer.abort()
    log = home.log()
    assert len(log.segments) > 3
    assert committed_values(log) == [b"%d" % number for number in range(20)]
    assert committed_values(log, max_bytes=700) == [b"%d" % number for number in range(20)]
    for offset in expected:
        assert log.aborted_transactions(offset, offset + 1) == [(1, 0)]


def test_a_read_is_told_no_more_than_it_may_meet() -> None:
    home = Home(LogConfig(segment_bytes=1 << 20, index_interval_bytes=256))
    writer = Writer(home)
    for _ in range(100):
        writer.send(b"x" * 100)
        writer.abort()
    log = home.log()
    told = log.aborted_in_read(20, 400)
    assert told[0] == (1, 20)
    assert len(told) < 20
    assert len(log.aborted_in_read(0, 1 << 20)) == 100


@pytest.mark.parametrize("how", ["restart", "kill", "power_cut"])
def test_what_was_aborted_is_known_after(how: str) -> None:
    home = Home()
    writer, other = Writer(home, 1), Writer(home, 2)
    other.send(b"long")
    for number in range(6):
        writer.send(b"never%d" % number)
        writer.abort()
        fill(home, 3)
    writer.send(b"always")
    writer.commit()
    other.abort()
    home.log().flush()
    before = home.log().aborted_transactions(0, home.log().log_end)
    assert len(before) == 7
    log = getattr(home, how)()
    assert log.aborted_transactions(0, log.log_end) == before
    assert committed_values(log)[-1] == b"always"
    assert not any(one is not None and one.startswith((b"never", b"long")) for one in committed_values(log))
    writer.send(b"never again")
    writer.abort()
    log = getattr(home, how)()
    assert log.aborted_transactions(0, log.log_end)[:7] == before


def test_a_list_that_was_written_before_the_segment_grew_is_not_believed() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"never")
    writer.abort()
    home.restart()
    writer.send(b"nor this")
    writer.abort()
    home.log().flush()
    home.store.checkpoint()
    log = home.kill()
    assert log.aborted_transactions(0, log.log_end) == [(1, 0), (1, 2)]
    assert committed_values(log) == []


# -- deleting


def test_deletion_passes_an_open_transaction_and_then_bounds_it() -> None:
    home = Home()
    writer = Writer(home)
    home.append(b"plain")
    writer.send(b"a")
    home.append(b"later")
    assert home.log().delete_before(2) == 2
    assert home.log().last_stable == 2
    assert home.kill().last_stable == 2
    writer.send(b"b", in_transaction=False)
    writer.abort()
    assert home.log().last_stable == 5
    assert committed_values(home.log()) == [b"later"]


def test_a_transaction_is_still_open_when_all_its_segments_are_gone() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    fill(home, 20)
    log = home.log()
    log.flush()
    log.delete_before(log.log_end)
    assert not log.segments
    assert home.kill().has_transaction(1, 0)
    assert home.log().last_stable == home.log().log_end
    assert home.append(b"next").base_offset == 21
    assert home.log().last_stable == 21
    writer.commit()
    assert home.log().last_stable == 23


def test_the_list_of_a_deleted_segment_goes_with_it() -> None:
    home = Home()
    writer = Writer(home)
    writer.send(b"a")
    writer.abort()
    fill(home)
    home.log().flush()
    assert "00000000000000000000.txnindex" in home.names()
    home.log().delete_before(home.log().segments[1].base_offset)
    assert not any(name.endswith(".txnindex") for name in home.names())
    assert home.log().aborted_transactions(0, home.log().log_end) == []


# -- the broker's own batches


def own(home: Home, producer: tuple[int, int]) -> int:
    batch = build_plain_batch([(b"group", b"offset")], home.now_ms, producer=producer)
    return home.log().append_own(batch, home.now_ms).base_offset


def test_the_broker_writes_in_the_name_of_a_producer_without_sequence_numbers() -> None:
    home = Home()
    assert [own(home, (1, 0)), own(home, (1, 0)), own(home, (2, 0))] == [0, 1, 2]
    log = home.log()
    assert log.last_stable == 0
    log.append_marker(1, 0, True, 0, NOW)
    assert log.last_stable == 2
    assert home.kill().last_stable == 2
    assert dict(home.log().producers())[1].last_sequence == -1


def test_the_broker_does_not_write_for_an_older_epoch() -> None:
    home = Home()
    home.log().append_marker(1, 3, False, 0, NOW)
    assert refusal(own, home, (1, 2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert own(home, (1, 3)) == 1


def test_producers_are_described_with_their_transactions() -> None:
    home = Home(SMALL)
    writer = Writer(home, 9, epoch=2)
    home.append(b"plain")
    writer.send(b"a", b"b")
    [(producer_id, producer)] = home.log().producers()
    assert (producer_id, producer.epoch, producer.last_sequence) == (9, 2, 1)
    assert (producer.txn_start_offset, producer.coordinator_epoch) == (1, -1)
    writer.end(commit=True, coordinator_epoch=4)
    [(_, producer)] = home.restart().producers()
    assert (producer.txn_start_offset, producer.coordinator_epoch, producer.last_sequence) == (-1, 4, 1)
