"""Every client reads what every client wrote, with every codec."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conformance.clients import DRIVERS, clients
from tests.conformance.clients.base import CODECS, Can, Driver, Producing, Received, Record
from tests.conformance.conftest import NewTopic

EVERYTHING = [
    Record(b"a value", b"a key"),
    Record(b"no key"),
    Record(b"", b"an empty value"),
    Record(None, b"a null value"),
    Record(b"a value", "ключ \U0001f511".encode()),
    Record(b"one header", b"k", (("name", b"value"),)),
    Record(b"repeated", b"k", (("a", b"1"), ("b", b"x"), ("a", b"2"))),
    Record(b"an empty header", b"k", (("empty", b""),)),
    Record(b"compressible " * 300, b"k"),
]
BY_CAPABILITY = {
    Can.NULL_HEADERS: Record(b"a null header", b"k", (("null", None), ("set", b"1"))),
    Can.BARE_EMPTY_VALUES: Record(b""),
    Can.EMPTY_KEYS: Record(b"an empty key", b""),
    Can.STAMP: Record(b"an old timestamp", b"k", timestamp_ms=1_500_000_000_123),
}


def records_of(writer: type[Driver]) -> list[Record]:
    """All that this client is able to write."""
    return EVERYTHING + [record for needed, record in BY_CAPABILITY.items() if needed in writer.can]


@pytest.fixture(scope="module")
def written(drivers: Callable[[str], Driver], new_topic: NewTopic) -> Callable[[str, str], str]:
    """The topic that a client filled with a codec; written once, read by all."""
    topics: dict[tuple[str, str], str] = {}

    def topic_of(writer: str, codec: str) -> str:
        if (writer, codec) not in topics:
            topic = new_topic(f"{writer}-{codec}")
            drivers(writer).produce(topic, records_of(DRIVERS[writer]), Producing(codec=codec))
            topics[writer, codec] = topic
        return topics[writer, codec]

    return topic_of


def shape(received: Received, *, ordered_headers: bool) -> tuple[object, ...]:
    record = received.record
    headers = record.headers if ordered_headers else tuple(sorted(record.headers, key=lambda pair: pair[0]))
    return record.value, record.key, headers


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "writer",
    [pytest.param(each.name, marks=pytest.mark.peer(each.peer), id=f"from-{each.name}") for each in DRIVERS.values()],
)
@clients()
def test_what_one_client_writes_another_reads(
    client: Driver, writer: str, codec: str, written: Callable[[str, str], str]
) -> None:
    topic = written(writer, codec)
    sent = records_of(DRIVERS[writer])
    received = client.consume(topic, len(sent))
    assert [each.offset for each in received] == list(range(len(sent)))
    ordered = Can.HEADER_ORDER in client.can and Can.HEADER_ORDER in DRIVERS[writer].can
    expected = [Received(offset, record) for offset, record in enumerate(sent)]
    assert [shape(each, ordered_headers=ordered) for each in received] == [
        shape(each, ordered_headers=ordered) for each in expected
    ]
    stamps = {each.record.value: each.record.timestamp_ms for each in received}
    assert all(stamps[each.value] == each.timestamp_ms for each in sent if each.timestamp_ms is not None)
