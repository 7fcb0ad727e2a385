"""A key goes to the partition where other clients put it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.conformance.conftest import NewTopic
from tests.conformance.golden.key_partitions import RECORDED, Asked, ask_java, draw
from tests.conformance.under_test import UnderTest

from lowwater import Producer
from lowwater.client.outgoing import OutgoingRows
from lowwater.wire.kernels import partitioning
from lowwater.wire.kernels.partitioning import MURMUR2, UNPLACED

PARTITIONS = 7


def placed(asked: list[Asked]) -> list[tuple[int, int]]:
    """(hash without its sign, partition) of each, by our kernel."""
    batch = pa.RecordBatch.from_pydict({"key": pa.array([key for key, _ in asked], pa.binary())})
    rows = OutgoingRows(batch, now_ms=0).rows
    found = []
    for place, (_, partitions) in enumerate(asked):
        one = rows[place : place + 1].copy()
        answers = []
        for count in (2**31, partitions):
            into = np.full(1, UNPLACED, np.int32)
            partitioning.place(one, MURMUR2, 0, count, into)
            answers.append(int(into[0]))
        found.append((answers[0], answers[1]))
    return found


def test_keys_hash_as_they_were_recorded_from_java() -> None:
    recorded = json.loads(RECORDED.read_text())
    asked = [(bytes.fromhex(each["key"]), each["partitions"]) for each in recorded]
    assert placed(asked) == [(each["hash"] & 0x7FFFFFFF, each["partition"]) for each in recorded]
    assert len(asked) >= 50


@pytest.mark.peer("kafka")
def test_keys_hash_as_with_java() -> None:
    asked = draw(99, 3_000)
    assert placed(asked) == [(hashed & 0x7FFFFFFF, partition) for hashed, partition in ask_java(asked)]


@pytest.mark.peer("confluent")
@pytest.mark.parametrize("way", ["murmur2_random", "murmur2", "consistent_random", "consistent"])
def test_keys_choose_as_with_librdkafka(way: str, broker: UnderTest, new_topic: NewTopic) -> None:
    topic = new_topic("keys", partitions=PARTITIONS)
    keys: list[bytes | None] = [key for key, _ in draw(5, 200) if key]
    keys += [] if way.endswith("random") else [None]
    theirs = by_confluent(broker.bootstrap, topic, keys, way)
    with Producer(broker.bootstrap, {"partitioner": way}) as producer:
        for key in keys:
            producer.send(topic, b"ours", key=key)
    ours = found_in(broker.bootstrap, topic, b"ours")
    assert {key: ours[key] for key in keys} == theirs


def by_confluent(bootstrap: str, topic: str, keys: list[bytes | None], way: str) -> dict[bytes | None, int]:
    from confluent_kafka import Producer as TheirProducer

    found: dict[bytes | None, int] = {}

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        found[message.key()] = message.partition()

    producer = TheirProducer({"bootstrap.servers": bootstrap, "partitioner": way})
    for key in keys:
        producer.produce(topic, b"theirs", key, on_delivery=delivered)
    assert producer.flush(30) == 0
    return found


def found_in(bootstrap: str, topic: str, value: bytes) -> dict[bytes | None, int]:
    """The partition of each key, read back."""
    from lowwater import read

    with read(topic, bootstrap=bootstrap, start="earliest", stop="latest", order=None) as reader:
        table = reader.to_table()
    rows = zip(*(table.column(name).to_pylist() for name in ("key", "value", "partition")), strict=True)
    return {key: partition for key, found, partition in rows if found == value}
