"""Bytes that no broker should send, over real sockets: typed errors that say where, others read on, memory bounded."""

from __future__ import annotations

import asyncio
import random
import resource
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.fuzz import hostile_batches
from tests.integration.client.scripted import TOPIC, Scripted, scripted

import lowwater
from lowwater import AsyncReader
from lowwater.client.errors import ClientError, CorruptRecordsError, ProtocolError, RecordFormatError
from lowwater.wire import compression
from lowwater.wire.records import Record, build_batch

GOOD_ROWS = 5
BOMB_MEGABYTES = 600
SPARE_KB = 450 * 1024  # what a batch may give, and the reader itself
QUICKLY = {"default.api.timeout.ms": 1_500, "retry.backoff.ms": 20, "reconnect.backoff.ms": 20}


def good(count: int = GOOD_ROWS, codec: int = 0) -> bytes:
    return bytes(build_batch([Record(at, 100 + at, b"k", b"v") for at in range(count)], base_offset=0, codec=codec))


@cache
def bomb() -> bytes:
    """Half a megabyte that unpacks to a thousand times as much; made without ever holding that."""
    packing = zlib.compressobj(1, zlib.DEFLATED, 31)
    pieces = [packing.compress(b"\0" * (1 << 20)) for _ in range(BOMB_MEGABYTES)]
    return hostile_batches._raw(b"".join([*pieces, packing.flush()]), 1, compression.GZIP)


def old_format() -> bytes:
    """Longer than the header of a batch of today."""
    made = (hostile_batches.old_format(random.Random(seed)) for seed in range(100))
    return next(data for data in made if len(data) > 100)


def bad_checksum() -> bytes:
    data = bytearray(good())
    data[-1] ^= 1
    return bytes(data)


HOSTILE: dict[str, tuple[Callable[[], bytes], type[ClientError]]] = {
    "wrong checksum": (bad_checksum, CorruptRecordsError),
    "endless varint": (lambda: hostile_batches._around(b"\x0c\x00" + b"\xff" * 11, 1, 0), CorruptRecordsError),
    "a record longer than its batch": (
        lambda: hostile_batches._around(b"\xfe\xff\xff\xff\x0f" + b"\0" * 10, 1, 0),
        CorruptRecordsError,
    ),
    "two billion records in a few bytes": (
        lambda: hostile_batches._around(b"\0" * 50, 2**31 - 1, 0),
        CorruptRecordsError,
    ),
    "no data for its codec": (lambda: hostile_batches._raw(b"\x07" * 100, 1, compression.ZSTD), CorruptRecordsError),
    "zip bomb": (bomb, CorruptRecordsError),
    "format of long ago": (old_format, RecordFormatError),
}


def read_without_the_bad(broker: Scripted, **options: Any) -> tuple[int, list[ClientError]]:
    """Rows, and what was told until everything good was read."""
    rows, told = 0, []
    with lowwater.read(TOPIC, bootstrap=broker.bootstrap, stop="latest", config=QUICKLY, **options) as reader:
        while not reader.is_finished:
            try:
                rows += reader.poll(1_000).num_rows
            except ClientError as error:
                told.append(error)
                reader.drop(TOPIC, 1)
    return rows, told


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Kernels may have to be compiled for the first time, which takes memory that is not asked about here."""
    with scripted({0: good(codec=1), 1: good()}, {0: GOOD_ROWS, 1: GOOD_ROWS}) as broker:
        assert read_without_the_bad(broker) == (2 * GOOD_ROWS, [])


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_batch_is_an_error_of_its_partition_alone(kind: str) -> None:
    make, expected = HOSTILE[kind]
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with scripted({0: good(), 1: make()}, {0: GOOD_ROWS, 1: 7}) as broker:
        rows, told = read_without_the_bad(broker)
    assert rows == GOOD_ROWS
    assert [(type(error), error.topic, error.partition) for error in told] == [(expected, TOPIC, 1)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < SPARE_KB


@pytest.mark.parametrize("seed", range(40))
def test_whatever_a_partition_holds_the_others_are_read_and_the_process_lives(seed: int) -> None:
    chance = random.Random(seed)
    data = b"".join(hostile_batches.produced_bytes(chance) for _ in range(chance.randrange(1, 4)))
    with scripted({0: good(codec=chance.randrange(5)), 1: data}, {0: GOOD_ROWS, 1: 1 << 40}) as broker:
        rows, told = read_without_the_bad(broker, order=None, start={f"{TOPIC}[0]": 0, f"{TOPIC}[1]": 0})
    assert rows >= GOOD_ROWS
    assert [error.partition for error in told] in ([], [1])


def test_asyncio_is_told_the_same() -> None:
    async def read(bootstrap: str) -> None:
        async with AsyncReader(TOPIC, bootstrap=bootstrap, stop="latest", config=QUICKLY) as reader:
            async for _ in reader:
                pass

    with (
        scripted({0: good(), 1: bad_checksum()}, {0: GOOD_ROWS, 1: 7}) as broker,
        pytest.raises(CorruptRecordsError, match="checksum"),
    ):
        asyncio.run(read(broker.bootstrap))


FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "claims two gigabytes": lambda answer: struct.pack(">i", 2**31 - 1) + answer[4:],
    "claims less than nothing": lambda answer: struct.pack(">i", -5) + answer[4:],
    "ends in the middle": lambda answer: struct.pack(">i", len(answer) // 2) + answer[4 : 4 + len(answer) // 2],
    "is of another request": lambda answer: answer[:4] + b"\x7f\x7f\x7f\x7f" + answer[8:],
    "is noise": lambda answer: answer[:8] + random.Random(3).randbytes(len(answer) - 8),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_an_answer_that_is_none_is_told_and_costs_nothing(kind: str) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with (
        scripted({0: good(), 1: good()}, {0: GOOD_ROWS, 1: GOOD_ROWS}, FRAMES[kind]) as broker,
        lowwater.read(TOPIC, bootstrap=broker.bootstrap, config=QUICKLY) as reader,
        pytest.raises(ClientError) as raised,
    ):
        next(iter(reader))
    assert isinstance(raised.value, ProtocolError) or raised.value.retriable
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < SPARE_KB
