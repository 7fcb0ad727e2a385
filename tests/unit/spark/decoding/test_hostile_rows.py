"""Rows that were made to do harm: each is told to be bad or read; none hangs, crashes, or disturbs its neighbours."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from tests.unit.spark.decoding import avro_cases, protobuf_cases
from tests.unit.spark.decoding.decoded import decode, decoder

from lowwater.spark.decoding.decoder import Decoder

ROUNDS = 30
EVIL = (0, 1, 0x7F, 0x80, 0xFF, 0xFE, ord("{"), ord("["), ord('"'), ord("\\"))


def avro_rows(seed: int) -> tuple[Decoder, Callable[[], bytes]]:
    cases = avro_cases.Cases(seed)
    schema = cases.record()
    return decoder("avro", json.dumps(schema)), lambda: avro_cases.encode(schema, cases.value(schema)[0])


def protobuf_rows(seed: int) -> tuple[Decoder, Callable[[], bytes]]:
    cases = protobuf_cases.Cases(seed, "proto3")
    one = decoder("protobuf", cases.descriptor_set(), message=cases.name)
    return one, lambda: cases.message().SerializeToString()


def json_rows(seed: int) -> tuple[Decoder, Callable[[], bytes]]:
    chance = random.Random(seed)
    columns = (
        "a int, s string, m map<string, array<string>>, o struct<x: double, t: timestamp, d: decimal(20, 5)>, b binary"
    )

    def row() -> bytes:
        inner = {"x": chance.random(), "t": "2024-01-01T00:00:00Z", "d": str(chance.randint(0, 10**9))}
        texts = [chance.choice(("é", "\n", "a" * 50, '"')) for _ in range(3)]
        value = {
            "a": chance.randint(-9, 9),
            "s": texts[0],
            "m": {texts[1]: texts},
            "o": inner,
            "b": "YWJj",
            "z": [[{}]],
        }
        return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode()

    return decoder("json", columns), row


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes changed, taken out, doubled, or cut off."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(len(found) + 1)
        kind = chance.randrange(4)
        if kind == 0 and place < len(found):
            found[place] = chance.choice((*EVIL, chance.randrange(256)))
        elif kind == 1:
            del found[place : place + chance.choice((1, 3, 1000))]
        elif kind == 2:
            found[place:place] = bytes([chance.choice(EVIL)]) * chance.choice((1, 2, 10, 3000))
        else:
            found[place:place] = found[: chance.randrange(len(found) + 1)]
    return bytes(found)


@pytest.mark.parametrize("rows", [avro_rows, protobuf_rows, json_rows])
def test_damaged_rows_disturb_nobody(rows: Callable[[int], tuple[Decoder, Callable[[], bytes]]]) -> None:
    bad = 0
    for seed in range(ROUNDS):
        chance = random.Random(seed)
        one, row = rows(seed)
        good = row()
        expected = decode(one, [good]).struct[0]
        values = [value for _ in range(40) for value in (damaged(row(), chance), good)]
        decoded = decode(one, values)
        assert all(decoded.struct[place] == expected for place in range(1, len(values), 2))
        assert all(row % 2 == 0 for row in decoded.bad.tolist())
        bad += len(decoded.bad)
    assert bad > ROUNDS * 5


@pytest.mark.parametrize("rows", [avro_rows, protobuf_rows, json_rows])
def test_noise_is_read_or_told(rows: Callable[[int], tuple[Decoder, Callable[[], bytes]]]) -> None:
    for seed in range(ROUNDS):
        chance = random.Random(seed)
        one, _ = rows(seed)
        decode(one, [chance.randbytes(chance.choice((0, 1, 5, 50, 3000))) for _ in range(100)])


def test_a_batch_of_bombs_stays_within_bounds() -> None:
    """Each row claims four million values of two bytes at most; together they would be forty million."""
    wide = [{"name": f"f{place}", "type": ["null", "long"]} for place in range(10)]
    item = {"type": "record", "name": "i", "fields": wide}
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "array", "items": ["null", item]}}],
    }
    count = 300_000  # nulls, each of which is a slot in eleven columns
    bomb = avro_cases.encode("long", count) + bytes(count) + b"\0"
    decoded = decode(decoder("avro", json.dumps(schema)), [bomb] * 40 + [b"\0"])
    assert 0 < len(decoded.bad) < 40
    assert all(reason.startswith("the row") or "too many values" in reason for reason in decoded.reasons)
