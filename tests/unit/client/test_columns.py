"""From fetched bytes to Arrow: the rows of the log and no others, in the promised order, within the promised memory."""

from __future__ import annotations

import random
import struct
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.fetched import P0, P1, P2, RandomLog, batch, rows_of

from lowwater.client.arrow import ROWS_MAX, SCHEMA
from lowwater.client.columns import Held
from lowwater.client.errors import ClientError, CorruptRecordsError, RecordFormatError
from lowwater.client.slices import Arrival, FetchedSlice
from lowwater.merge.mark import EVERYTHING, NOTHING, Mark
from lowwater.types import TopicPartition
from lowwater.wire.records import HEADER_SIZE, BatchHeader, Record, build_batch, encode_batch, seal, set_log_append_time

END = 1 << 40


def held_of(*partitions: TopicPartition, **options: Any) -> Held:
    held = Held(**options)
    for one in partitions or (P0, P1, P2):
        held.add(one, 0, END)
    return held


def fetched(one: TopicPartition, *batches: bytes | bytearray, fetch_offset: int = 0, **more: Any) -> FetchedSlice:
    return FetchedSlice(one, fetch_offset, memoryview(b"".join(batches)), **more)


def places(held: Held, mark: Mark = EVERYTHING, limit: int = ROWS_MAX) -> list[tuple[int, int, int]]:
    """(timestamp, partition, offset) of what is released."""
    return [(row[3], row[1], row[2]) for row in rows_of(held.release(mark, limit).batch)]


def all_rows(held: Held) -> list[Any]:
    rows: list[Any] = []
    while (released := held.release(EVERYTHING)).batch is not None:
        rows += rows_of(released.batch)
    return rows


# -- what comes out


@given(st.integers(0, 1 << 40), st.integers(0, 40), st.integers(0, 200))
def test_rows_are_those_of_the_log(seed: int, fetch_offset: int, cut: int) -> None:
    chance = random.Random(seed)
    logs = [RandomLog(one, chance) for one in (P0, P1)]
    slices = [log.slice(min(fetch_offset, log.end), cut) for log in logs]
    held = held_of(order=None)
    arrivals = held.take(slices)
    expected = [log.rows(one.fetch_offset, len(one.records)) for log, one in zip(logs, slices, strict=True)]
    assert all_rows(held) == expected[0][0] + expected[1][0]
    assert [(one.position, one.rows, one.error) for one in arrivals] == [(at, len(rows), None) for rows, at in expected]


def test_the_schema_is_what_is_promised() -> None:
    held = held_of()
    held.take([fetched(P0, batch(0, 5))])
    arrow = held.release(EVERYTHING).batch
    assert arrow.schema.equals(SCHEMA)
    assert [f"{one.name}: {one.type}" for one in SCHEMA] == [
        "key: binary",
        "value: binary",
        "topic: dictionary<values=string, indices=int32, ordered=0>",
        "partition: int32",
        "offset: int64",
        "timestamp: timestamp[ms, tz=UTC]",
        "timestamp_type: int8",
        "headers: list<item: struct<key: string not null, value: binary> not null>",
    ]


def test_null_is_not_empty_and_a_missing_timestamp_is_null() -> None:
    held = held_of()
    records = [Record(0, -1, None, b"", (("a", None), ("b", b""))), Record(1, 5, b"", None)]
    held.take([fetched(P0, build_batch(records))])
    arrow = held.release(EVERYTHING).batch
    assert arrow.column("timestamp").null_count == 1
    assert rows_of(arrow) == [
        ("cars", 0, 0, -1, 0, None, b"", (("a", None), ("b", b""))),
        ("cars", 0, 1, 5, 0, b"", None, ()),
    ]


def test_a_header_name_that_is_no_text_is_readable_all_the_same() -> None:
    held = held_of()
    held.take([fetched(P0, build_batch([Record(0, 5, None, None, (("a\udcff", b"x"), ("ok", b"y")))]))])
    assert rows_of(held.release(EVERYTHING).batch)[0][-1] == (("a\ufffd", b"x"), ("ok", b"y"))


def test_the_time_of_the_broker_is_that_of_every_row_and_says_so() -> None:
    data = batch(0, 1, 2)
    set_log_append_time(data, 0, 77)
    held = held_of()
    held.take([fetched(P0, data)])
    assert [row[3:5] for row in rows_of(held.release(EVERYTHING).batch)] == [(77, 1), (77, 1)]


def test_topics_found_later_are_added_to_the_dictionary() -> None:
    held = held_of(P0)
    bikes = TopicPartition("bikes", 7)
    held.take([fetched(P0, batch(0, 5))])
    held.add(bikes, 0, END)
    held.take([fetched(bikes, batch(0, 5))])
    assert [row[:2] for row in rows_of(held.release(EVERYTHING).batch)] == [("bikes", 7), ("cars", 0)]


