"""Decompressing the batches of an answer, whatever they hold and however many they are."""

from __future__ import annotations

import random

import pytest

from lowwater.client.slabs import Slabs
from lowwater.client.unpacking import Ratio, Unpacking
from lowwater.wire.compression import GZIP, LZ4, OUTPUT_LIMIT, SNAPPY, ZSTD, CompressionError, compress, fills_room

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)


def texts(count: int, size: int) -> list[bytes]:
    chance = random.Random(count * size)
    words = [chance.randbytes(8) for _ in range(64)]
    return [b"".join(chance.choices(words, k=size // 8)) for _ in range(count)]


def unpacking(packed: list[tuple[int, bytes]], *, limit: int = OUTPUT_LIMIT, room: int = OUTPUT_LIMIT) -> Unpacking:
    return Unpacking(Slabs(), packed, Ratio(), output_bytes_max=limit, room_bytes_max=room)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("count", "size"), [(1, 8), (3, 5_000), (40, 100_000)])
def test_each_batch_has_its_own_bytes(codec: int, count: int, size: int) -> None:
    plain = texts(count, size)
    found = unpacking([(codec, compress(codec, one)) for one in plain])
    assert [bytes(found[place]) for place in range(count)] == plain


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_larger_than_usual_is_there_too(codec: int) -> None:
    plain = [b"a" * 2_000_000, b"b" * 10, b"c" * 3_000_000, b""]
    found = unpacking([(codec, compress(codec, one)) for one in plain])
    assert [bytes(found[place]) for place in range(len(plain))] == plain


def test_a_small_room_changes_nothing() -> None:
    plain = texts(30, 100_000)
    found = unpacking([(LZ4, compress(LZ4, one)) for one in plain], room=150_000)
    assert [bytes(found[place]) for place in range(30)] == plain


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_batch_does_not_touch_the_others(codec: int) -> None:
    plain = texts(40, 100_000)
    packed = [(codec, compress(codec, one)) for one in plain]
    for place in (3, 39):
        packed[place] = (codec, packed[place][1][:1000])
    found = unpacking(packed)
    for place, one in enumerate(plain):
        if place in (3, 39):
            with pytest.raises(CompressionError):
                found[place]
        else:
            assert bytes(found[place]) == one


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_gives_no_more_than_was_allowed(codec: int) -> None:
    found = unpacking([(codec, compress(codec, b"a" * 100_000))], limit=50_000)
    with pytest.raises(CompressionError, match="bytes come out"):
        found[0]


def test_the_room_is_used_again_when_nothing_of_it_is_needed() -> None:
    slabs = Slabs()
    packed = [(LZ4, compress(LZ4, one)) for one in texts(10, 100_000)]
    first = Unpacking(slabs, packed, Ratio(), output_bytes_max=OUTPUT_LIMIT, room_bytes_max=OUTPUT_LIMIT)
    last = first[9]
    del first
    assert slabs.kept_bytes == 0
    del last
    assert slabs.kept_bytes > 0


@pytest.mark.parametrize("codec", [codec for codec in CODECS if fills_room(codec)])
def test_the_room_becomes_as_large_as_answers_need(codec: int) -> None:
    plain = [b"a" * 300_000 + one for one in texts(10, 100_000)]
    packed = [(codec, compress(codec, one)) for one in plain]
    ratio, needed = Ratio(), 400_000 / (sum(len(data) for _, data in packed) / 10)
    for _ in range(4):
        found = Unpacking(Slabs(), packed, ratio, output_bytes_max=OUTPUT_LIMIT, room_bytes_max=OUTPUT_LIMIT)
        assert [bytes(found[place]) for place in range(10)] == plain
    assert ratio.wished == pytest.approx(min(1.25 * needed, 16.0))


def test_what_is_damaged_or_needs_no_room_teaches_nothing() -> None:
    ratio = Ratio()
    packed = [(LZ4, b"none of it"), (LZ4, b""), (SNAPPY, compress(SNAPPY, b"a" * 100_000))]
    found = Unpacking(Slabs(), packed, ratio, output_bytes_max=OUTPUT_LIMIT, room_bytes_max=OUTPUT_LIMIT)
    assert len(found[2]) == 100_000
    assert ratio.wished == Ratio().wished
