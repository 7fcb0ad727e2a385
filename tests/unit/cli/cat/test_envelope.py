"""-J: records as JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from lowwater.cli.cat.envelope import EnvelopePrinter, compact, quoted
from lowwater.client.rows import Row


def broker_of(topic: str, partition: int) -> int:
    return 7


def test_an_envelope_has_the_names_of_kcat_in_its_order() -> None:
    row = Row("cars", 1, 2, 3, 1, b"k", None, (("n", b"1"), ("n", None)))
    assert EnvelopePrinter(b"\n", broker_of).text(row) == (
        b'{"topic":"cars","partition":1,"offset":2,"tstype":"logappend","ts":3,"broker":7,'
        b'"headers":["n","1","n",null],"key":"k","payload":null}\n'
    )


def test_without_headers_there_is_no_such_field() -> None:
    text = EnvelopePrinter(b"", broker_of).text(Row("cars", 0, 0, -1, 0, None, b""))
    assert list(json.loads(text)) == ["topic", "partition", "offset", "tstype", "ts", "broker", "key", "payload"]


@given(st.text())
def test_text_comes_back_from_json_as_it_was(text: str) -> None:
    assert json.loads(quoted(text.encode("utf-8", "replace"))) == text.encode("utf-8", "replace").decode()


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    assert quoted(b"\xff\x80\x1f/") == b'"\xff\x80\\u001F/"'


def test_compact_json() -> None:
    assert compact({"a": [1, None, "x\n"], "b": {}}) == rb'{"a":[1,null,"x\n"],"b":{}}'