def test_positions_pass_over_batches_that_hold_nothing_for_a_reader() -> None:
    emptied = build_batch([], base_offset=3, last_offset=9)
    [arrival] = held_of().take([fetched(P0, batch(0, 1, 2, 3), emptied, fetch_offset=2)])
    assert (arrival.position, arrival.rows, arrival.newest_ms) == (10, 1, 3)
    [arrival] = held_of().take([fetched(P0, emptied, fetch_offset=5)])
    assert (arrival.position, arrival.rows, arrival.size, arrival.newest_ms) == (10, 0, 0, None)


def test_slices_of_a_partition_that_is_gone_are_ignored() -> None:
    gone = []
    held = held_of(P0)
    assert held.take([fetched(P1, batch(0, 1))], lambda: gone.append(1)) == []
    assert gone == [1]


# -- order


def test_rows_go_by_time_then_by_topic_partition_and_offset_up_to_the_mark() -> None:
    held = held_of()
    held.take([fetched(P1, batch(0, 100, 150, 250)), fetched(P0, batch(0, 100, 200, 100))])
    held.take([fetched(P2, batch(0, 50, 100))])
    assert places(held, NOTHING) == []
    assert places(held, Mark(100, *P1)) == [(50, 2, 0), (100, 0, 0), (100, 0, 2), (100, 1, 0)]
    assert places(held, EVERYTHING, 2) == [(100, 2, 1), (150, 1, 1)]
    assert places(held) == [(200, 0, 1), (250, 1, 2)]


def test_by_partition_no_row_overtakes_another_of_its_partition() -> None:
    held = held_of(order="partition")
    held.take([fetched(P0, batch(0, 100, 300, 200)), fetched(P1, batch(0, 150, 250, 310))])
    held.take([fetched(P0, batch(3, 120, 400), fetch_offset=3)])
    assert [one[1:] for one in places(held)] == [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 3), (1, 2), (0, 4)]


def test_without_an_order_rows_go_as_they_came() -> None:
    held = held_of(order=None)
    held.take([fetched(P1, batch(0, 9, 1)), fetched(P0, batch(0, 5))])
    held.take([fetched(P0, batch(1, 3), fetch_offset=1)])
    assert [one[1:] for one in places(held)] == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert held.late_rows == 0


def test_a_row_without_a_timestamp_goes_with_the_clock_of_its_partition() -> None:
    held = held_of()
    arrivals = held.take([fetched(P0, batch(0, -1, 100, -1, 50, -1)), fetched(P1, batch(0, 99, 101))])
    assert [one[1:] for one in places(held)] == [(0, 0), (0, 3), (1, 0), (0, 1), (0, 2), (0, 4), (1, 1)]
    assert [one.newest_ms for one in arrivals] == [100, 101]
    [arrival] = held_of().take([fetched(P0, batch(0, -1, -1))])
    assert arrival.newest_ms == -1


def test_rows_of_the_future_are_counted_and_do_not_move_the_clock() -> None:
    held = Held(created_ms=1000)
    held.add(P0, 0, 3)
    [arrival] = held.take([fetched(P0, batch(0, 100, 9000, 120, 9500))])
    assert (arrival.future_rows, arrival.newest_ms) == (1, 9500)  # the last came after the beginning
    assert [one[0] for one in places(held, Mark(120, *P0))] == [100, 120]
    by_partition = Held(order="partition", created_ms=1000)
    by_partition.add(P0, 0, 4)
    [arrival] = by_partition.take([fetched(P0, batch(0, 100, 9000, 120))])
    assert (arrival.future_rows, arrival.newest_ms) == (1, 120)
    assert [one[0] for one in places(by_partition, Mark(120, *P0))] == [100, 9000, 120]


def test_late_rows_are_counted() -> None:
    held = held_of()
    held.take([fetched(P0, batch(0, 100, 200))])
    assert held.release(EVERYTHING).late_rows == 0
    held.take([fetched(P0, batch(2, 150, 200, 300), fetch_offset=2)])
    released = held.release(EVERYTHING)
    assert [row[3] for row in rows_of(released.batch)] == [150, 200, 300]
    assert (released.late_rows, held.late_rows) == (1, 1)


# -- bounds


