"""Records to columns: the same as read one by one, and nothing but a fault for bytes that are no records."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.columns_of import ScanFault, scan_batch, scan_payloads

from lowwater.wire.kernels import scanning
from lowwater.wire.records import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    read_records,
    set_log_append_time,
)

FIELDS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=8), FIELDS), max_size=3).map(tuple)
RECORDS = st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), FIELDS, FIELDS, HEADERS), min_size=1, max_size=20)


def batch_of(fields: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]) -> bytearray:
    return build_batch([Record(place, *one) for place, one in enumerate(fields)])


@given(RECORDS)
def test_columns_hold_what_the_records_say(
    fields: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> None:
    batch = batch_of(fields)
    assert scan_batch(batch).records() == [one._replace(headers=tuple(one.headers)) for one in read_records(batch)]


@given(RECORDS, st.randoms())
def test_rows_are_gathered_in_any_order_from_many_buffers(
    fields: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]], chance: object
) -> None:
    batches = [batch_of(fields), batch_of(fields[::-1])]
    scanned = scan_payloads([(bytes(one)[HEADER_SIZE:], BatchHeader.parse(one)) for one in batches])
    order = list(range(len(scanned.rows))) * 2
    chance.shuffle(order)  # type: ignore[attr-defined]
    in_order = scanned.records()
    assert scanned.records(order) == [in_order[row] for row in order]
    assert scanned.rows["tag"].tolist() == [0] * len(fields) + [1] * len(fields)


def test_null_is_not_empty() -> None:
    [record] = scan_batch(batch_of([(5, None, b"", (("a", None), ("b", b"")))])).records()
    assert record == Record(0, 5, None, b"", (("a", None), ("b", b"")))


def test_records_below_the_first_wanted_offset_are_left_out() -> None:
    batch = batch_of([(place, b"%d" % place, None, ()) for place in range(10)])
    assert [one.offset for one in scan_batch(batch, first_wanted=7).records()] == [7, 8, 9]
    assert scan_batch(batch, first_wanted=10).records() == []


def test_the_append_time_of_a_batch_is_that_of_each_record() -> None:
    batch = batch_of([(place, b"k", None, ()) for place in range(3)])
    set_log_append_time(batch, BatchHeader.parse(batch).attributes, 77)
    assert [one.timestamp for one in scan_batch(batch).records()] == [77, 77, 77]


def test_numbers_of_every_length_are_read() -> None:
    spans = [0, 63, 64, -64, -65, 1 << 30, -(1 << 30), (1 << 62) - 1, -(1 << 62)]
    batch = batch_of([(span, b"x" * (abs(span) % 9000), None, ()) for span in spans])
    assert [one.timestamp for one in scan_batch(batch).records()] == spans


FAULTY = {
    "a number that never ends": (b"\xff" * 12, scanning.BAD_NUMBER),
    "a record longer than its batch": (b"\x7e" + b"\0" * 6, scanning.BAD_LENGTH),
    "a record too short for its fields": (b"\x02\0\0\0\0\0\0", scanning.BAD_LENGTH),
    "a negative length": (b"\x01" + b"\0" * 6, scanning.BAD_LENGTH),
    "an offset outside the batch": (b"\x0c\0\0\x04\1\1\0", scanning.BAD_OFFSET),
    "an offset before the batch": (b"\x0c\0\0\x01\1\1\0", scanning.BAD_OFFSET),
    "an offset that was there before": (b"\x0c\0\0\0\1\1\0" * 2, scanning.BAD_OFFSET),
    "a key longer than its record": (b"\x0c\0\0\0\x7e\1\0", scanning.BAD_LENGTH),
    "a key of less than null": (b"\x0c\0\0\0\x03\1\0", scanning.BAD_LENGTH),
    "a value longer than its record": (b"\x0c\0\0\0\1\x7e\0", scanning.BAD_LENGTH),
    "more headers than bytes": (b"\x0c\0\0\0\1\1\x7e", scanning.BAD_HEADERS),
    "a negative count of headers": (b"\x0c\0\0\0\1\1\1", scanning.BAD_HEADERS),
    "a header without a name": (b"\x10\0\0\0\1\1\2\1\0", scanning.BAD_HEADERS),
    "bytes behind the headers": (b"\x0e\0\0\0\1\1\0\0", scanning.BAD_HEADERS),
    "bytes behind the last record": (b"\x0c\0\0\0\1\1\0\0", scanning.BAD_END),
    "a timestamp that does not fit": (b"\x1e\0" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\0\1\1\0", scanning.BAD_TIME),
    "no record where one is promised": (b"", scanning.BAD_NUMBER),
}


@pytest.mark.parametrize("what", FAULTY)
def test_bytes_that_are_no_record_are_a_fault(what: str) -> None:
    data, fault = FAULTY[what]
    header = BatchHeader.parse(batch_of([(1, None, None, ())]))
    if what == "an offset that was there before":
        header = header._replace(record_count=2, last_offset_delta=1)
    with pytest.raises(ScanFault) as found:
        scan_payloads([(data, header)])
    assert found.value.fault == fault


@given(RECORDS, st.integers(0, 1 << 20), st.integers(0, 255))
def test_a_changed_byte_gives_a_fault_or_what_any_reader_finds(
    fields: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]], place: int, byte: int
) -> None:
    batch = batch_of(fields)
    batch[HEADER_SIZE + place % (len(batch) - HEADER_SIZE)] = byte
    try:
        expected = [one._replace(headers=tuple(one.headers)) for one in read_records(batch)]
    except (CorruptBatch, UnicodeDecodeError):
        return
    try:
        found = scan_batch(batch)
    except ScanFault:
        return  # stricter is allowed: what does not fill its record exactly
    assert found.records() == expected


@given(st.binary(max_size=300), st.integers(1, 40))
def test_any_bytes_give_a_fault_or_records_that_lie_within_them(data: bytes, count: int) -> None:
    header = BatchHeader.parse(batch_of([(0, None, None, ())]))._replace(record_count=count, last_offset_delta=1 << 30)
    try:
        scanned = scan_payloads([(data, header)])
    except ScanFault:
        return
    start = scanned.buffers[0].ctypes.data
    for field in ("key", "value"):
        at = scanned.rows["key_at"] + (scanned.rows["value_from"] if field == "value" else 0)
        ends = at + np.maximum(scanned.rows[f"{field}_size"], 0)
        assert (at >= start).all()
        assert (ends <= start + len(data)).all()


def test_nothing_is_allocated_per_record() -> None:
    batch = batch_of([(place, b"key", b"value" * 10, ()) for place in range(5000)])
    header = BatchHeader.parse(batch)
    payload = bytes(batch)[HEADER_SIZE:]
    scan_payloads([(payload, header)] * 4)
    before = sys.getallocatedblocks()
    scanned = scan_payloads([(payload, header)] * 200)
    assert len(scanned.rows) == 1_000_000
    assert sys.getallocatedblocks() - before < 2000  # of the 200 sections


def test_the_kernels_are_compiled_where_their_cache_cannot_be_written() -> None:
    nowhere = "from numba.core import caching; caching.CacheImpl._locator_classes = []"
    program = (
        f"{nowhere}; from lowwater.wire.kernels import compiling, gathering;"
        " print(compiling.is_cache_writable(), gathering.binary_sizes.signatures)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("False [(Array")
