"""RecordBatch v2: what is written can be read, by us and by other implementations; other bytes are refused."""

from __future__ import annotations

import contextlib
import gzip
import random
import struct
import tracemalloc
from functools import partial

import lz4.frame
import pytest
import snappy
import zstandard
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from lowwater.errors import WireError
from lowwater.wire import compression
from lowwater.wire.record_scan import scan
from lowwater.wire.records import (
    CONTROL,
    LOG_APPEND_TIME,
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    crc_ok,
    read_records,
    read_times,
    seal,
    set_log_append_time,
    set_position,
)

NOW = 1_700_000_000_000
CODECS = range(5)

Headers = tuple[tuple[str, bytes | None], ...]

texts = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), texts), max_size=3).map(tuple)
contents = st.lists(st.tuples(st.integers(-1, 1 << 41), texts, texts, headers), min_size=1, max_size=20)


def records_of(
    content: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> list[Record]:
    return [Record(place, *fields) for place, fields in enumerate(content)]


@given(contents, st.sampled_from(CODECS))
def test_records_come_back_as_they_were_written(content: list, codec: int) -> None:
    records = records_of(content)
    batch = build_batch(records, codec=codec, producer_id=7, producer_epoch=3, base_sequence=11)
    header = BatchHeader.parse(batch)
    assert list(read_records(batch)) == records
    assert crc_ok(batch, header)
    assert header.size == len(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert list(read_times(batch)) == [(record.offset, record.timestamp) for record in records]


close = st.integers(NOW - 2, NOW + 2) | st.integers(NOW - 9_000, NOW + 3_000_000) | st.integers(-1, 1 << 41)


@given(st.lists(st.tuples(close, st.integers(0, 20_000)), min_size=1, max_size=40), close, st.sampled_from(CODECS))
def test_records_stamped_at_a_time_or_later_are_found_among_the_others(
    content: list[tuple[int, int]], since_ms: int, codec: int
) -> None:
    """Whatever the distance in time and the size of a record, which are of one to five bytes each."""
    records = [Record(place, stamped, None, bytes(size)) for place, (stamped, size) in enumerate(content)]
    batch = build_batch(records, codec=codec)
    wanted = [(one.offset, one.timestamp) for one in records if one.timestamp >= since_ms]
    assert list(read_times(batch, since_ms=since_ms)) == wanted
    set_log_append_time(batch, codec, NOW)
    assert len(list(read_times(batch, since_ms=since_ms))) == (len(records) if since_ms <= NOW else 0)


@given(contents, st.sampled_from(CODECS))
def test_scanning_finds_the_same_records(content: list, codec: int) -> None:
    records = records_of(content)
    batch = build_batch(records, codec=codec)
    header = BatchHeader.parse(batch)
    _, found = scan(batch, header)
    assert [(one.offset_delta, one.key, one.has_value) for one in found] == [
        (record.offset, record.key, record.value is not None) for record in records
    ]
    assert [header.base_timestamp + one.timestamp_delta for one in found] == [record.timestamp for record in records]


@given(contents, st.sampled_from(CODECS))
@settings(max_examples=50)
def test_kafka_python_and_aiokafka_read_what_we_write(content: list, codec: int) -> None:
    records = records_of(content)
    batch = bytes(build_batch(records, codec=codec))
    for reader in (DefaultRecordBatch, AiokafkaBatch):
        theirs = reader(bytearray(batch))
        assert theirs.validate_crc()
        found = [(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)) for one in theirs]
        assert found == [tuple(record) for record in records]


@given(contents, st.sampled_from(CODECS))
@settings(max_examples=50)
def test_we_read_what_kafka_python_writes(content: list, codec: int) -> None:
    records = records_of(content)
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    assert crc_ok(batch, BatchHeader.parse(batch))
    assert list(read_records(batch)) == records


def test_flags_are_told_apart() -> None:
    batch = build_batch([Record(0, NOW, b"k", b"v")], attributes=CONTROL | LOG_APPEND_TIME, codec=compression.LZ4)
    header = BatchHeader.parse(batch)
    assert header.is_control
    assert header.has_log_append_time
    assert not header.is_transactional
    assert header.codec == compression.LZ4
    assert header.delete_horizon_ms is None


def test_place_and_epoch_are_outside_the_crc() -> None:
    batch = build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW, b"k", b"v")])
    set_position(batch, 1 << 40, 77)
    header = BatchHeader.parse(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (1 << 40, (1 << 40) + 1, (1 << 40) + 2)
    assert header.leader_epoch == 77
    assert crc_ok(batch, header)


def test_append_time_is_sealed_with_a_new_crc() -> None:
    batch = build_batch([Record(0, 5, b"k", b"v"), Record(1, 6, b"k", b"v")], codec=compression.GZIP)
    set_log_append_time(batch, BatchHeader.parse(batch).attributes, NOW)
    header = BatchHeader.parse(batch)
    assert crc_ok(batch, header)
    assert header.codec == compression.GZIP
    assert [record.timestamp for record in read_records(batch)] == [NOW, NOW]


def test_header_names_that_are_no_text_survive() -> None:
    batch = build_batch([Record(0, NOW, b"k", b"v", (("\udcff\udcfe", b"x"),))])
    [record] = read_records(batch)
    assert build_batch([record]) == batch


# -- hostile bytes


def forged(payload: bytes, count: int = 1, **fields: int) -> bytearray:
    """A batch with a right CRC around any payload."""
    batch = build_batch([Record(0, NOW, None, None)], **fields)
    del batch[61:]
    batch += payload
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 57, count)
    seal(batch)
    return batch


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff" * 5,
        b"\xff" * 30,
        b"\x0e",  # says 7 bytes
        b"\x0c\x00\x00\x00\x01\x01\x00\x00",  # a byte too many
        b"\x0c\x00\x00\x00\x50\x01\x00",  # a key of 40 bytes
        b"\x0c\x00\x00\x00\x01\x50\x00",  # a value of 40 bytes
        b"\x0c\x00\x00\x00\x01\x01\x50",  # 40 headers
        b"\x0c\x00\x00\x02\x01\x01\x00",  # an offset outside the batch
        b"\x0c\x00\x00\x01\x01\x01\x00",  # an offset below it
        b"\x01\x00\x00\x00\x01\x01\x00",  # a negative length
        b"\x0c\x00\x00\x00\x01\x01\x01",  # a negative number of headers
        b"\x0e\x00\x00\x00\x01\x01\x02\x01",  # a header without a name
    ],
)
def test_records_that_do_not_fit_are_refused(payload: bytes) -> None:
    with pytest.raises(CorruptBatch):
        list(read_records(forged(payload)))