def test_a_batch_has_at_most_64k_rows_and_never_more_bytes_than_fit() -> None:
    held = held_of()
    held.take([fetched(P0, batch(0, *range(70_000)))])
    assert held.release(EVERYTHING, 100_000).batch.num_rows == ROWS_MAX
    held = held_of()
    held.take([fetched(P0, batch(0, *range(10), value=b"x" * 1000))])
    sizes = []
    while (released := held.release(EVERYTHING, bytes_max=3500)).batch is not None:
        sizes.append(released.batch.num_rows)
    assert sizes == [3, 3, 3, 1]
    held.take([fetched(P0, batch(10, 1, value=b"x" * 9000), fetch_offset=10)])
    assert held.release(EVERYTHING, bytes_max=3500).batch.num_rows == 1  # one always goes


def test_bytes_are_held_until_the_memory_of_an_answer_is_let_go() -> None:
    held, gone = held_of(), []
    arrivals = held.take([fetched(P0, batch(0, 1, 2)), fetched(P1, batch(0, 3))], lambda: gone.append(1))
    sizes = {one.partition: one.size for one in arrivals}
    assert sizes[P0] > len(batch(0, 1, 2))
    assert held.release(EVERYTHING, 2).left == [(P0, 2, 0)]
    assert not gone
    assert held.release(EVERYTHING).left == [(P0, 0, sizes[P0]), (P1, 1, sizes[P1])]
    assert gone == [1]


def test_an_answer_whose_batches_were_all_compressed_is_let_go_at_once() -> None:
    held, gone = held_of(), []
    [arrival] = held.take([fetched(P0, batch(0, 1, 2, codec=3, value=b"x" * 5000))], lambda: gone.append(1))
    assert gone == [1]
    assert arrival.size > 10_000  # what came out, not what came
    assert len(all_rows(held)) == 2


def test_a_few_rows_that_stay_do_not_hold_a_large_answer() -> None:
    held, gone = held_of(), []
    slow, fast = batch(0, 500, value=b"s" * 100), batch(0, *range(100), value=b"f" * 1000)
    arrivals = held.take([fetched(P0, fast), fetched(P1, slow)], lambda: gone.append(1))
    released = held.release(Mark(400, *P2))
    assert gone == [1]
    sizes = {one.partition: one.size for one in arrivals}
    left = {one: size for one, _, size in released.left}
    assert left[P0] == sizes[P0]
    assert 100 < sizes[P1] - left.get(P1, 0) < 300
    assert rows_of(held.release(EVERYTHING).batch) == [("cars", 1, 0, 500, 0, b"k0", b"s" * 100, ())]


def test_rows_of_a_removed_partition_are_dropped_and_others_stay() -> None:
    held, gone = held_of(), []
    held.take([fetched(P0, batch(0, 1, 3)), fetched(P1, batch(0, 2, 4))], lambda: gone.append(1))
    assert held.remove(P0) == []
    assert places(held) == [(2, 1, 0), (4, 1, 1)]
    assert gone == [1]
    held.add(P0, 1, END)
    held.take([fetched(P0, batch(0, 1, 3), fetch_offset=1)])
    assert places(held) == [(3, 0, 1)]


def test_only_what_was_released_may_be_committed() -> None:
    held = held_of(P0, P1)
    held.take([fetched(P0, batch(0, 100, 300, 200, 400)), fetched(P1, build_batch([], base_offset=0, last_offset=6))])
    assert held.committable() == {P0: 0, P1: 7}
    assert places(held, Mark(200, *P0)) == [(100, 0, 0), (200, 0, 2)]
    assert held.committable() == {P0: 1, P1: 7}  # 300 at offset 1 is still here
    places(held, Mark(300, *P0))
    assert held.committable() == {P0: 3, P1: 7}
    places(held)
    assert held.committable() == {P0: 4, P1: 7}


def test_an_answer_is_not_decompressed_beyond_the_budget_and_the_rest_comes_again() -> None:
    held = held_of(decompressed_bytes_max=1000)
    data = [batch(at, at, codec=4, value=b"x" * 800) for at in range(5)]
    [arrival] = held.take([fetched(P0, *data)])
    assert (arrival.position, arrival.rows, arrival.error) == (2, 2, None)
    [arrival] = held.take([fetched(P0, *data[2:], fetch_offset=2)])
    assert arrival.position == 4


def test_nothing_is_allocated_per_row() -> None:
    data = memoryview(b"".join(batch(5000 * at, *range(5000), value=b"value" * 4) for at in range(40)))
    held = held_of()

    def million() -> int:
        blocks, rows = 0, 0
        for _ in range(5):
            held.take([FetchedSlice(P0, 0, data)])
            blocks = max(blocks, sys.getallocatedblocks())
            while (released := held.release(EVERYTHING)).batch is not None:
                rows += released.batch.num_rows
                blocks = max(blocks, sys.getallocatedblocks())
        assert rows == 1_000_000
        return blocks

    million()
    before = sys.getallocatedblocks()
    assert million() - before < 3000  # a few for each of the batches


