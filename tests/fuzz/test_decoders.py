"""Hostile bytes for every decoder: WireError is all that may come out, and memory stays in proportion."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.golden.instances import CLASSES, REQUESTS_AND_RESPONSES, Style, instance, messages

from lowwater.errors import WireError
from lowwater.wire.frame import decode_request_header, decode_response_header
from lowwater.wire.messages import API
from lowwater.wire.schema import decoder, encoder

ALL = list(messages())
WITH_HEADERS = [(cls, version) for cls, version in ALL if cls in REQUESTS_AND_RESPONSES]
MUTATIONS = 120
# Bytes of memory for a byte of input, at worst: a struct with two empty lists from three bytes.
MEMORY_FACTOR = 100
MEMORY_BASE = 200_000
TELLING = (0, 1, 2, 127, 128, 255)


def versions_of(cls: type[Any]) -> list[int]:
    return [version for each, version in ALL if each is cls]


def feed(cls: type[Any], version: int, data: bytes) -> Any:
    """What the decoder makes of `data`: a message, or None when it is refused. Anything else is an error."""
    try:
        return decoder(cls, version)(memoryview(data))
    except WireError:
        return None


def check(cls: type[Any], version: int, data: bytes) -> None:
    message = feed(cls, version, data)
    if message is not None:
        again = encoder(cls, version)(message)
        assert encoder(cls, version)(decoder(cls, version)(memoryview(again))) == again


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to three small harms."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        harm = rng.randrange(6)
        if harm == 0:
            out[at : at + 1] = bytes([rng.choice(TELLING)])
        elif harm == 1:
            out[at : at + 1] = rng.randbytes(1)
        elif harm == 2:
            del out[at : at + rng.randint(1, 8)]
        elif harm == 3:
            out[at:at] = rng.choice((b"\xff" * 5, b"\xff\xff\xff\xff\x07", b"\x7f\xff\xff\xff", b"\x80" * 4 + b"\x01"))
        elif harm == 4:
            out[at:at] = out[at : at + rng.randint(1, 16)]
        else:
            out[at : at + 4] = rng.choice((b"\xff\xff\xff\xfe", b"\x80\0\0\0", b"\0\0\xff\xff"))
    return bytes(out)


def valid(cls: type[Any], version: int, rng: random.Random) -> Iterator[bytes]:
    for style in (Style.FULL, Style.MIXED, Style.NULLS):
        yield encoder(cls, version)(instance(cls, version, style, rng))


@pytest.mark.parametrize("cls", CLASSES)
def test_mutated_messages_are_read_or_refused(cls: type[Any]) -> None:
    rng = random.Random(cls.__name__)
    for version in versions_of(cls):
        for data in valid(cls, version, rng):
            for _ in range(MUTATIONS // 3):
                check(cls, version, mutated(data, rng))


@pytest.mark.parametrize("cls", CLASSES)
def test_random_bytes_are_read_or_refused(cls: type[Any]) -> None:
    rng = random.Random(cls.__name__)
    for version in versions_of(cls):
        for size in (0, 1, 3, 10, 40, 200):
            check(cls, version, rng.randbytes(size))
            check(cls, version, bytes(rng.choices(TELLING, k=size)))


@pytest.mark.parametrize("cls", CLASSES)
def test_a_message_cut_anywhere_is_refused(cls: type[Any]) -> None:
    rng = random.Random(cls.__name__)
    for version in versions_of(cls):
        for data in valid(cls, version, rng):
            for end in range(0, len(data), max(1, len(data) // 200)):
                assert feed(cls, version, data[:end]) is None, f"v{version} cut at {end} of {len(data)}"


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.sampled_from(ALL), st.binary(max_size=300))
def test_bytes_that_hypothesis_finds_are_read_or_refused(which: tuple[type[Any], int], data: bytes) -> None:
    check(*which, data)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.sampled_from(WITH_HEADERS), st.binary(max_size=60))
def test_headers_are_read_or_refused(which: tuple[type[Any], int], data: bytes) -> None:
    key = next(api.key for api in API.values() if which[0] in (api.request, api.response))
    start = key.to_bytes(2, "big") + which[1].to_bytes(2, "big")
    for frame in (data, start + data):
        try:
            *_, position = decode_request_header(memoryview(frame))
            assert position <= len(frame)
        except WireError:
            pass
        try:
            _, position = decode_response_header(memoryview(frame), key, which[1])
            assert position <= len(frame)
        except WireError:
            pass


@pytest.mark.parametrize("cls", CLASSES)
def test_memory_grows_with_the_bytes_that_came_not_with_what_they_claim(cls: type[Any]) -> None:
    rng = random.Random(cls.__name__)
    version = versions_of(cls)[-1]
    inputs = [bytes([byte]) * 20_000 for byte in TELLING]
    inputs += [bytes(rng.choices((0, 1, 2), k=20_000)), b"\0" * 6 + b"\xff\xff\xff\x07" * 5_000]
    for data in valid(cls, version, rng):
        inputs += [mutated(data, rng) + bytes(rng.choices(TELLING, k=5_000)) for _ in range(5)]
    decoder(cls, version)
    for data in inputs:
        tracemalloc.start()
        feed(cls, version, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= MEMORY_BASE + MEMORY_FACTOR * len(data), f"{peak} bytes for {len(data)} of {data[:20]!r}"
