"""Printing by columns prints what printing row by row does, with every format, limit and stop."""

from __future__ import annotations

import io
import random
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.fetched import P0, P1, P2, RandomLog, batch

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.columns import ColumnSink
from lowwater.cli.cat.layout import NULL, parse_layout
from lowwater.cli.cat.pouring import Output, Poured, RowSink
from lowwater.cli.cat.talk import Talk
from lowwater.client.errors import CorruptRecordsError
from lowwater.client.fetching.events import Fetched
from lowwater.client.slices import FetchedSlice
from lowwater.wire.records import Record, build_batch

LOOKS = [
    Looks(parse_layout(rb"%s\n")),
    Looks(parse_layout(rb"%t %p %o %T %k %K %s %S %R %h %%\n", NULL)),
    Looks(parse_layout(b"-")),
    Looks(parse_layout(b"")),
    Looks(parse_layout(rb"\n"), is_json=True),
]


def broker_of(topic: str, partition: int) -> int:
    return partition + 10


def poured(kind: type[Any], where: Where, looks: Looks, answers: list[Fetched]) -> tuple[bytes, list[Poured]]:
    stdout = io.TextIOWrapper(io.BytesIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        output = Output()
        talk = (Talk(),) if kind is RowSink else ()
        sink = kind(where, looks, broker_of, output, *talk)
        outcomes = [sink.pour(answer, where.count) for answer in answers]
        output.flush()
    return stdout.buffer.getvalue(), outcomes  # type: ignore[attr-defined]


def answer_of(logs: list[RandomLog], released: list[None]) -> Fetched:
    slices = [log.slice(0) for log in logs]
    return Fetched(slices, [log.rows(0)[1] for log in logs], [], lambda: released.append(None))


@settings(max_examples=150)
@given(
    seed=st.integers(0, 1 << 32),
    looks=st.sampled_from(LOOKS),
    stop_ms=st.none() | st.integers(-1, 60),
    count=st.none() | st.integers(1, 20),
)
def test_the_same_is_printed(seed: int, looks: Looks, stop_ms: int | None, count: int | None) -> None:
    chance = random.Random(seed)
    logs = [RandomLog(one, chance) for one in (P0, P1, P2)]
    where = Where(stop_ms=stop_ms, count=count)
    released: list[None] = []
    by_row = poured(RowSink, where, looks, [answer_of(logs, released)])
    by_column = poured(ColumnSink, where, looks, [answer_of(logs, released)])
    assert by_column[0] == by_row[0]
    [mine], [expected] = by_column[1], by_row[1]
    assert mine.rows == expected.rows
    if count is None or expected.rows < count:
        assert (mine.behind, mine.stopped_at) == (expected.behind, expected.stopped_at)
    assert len(released) >= 2


def test_json_is_escaped_where_it_has_to_be() -> None:
    values = [b"plain", b'a"b\\c\n', None, b"", b"\xff\x00"]
    data = build_batch([Record(at, at, value, value, ((f"h{at}", value),)) for at, value in enumerate(values)])
    answer = Fetched([FetchedSlice(P0, 0, memoryview(data))], [len(values)], [], lambda: None)
    texts = [poured(kind, Where(), LOOKS[-1], [answer])[0] for kind in (RowSink, ColumnSink)]
    assert texts[0] == texts[1]
    assert rb'"key":"a\"b\\c\n"' in texts[1]


@pytest.mark.parametrize("kind", [RowSink, ColumnSink])
def test_what_is_good_is_printed_before_what_is_damaged_is_told(kind: type[Any]) -> None:
    damaged = batch(2, 30)
    damaged[-1] ^= 1
    data = b"".join([batch(0, 10, 20, value=b"good"), damaged])
    answer = Fetched([FetchedSlice(P0, 0, memoryview(data))], [3], [], lambda: None)
    text, [outcome] = poured(kind, Where(), LOOKS[0], [answer])
    assert text == b"good\ngood\n"
    assert isinstance(outcome.error, CorruptRecordsError)