# -- what is wrong


def bomb(codec: int) -> bytearray:
    header = BatchHeader.parse(batch(0, 1))._replace(attributes=codec)
    return encode_batch(header, bytes(8 << 20))


def changed(data: bytearray, code: str, at: int, value: int) -> bytearray:
    struct.pack_into(code, data, at, value)
    seal(data)
    return data


def torn_record(data: bytearray) -> bytearray:
    data[HEADER_SIZE] = 0x7E
    seal(data)
    return data


BAD_BATCHES = {
    "checksum": (lambda: batch(3, 1, 2)[:-1] + b"!", CorruptRecordsError, "checksum"),
    "magic 0": (lambda: changed(batch(3, 1, 2), ">b", 16, 0), RecordFormatError, "magic 0 or 1"),
    "magic 1": (lambda: changed(batch(3, 1, 2), ">b", 16, 1), RecordFormatError, "magic 0 or 1"),
    "magic 3": (lambda: changed(batch(3, 1, 2), ">b", 16, 3), RecordFormatError, "magic above 2"),
    "tiny": (lambda: changed(batch(3, 1, 2), ">i", 8, 5), CorruptRecordsError, "smaller than its header"),
    "negative size": (lambda: changed(batch(3, 1, 2), ">i", 8, -5), CorruptRecordsError, "smaller than its header"),
    "negative count": (lambda: changed(batch(3, 1, 2), ">i", 57, -1), CorruptRecordsError, "contradict"),
    "negative delta": (lambda: changed(batch(3, 1, 2), ">i", 23, -1), CorruptRecordsError, "contradict"),
    "huge count": (lambda: changed(batch(3, 1, 2), ">i", 57, 1 << 30), CorruptRecordsError, "claims 1073741824"),
    "backwards": (lambda: batch(1, 1, 2), CorruptRecordsError, "begins before"),
    "record length": (lambda: torn_record(batch(3, 1, 2)), CorruptRecordsError, "longer than its record"),
    "codec": (lambda: changed(batch(3, 1, 2), ">h", 21, 6), CorruptRecordsError, "codec 6 is unknown"),
    "not zstd": (lambda: changed(batch(3, 1, 2), ">h", 21, 4), CorruptRecordsError, "zstd"),
    **{
        f"bomb {codec}": (
            lambda codec=codec: bomb(codec),
            CorruptRecordsError,
            "bytes come out|too large|begins before",
        )
        for codec in range(1, 5)
    },
}


@pytest.mark.parametrize("what", BAD_BATCHES)
def test_a_bad_batch_is_an_error_of_its_partition_that_says_where(what: str) -> None:
    build, kind, words = BAD_BATCHES[what]
    is_bomb = what.startswith("bomb")
    held = held_of(output_bytes_max=1 << 20)
    good = () if is_bomb else (batch(0, 10, 20, 30),)
    bad, other = held.take([fetched(P0, *good, build(), batch(9, 5)), fetched(P1, batch(0, 15))])  # type: ignore[operator]
    assert isinstance(bad.error, kind)
    at = 0 if is_bomb else 3
    assert (bad.error.topic, bad.error.partition, bad.error.offset, bad.position) == ("cars", 0, at, at)
    with pytest.raises(ClientError, match=words):
        raise bad.error
    assert other == Arrival(P1, 1, 15, 1, other.size, 0, None)
    assert [one[0] for one in places(held)] == ([15] if is_bomb else [10, 15, 20, 30])


@given(st.integers(0, 1 << 40), st.integers(1, 20))
def test_changed_bytes_give_an_error_or_rows_but_never_harm(seed: int, changes: int) -> None:
    chance = random.Random(seed)
    log = RandomLog(P0, chance)
    whole = log.slice(0)
    data = bytearray(whole.records)
    for _ in range(changes if data else 0):
        data[chance.randrange(len(data))] = chance.randrange(256)
    data = _resealed(data) if chance.random() < 0.7 else data
    held = held_of(output_bytes_max=1 << 20, order=chance.choice(("timestamp", "partition", None)))  # type: ignore[arg-type]
    [arrival] = held.take([whole._replace(records=memoryview(data))])
    rows = 0
    while (released := held.release(EVERYTHING, 7)).batch is not None:
        released.batch.validate(full=True)
        rows += released.batch.num_rows
    assert rows == arrival.rows


def _resealed(data: bytearray) -> bytearray:
    """With right checksums wherever a batch can still be found."""
    at = 0
    while at + HEADER_SIZE <= len(data):
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        if size < HEADER_SIZE or at + size > len(data):
            break
        one = data[at : at + size]
        seal(one)
        data[at : at + size] = one
        at += size
    return data
