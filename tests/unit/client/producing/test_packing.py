"""Batches are compressed before they are sent, many of them by two threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowwater.client.producing import calls
from lowwater.client.producing.calls import Batch, pack_all
from lowwater.wire import compression
from lowwater.wire.records import HEADER_SIZE

NO_CALL: Any = None
NO_ROWS: Any = None


def batches(count: int, size: int) -> list[Batch]:
    chance = np.random.default_rng(7)
    bodies = [bytes(chance.integers(97, 105, size, np.uint8)) for _ in range(count)]
    return [Batch(NO_CALL, NO_ROWS, bytearray(HEADER_SIZE) + body, 0, 0) for body in bodies]


@pytest.mark.parametrize("codec", [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD])
@pytest.mark.parametrize(("count", "size"), [(1, 2_000_000), (3, 500), (7, 300_000)])
def test_every_batch_is_packed_once_whoever_does_it(codec: int, count: int, size: int) -> None:
    made = batches(count, size)
    plain = [bytes(batch.data) for batch in made]
    pack_all(made, codec, None)
    packed = [bytes(batch.data) for batch in made]
    assert not set(packed) & set(plain)
    assert [bytes(compression.decompress(codec, each[HEADER_SIZE:])) for each in packed] == [
        each[HEADER_SIZE:] for each in plain
    ]
    pack_all(made, codec, None)
    assert [bytes(batch.data) for batch in made] == packed


def test_where_no_thread_can_be_had_everything_is_packed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    made = batches(7, 300_000)
    plain = [bytes(batch.data) for batch in made]
    monkeypatch.setattr(calls.threading.Thread, "start", refuse)
    pack_all(made, compression.LZ4, None)
    assert [bytes(compression.decompress(compression.LZ4, batch.data[HEADER_SIZE:])) for batch in made] == [
        each[HEADER_SIZE:] for each in plain
    ]


def test_a_little_is_not_worth_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(**_: object) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr(calls.threading, "Thread", no_thread)
    pack_all(batches(3, 500), compression.LZ4, None)
    with pytest.raises(AssertionError, match="a thread"):
        pack_all(batches(7, 300_000), compression.LZ4, None)
