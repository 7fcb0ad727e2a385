"""What a hostile peer puts on one connection: attack number N of a seed is always the same bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz import plausible

from lowwater.errors import WireError
from lowwater.wire.frame import decode_request_header, encode_request_header
from lowwater.wire.messages import API, FetchRequest, JoinGroupRequest, SyncGroupRequest
from lowwater.wire.schema import decoder, encoder
from lowwater.wire.varint import write_uvarint

ROUTES = [(api, version) for api in API.values() for version in range(api.version_min, api.version_max + 1)]
FLEXIBLE_ROUTES = [(api, v) for api, v in ROUTES if api.flexible_since is not None and v >= api.flexible_since]
LENGTHS = (-1, -(2**31), 2**31 - 1, 100 << 20, (100 << 20) + 1, 0, 1, 3)
SIZED_EXTREMES = [struct.pack(">i", value) for value in (-1, 0, 2**31 - 1, -(2**31), 65536, 10**6, 10**9)] + [
    struct.pack(">h", value) for value in (-1, 32767, -32768)
]
VARINT_EXTREMES = [write_uvarint(value) for value in (0, 127, 128, 2**14, 2**21, 2**28, 2**32 - 1)] + [
    b"\xff" * 5,
    b"\xff" * 11,
]
PARK_MS = 1000
LONG_MS = 60_000


@dataclass(frozen=True, slots=True)
class Attack:
    """`frames` go out in a row, each with its length; `tail` is sent as it is behind them."""

    name: str
    frames: tuple[bytes, ...] = ()
    tail: bytes = b""

    def payload(self) -> bytes:
        return b"".join(struct.pack(">i", len(frame)) + frame for frame in self.frames) + self.tail

    def may_park(self) -> bool:
        """Whether it holds a Fetch, Join or Sync that may rightly keep its connection waiting for a long time."""
        return any(_waits_ms(frame) > PARK_MS for frame in self.frames)


def _waits_ms(frame: bytes) -> int:
    try:
        api_key, version, _, _, at = decode_request_header(memoryview(frame))
        api = API.get(api_key)
        if api is not None and api.request in (JoinGroupRequest, SyncGroupRequest):
            return LONG_MS
        if api is None or api.request is not FetchRequest:
            return 0
        fetch = decoder(FetchRequest, version)(memoryview(bytearray(frame)), at)
    except (WireError, ValueError):
        return 0
    return fetch.max_wait_ms


def _valid_frame(rng: random.Random, which: int | None = None) -> bytes:
    api, version = ROUTES[which % len(ROUTES)] if which is not None else rng.choice(ROUTES)
    body = encoder(api.request, version)(plausible.request(api.request, version, rng))
    return encode_request_header(api.key, version, rng.getrandbits(31), rng.choice((None, "", "fuzz"))) + body


# -- bytes that went wrong


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] = rng.randrange(256)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice((1, 4, 100)))


def _repeat(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    data[start:start] = data[start : start + rng.choice((1, 8, 64))] * rng.choice((1, 3, 50))


def _overwrite(data: bytearray, rng: random.Random) -> None:
    extreme = rng.choice(SIZED_EXTREMES + VARINT_EXTREMES)
    at = rng.randrange(8, len(data)) if len(data) > 8 else 0
    data[at : at + len(extreme)] = extreme


MUTATIONS = (_flip, _flip, _cut, _insert, _repeat, _overwrite, _overwrite)


def _mutated(frame: bytes, rng: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data:
            rng.choice(MUTATIONS)(data, rng)
    return bytes(data)


# -- kinds of attack; each takes the random numbers, the number of the attack and the frame limit


def valid(rng: random.Random, number: int, limit: int) -> Attack:
    return Attack("valid", tuple(_valid_frame(rng, number + n) for n in range(rng.choice((1, 2, 8)))))


def mutated(rng: random.Random, number: int, limit: int) -> Attack:
    return Attack("mutated", tuple(_mutated(_valid_frame(rng, number + n), rng) for n in range(rng.choice((1, 2, 8)))))


def cut_off(rng: random.Random, number: int, limit: int) -> Attack:
    frame = _valid_frame(rng, number)
    whole = struct.pack(">i", len(frame)) + frame
    return Attack("cut off", tail=whole[: rng.randrange(len(whole))])


def random_bytes(rng: random.Random, number: int, limit: int) -> Attack:
    return Attack("random bytes", tail=rng.randbytes(rng.choice((1, 4, 100, 5000))))


def random_body(rng: random.Random, number: int, limit: int) -> Attack:
    api, version = ROUTES[number % len(ROUTES)]
    header = encode_request_header(api.key, version, 1, "fuzz")
    return Attack("random body", (header + rng.randbytes(rng.choice((0, 1, 30, 3000))),))


def wrong_length(rng: random.Random, number: int, limit: int) -> Attack:
    length = rng.choice((*LENGTHS, limit, limit + 1))
    return Attack("wrong length", tail=struct.pack(">i", length) + rng.randbytes(rng.choice((0, 3, 2000))))


def strange_header(rng: random.Random, number: int, limit: int) -> Attack:
    key, version = rng.choice((-1, 0, 18, 18, 999, 32767)), rng.choice((-1, 0, 5, 99, 32767))
    name = rng.choice((b"", b"\xff\xfe", b"n" * 32767, b"\x00" * 9))
    claimed = rng.choice((len(name), -1, -2, 32767))
    return Attack("strange header", (struct.pack(">hhih", key, version, 7, claimed) + name + rng.randbytes(9),))


def many_tags(rng: random.Random, number: int, limit: int) -> Attack:
    """As many empty tagged fields as fit into one frame, in the header or behind the body."""
    api, version = rng.choice(FLEXIBLE_ROUTES)
    body = encoder(api.request, version)(api.request())
    header = encode_request_header(api.key, version, 1, "fuzz")
    count = (limit - len(header) - len(body) - 5) // 2
    tags = write_uvarint(count) + bytes((rng.choice((0, 1, 99)), 0)) * count
    in_header = rng.random() < 0.5
    frame = header[:-1] + tags + body if in_header else header + body[:-1] + tags
    return Attack("many tags", (frame,))


def many_elements(rng: random.Random, number: int, limit: int) -> Attack:
    """One element of a list, a hundred thousand times: an answer may be far larger than its question."""
    api, version = ROUTES[number % len(ROUTES)]
    one = plausible.request(api.request, version, rng)
    lists = [name for name in one.__slots__ if isinstance(getattr(one, name), list) and getattr(one, name)]
    for name in lists:
        setattr(one, name, getattr(one, name)[:1])
    small = encoder(api.request, version)(one)
    for name in lists:
        count = min(100_000, limit // 2 // max(1, len(small)))
        setattr(one, name, getattr(one, name) * count)
    body = encoder(api.request, version)(one)
    return Attack("many elements", (encode_request_header(api.key, version, 1, "fuzz") + body,))


def large_frame(rng: random.Random, number: int, limit: int) -> Attack:
    """A frame of the largest size, all of it sent."""
    api, version = ROUTES[number % len(ROUTES)]
    header = encode_request_header(api.key, version, 1, "fuzz")
    filler = rng.choice((b"\0", b"\x01", b"\x02", b"\xff", b"\x7f")) * (limit - len(header))
    return Attack("large frame", (header + filler,))


Kind = Callable[[random.Random, int, int], Attack]
KINDS: tuple[Kind, ...] = (
    valid,
    mutated,
    cut_off,
    random_bytes,
    random_body,
    wrong_length,
    strange_header,
    many_tags,
    many_elements,
    large_frame,
)
WEIGHTS = (30, 40, 5, 3, 5, 5, 4, 1, 2, 1)


def attack(seed: int, number: int, frame_limit: int) -> Attack:
    rng = random.Random(f"{seed}-{number}")
    return rng.choices(KINDS, WEIGHTS)[0](rng, number, frame_limit)