@pytest.mark.parametrize("count", [-5, 2, 1 << 30, (1 << 31) - 1])
def test_counts_that_the_bytes_do_not_hold_are_refused(count: int) -> None:
    batch = forged(b"\x0c\x00\x00\x00\x01\x01\x00", count)
    for reader in (read_records, read_times):
        with pytest.raises(CorruptBatch):
            list(reader(batch))
    with pytest.raises(CorruptBatch):
        scan(batch, BatchHeader.parse(batch))


@pytest.mark.parametrize("size", range(0, 61, 7))
def test_a_piece_of_a_header_is_refused(size: int) -> None:
    with pytest.raises(CorruptBatch):
        BatchHeader.parse(bytes(size))


def test_mutated_batches_give_typed_errors_and_bounded_memory() -> None:
    draw = random.Random(3)
    originals = [
        build_batch([Record(place, NOW, b"key", b"value" * 20, (("h", b"x"),)) for place in range(20)], codec=codec)
        for codec in CODECS
    ]
    tracemalloc.start()
    for _ in range(3000):
        batch = bytearray(draw.choice(originals))
        for _ in range(draw.randint(1, 6)):
            batch[draw.randrange(12, len(batch))] = draw.randrange(256)
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        for read in (read_records, read_times, partial(read_times, since_ms=NOW + 1)):
            with contextlib.suppress(WireError):
                list(read(batch, limit=1 << 20))
        with contextlib.suppress(WireError):
            scan(batch, BatchHeader.parse(batch), limit=1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


@given(st.binary(max_size=300), st.integers(0, 7), st.integers(-2, 1 << 31 - 1))
def test_any_payload_is_read_or_refused(payload: bytes, codec: int, count: int) -> None:
    batch = forged(payload, min(count, (1 << 31) - 1), attributes=0)
    struct.pack_into(">h", batch, 21, codec)
    for read in (read_records, read_times, partial(read_times, since_ms=NOW)):
        with contextlib.suppress(WireError):
            list(read(batch, limit=1 << 16))


# -- compression


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 100, 32 * 1024, 32 * 1024 + 1, 64 * 1024 + 1, 1_000_000])
@pytest.mark.parametrize("kind", ["repeated", "random"])
def test_what_is_compressed_comes_back(codec: int, size: int, kind: str) -> None:
    data = (b"abc" * size)[:size] if kind == "repeated" else random.Random(size).randbytes(size)
    assert bytes(compression.decompress(codec, compression.compress(codec, data))) == data


