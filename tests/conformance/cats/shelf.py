"""Topics for both to read, with every kind of record."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

NewTopic = Callable[..., str]

TIMES = (1, 1_001, 2_001, 3_001, 4_001, 5_001)
TRICKY = b'a"b\\c/d\n\r\t\b\f\x01\x1f\x7f'


class Shelf(NamedTuple):
    """`mixed`: keys, values and headers of all kinds; `spread`: three partitions, the last one empty."""

    bootstrap: str
    mixed: str
    spread: str
    packed: str
    empty: str


def stocked(bootstrap: str, new_topic: NewTopic) -> Shelf:
    from confluent_kafka import Producer

    shelf = Shelf(
        bootstrap, new_topic("mixed"), new_topic("spread", partitions=3), new_topic("packed"), new_topic("empty")
    )
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for place, record in enumerate(_mixed()):
        producer.produce(shelf.mixed, timestamp=10_000 + place, **record)
    for place, timestamp in enumerate(TIMES):
        producer.produce(shelf.spread, b"v%d" % place, key=b"k%d" % place, partition=place % 2, timestamp=timestamp)
    for packed in (struct.pack(">bBhHiIqQ", -1, 255, -2, 65534, -3, 4, -5, 6) + b"cend", b"\0\7", b"", b"abcdefgh"):
        producer.produce(shelf.packed, packed, key=packed)
    assert producer.flush(30) == 0
    return shelf


def _mixed() -> list[dict[str, Any]]:
    return [
        {"key": b"k1", "value": b"v1"},
        {"value": b"no key"},
        {"key": b"", "value": b"empty key"},
        {"key": b"empty value", "value": b""},
        {"key": b"null value"},
        {},
        {"value": TRICKY, "key": TRICKY},
        {"value": "é€😀\u2028".encode(), "key": b"\xff\xfe\x80"},
        {"value": b"headers", "headers": [("n", b"1"), ("é", b"a=b,c"), ("n", None), ("", b""), ("tricky", TRICKY)]},
    ]
