"""Compaction of transactions: what was aborted goes, what is open waits, markers outlive their records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.log.support import HOUR_MS, Home, read_all, read_batches
from tests.unit.log.test_compaction import compact, fill, put, table
from tests.unit.log.transactional import Writer, committed

from lowwater.log.compaction import execute
from lowwater.log.config import DAY_MS
from lowwater.log.partition_log import PartitionLog
from lowwater.wire.plain_batch import build_plain_batch
from lowwater.wire.records import BatchHeader


def kept(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """Offset and value of each record that a reader of committed records gets."""
    return [(one.offset, one.value) for one in committed(log) if one.key != b"filler"]


def markers(log: PartitionLog) -> list[int]:
    headers = [BatchHeader.parse(batch) for batch in read_batches(log)]
    return [header.base_offset for header in headers if header.is_control]


def stored(log: PartitionLog) -> list[bytes | None]:
    headers = {BatchHeader.parse(batch).base_offset: BatchHeader.parse(batch) for batch in read_batches(log)}
    control = {offset for offset, header in headers.items() if header.is_control}
    return [one.value for one in read_all(log) if one.key != b"filler" and one.offset not in control]


def test_nothing_beyond_the_last_stable_offset_is_compacted() -> None:
    home = table()
    writer = Writer(home)
    put(home, (b"a", b"1"))
    fill(home)
    put(home, (b"a", b"2"))
    writer.put((b"a", b"3"))
    fill(home)
    fill(home)
    assert home.log().last_stable == 3
    compact(home)
    assert home.log().clean_until <= 3
    assert stored(home.log()) == [b"1", b"2", b"3"]
    writer.commit()
    fill(home)
    compact(home)
    assert kept(home.log()) == [(3, b"3")]


def test_an_aborted_value_goes_and_the_committed_one_before_it_stays() -> None:
    home = table()
    writer = Writer(home)
    put(home, (b"a", b"1"), (b"b", b"2"))
    writer.put((b"a", b"never"), (b"c", b"never"))
    writer.put((b"a", b"nor this"))
    writer.abort()
    writer.put((b"b", b"3"))
    writer.commit()
    fill(home)
    compact(home)
    assert kept(home.log()) == [(0, b"1"), (6, b"3")]
    assert stored(home.log()) == [b"1", b"3"]


def test_an_aborted_tombstone_deletes_nothing() -> None:
    home = table()
    writer = Writer(home)
    put(home, (b"a", b"1"))
    writer.put((b"a", None))
    writer.abort()
    fill(home)
    compact(home)
    assert kept(home.log()) == [(0, b"1")]


def test_records_of_a_transaction_that_was_aborted_in_a_later_segment_go_too() -> None:
    home = table()
    writer = Writer(home)
    put(home, (b"a", b"1"))
    writer.put((b"a", b"never"))
    fill(home)
    writer.abort()
    fill(home)
    assert home.log().segments[0].next_offset <= 3
    compact(home)
    assert kept(home.log()) == [(0, b"1")]
    assert home.kill().last_stable == home.log().log_end
    assert kept(home.log()) == [(0, b"1")]


def test_a_marker_stays_until_its_records_are_gone_and_then_as_long_as_a_tombstone() -> None:
    home = table(delete_retention_ms=HOUR_MS)
    writer = Writer(home)
    writer.put((b"a", b"1"))
    marker = writer.commit().base_offset
    fill(home)
    compact(home)
    assert marker in markers(home.log())
    for number in range(6):  # more batches than a log remembers of one producer
        writer.put((b"a", b"%d" % number))
    writer.commit()
    fill(home)
    compact(home)  # here the record goes, which the marker was needed for
    assert marker in markers(home.log())
    fill(home)
    compact(home)  # here its time begins
    assert marker in markers(home.log())
    [header] = [BatchHeader.parse(one) for one in read_batches(home.log())][:1]
    assert (header.base_offset, header.is_control) == (marker, True)
    assert header.delete_horizon_ms == home.now_ms + HOUR_MS
    home.now_ms += HOUR_MS - 1
    fill(home)
    compact(home)
    assert marker in markers(home.log())
    home.now_ms += 1
    fill(home)
    compact(home)
    assert marker not in markers(home.log())
    assert kept(home.log()) == [(8, b"5")]


def test_a_marker_of_aborted_records_tells_readers_as_long_as_a_batch_is_left() -> None:
    home = table(delete_retention_ms=HOUR_MS)
    writer = Writer(home)
    writer.put((b"a", b"never"))
    marker = writer.abort().base_offset
    fill(home)
    compact(home)
    [empty, *_] = [BatchHeader.parse(one) for one in read_batches(home.log())]
    assert (empty.base_offset, empty.record_count, empty.is_transactional) == (0, 0, True)
    assert marker in markers(home.log())
    assert home.log().aborted_transactions(0, 10) == [(1, 0)]
    home.kill()
    assert home.log().aborted_transactions(0, 10) == [(1, 0)]
    again = Writer(home)
    assert again.put((b"a", b"never"), in_transaction=False).duplicate


def test_the_last_marker_of_a_producer_that_left_nothing_else_stays() -> None:
    home = table(delete_retention_ms=HOUR_MS)
    home.log().append_marker(1, 5, False, 0, home.now_ms)
    home.log().append_marker(2, 5, False, 0, home.now_ms)
    fill(home)
    compact(home)
    home.now_ms += HOUR_MS
    fill(home)
    compact(home)
    assert markers(home.log()) == [0, 1]
    home.now_ms += DAY_MS
    Writer(home, 1, epoch=5).put((b"a", b"1"))
    home.log().expire_producers(home.now_ms)
    Writer(home, 1, epoch=5).end(commit=True)
    fill(home)
    compact(home)
    assert markers(home.log()) == [5]


@pytest.mark.parametrize("how", ["restart", "kill", "power_cut"])
def test_compacted_transactions_read_the_same_after(how: str) -> None:
    home = table()
    one, two = Writer(home, 1), Writer(home, 2)
    for number in range(8):
        one.put((b"a", b"yes%d" % number), (b"b", b"yes%d" % number))
        two.put((b"a", b"no%d" % number), (b"c", b"no%d" % number))
        one.commit()
        put(home, (b"d", b"plain%d" % number))
        two.abort()
    fill(home)
    compact(home)
    expected = kept(home.log())
    assert [value for _, value in expected] == [b"yes7", b"yes7", b"plain7"]
    log = getattr(home, how)()
    assert kept(log) == expected
    assert log.last_stable == log.log_end
    fill(home)
    compact(home)
    assert kept(home.log()) == expected


def test_offsets_of_groups_committed_in_transactions_are_compacted_alike() -> None:
    home = table()

    def commit_offset(value: bytes, producer: tuple[int, int]) -> None:
        home.log().append_own(build_plain_batch([(b"group", value)], home.now_ms, producer=producer), home.now_ms)

    commit_offset(b"1", (1, 0))
    home.log().append_marker(1, 0, True, 0, home.now_ms)
    commit_offset(b"2", (1, 0))
    home.log().append_marker(1, 0, False, 0, home.now_ms)
    fill(home)
    compact(home)
    assert kept(home.log()) == [(0, b"1")]
    assert home.kill().last_stable == home.log().log_end
    assert dict(home.log().producers())[1].epoch == 0


def test_the_transaction_index_is_exchanged_with_its_segment() -> None:
    home = table(producer_expiration_ms=HOUR_MS)
    writer = Writer(home)
    writer.put((b"a", b"never"))
    writer.abort()
    fill(home)
    home.now_ms += HOUR_MS
    home.log().expire_producers(home.now_ms)
    compact(home)
    fill(home)
    compact(home)
    assert home.log().aborted_transactions(0, 10) == []
    assert home.kill().aborted_transactions(0, 10) == []
    assert stored(home.log()) == []


def test_a_compaction_that_runs_out_of_memory_leaves_later_transactions_as_they_are() -> None:
    home: Home = table()
    writer = Writer(home)
    for number in range(6):
        writer.put((b"key%d" % number, b"never"))
        writer.abort()
        writer.put((b"key%d" % number, b"%d" % number))
        writer.commit()
    fill(home)
    log = home.log()
    log.flush()
    plan = log.plan_compaction(home.now_ms)
    assert plan is not None
    result = execute(replace(plan, keys_max=2))
    assert result.clean_until < log.segments[-1].base_offset
    log.finish_compaction(result)
    assert [value for _, value in kept(log)] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert log.last_stable == log.log_end
    assert [value for _, value in kept(home.kill())] == [b"0", b"1", b"2", b"3", b"4", b"5"]
