"""Input becomes records: lines, keys, nulls, whatever way the bytes come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.cli.cat import input as cat_input
from lowwater.cli.cat.asked import Sending
from lowwater.cli.cat.input import lines_of
from lowwater.cli.cat.talk import CatError


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "input"
    path.write_bytes(b"k:v\nplain\n\n:empty\nk:\nlast")
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


def records(handle: int, sending: Sending) -> list[tuple[bytes | None, bytes | None]]:
    return [line[:2] for lines in lines_of(handle, sending, 1000) for line in lines]


def test_lines_are_records_and_empty_ones_are_none(handle: int) -> None:
    values = [b"k:v", b"plain", b":empty", b"k:", b"last"]
    assert records(handle, Sending()) == [(None, value) for value in values]


def test_keys_stand_before_their_delimiter(handle: int) -> None:
    found = records(handle, Sending(key_delimiter=b":"))
    assert found == [(b"k", b"v"), (None, b"plain"), (b"", b"empty"), (b"k", b""), (None, b"last")]


def test_nothing_is_null_when_asked_for(handle: int) -> None:
    found = records(handle, Sending(key_delimiter=b":", empty_is_null=True, fixed_key=b"fixed"))
    assert found == [(b"k", b"v"), (b"fixed", b"plain"), (b"fixed", b"empty"), (b"k", None), (b"fixed", b"last")]


def test_a_record_that_could_not_be_sent_is_not_collected(handle: int) -> None:
    with pytest.raises(CatError, match="Input is too large, maximum size is 4"):
        list(lines_of(handle, Sending(), 4))


@given(
    parts=st.lists(st.binary(max_size=9), max_size=9),
    delimiter=st.sampled_from([b"\n", b";;", b"abc"]),
    at=st.integers(1, 7),
)
def test_it_does_not_matter_how_the_bytes_come(parts: list[bytes], delimiter: bytes, at: int) -> None:
    data = delimiter.join(parts)
    source, sink = os.pipe()
    os.write(sink, data)
    os.close(sink)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cat_input, "READ_BYTES", at)
        found = [line.text for lines in lines_of(source, Sending(delimiter=delimiter), 1000) for line in lines]
    os.close(source)
    assert found == [part for part in data.split(delimiter) if part]