def test_other_implementations_are_understood() -> None:
    data = b"hello kafka " * 10_000
    assert bytes(compression.decompress(compression.GZIP, gzip.compress(data))) == data
    assert bytes(compression.decompress(compression.GZIP, gzip.compress(data) + gzip.compress(data))) == data * 2
    assert bytes(compression.decompress(compression.SNAPPY, snappy.compress(data))) == data  # as librdkafka writes it
    assert bytes(compression.decompress(compression.LZ4, lz4.frame.compress(data))) == data
    linked = lz4.frame.compress(data, block_linked=True, store_size=False, content_checksum=True)
    assert bytes(compression.decompress(compression.LZ4, linked)) == data
    assert bytes(compression.decompress(compression.ZSTD, zstandard.compress(data))) == data
    streamed = zstandard.ZstdCompressor().compressobj()
    unsized = streamed.compress(data) + streamed.flush()
    assert bytes(compression.decompress(compression.ZSTD, unsized)) == data


def test_other_implementations_understand_us() -> None:
    data = random.Random(1).randbytes(100_000) + b"x" * 100_000
    assert gzip.decompress(compression.compress(compression.GZIP, data)) == data
    assert lz4.frame.decompress(compression.compress(compression.LZ4, data)) == data
    assert zstandard.ZstdDecompressor().decompress(compression.compress(compression.ZSTD, data)) == data


def test_lz4_blocks_are_independent_as_javas_reader_wants() -> None:
    assert compression.compress(compression.LZ4, b"x" * 100)[4] & 0x20


@pytest.mark.parametrize("codec", [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD])
def test_a_bomb_is_refused_without_the_memory_it_wants(codec: int) -> None:
    bomb = compression.compress(codec, bytes(64 << 20))
    tracemalloc.start()
    with pytest.raises(compression.CompressionError):
        compression.decompress(codec, bomb, limit=1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
    limit = 64 << 20
    assert len(compression.decompress(codec, bomb, limit=limit)) == limit


@pytest.mark.parametrize("codec", [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD])
def test_what_is_cut_off_or_no_stream_at_all_is_refused(codec: int) -> None:
    data = compression.compress(codec, random.Random(2).randbytes(5000))
    for damaged in (data[:-1], data[: len(data) // 2], data[:3], b"\x00" * 50, b"\xff" * 50):
        with pytest.raises(compression.CompressionError):
            compression.decompress(codec, damaged)


@given(st.binary(max_size=200), st.integers(0, 9))
def test_any_bytes_are_decompressed_or_refused(data: bytes, codec: int) -> None:
    with contextlib.suppress(compression.CompressionError):
        compression.decompress(codec, data, limit=1 << 16)
