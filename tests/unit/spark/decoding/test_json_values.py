"""JSON objects as columns: by the columns the user named, as Python's json reads them, and bad rows told apart."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.spark.decoding.decoded import decode, decoder, plain, reason_of, row_of, rows_of

from lowwater.spark.decoding.decoder import Decoder
from lowwater.spark.decoding.errors import SchemaError

D = decimal.Decimal
UTC = datetime.UTC
NO_TIME = "the text is not a date or time of ISO 8601"
WIDE = (
    "i int, l long, d double, s string, b boolean, a array<long>, t array<string>, m map<string, double>,"
    " o struct<x: int, y: array<struct<z: string>>>, mm map<string, struct<k: long, v: array<long>>>,"
    " `odd na``me` string, aa array<array<int>>"
)


def of(columns: str) -> Decoder:
    return decoder("json", columns)


ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
doubles = st.floats()
names = st.text(max_size=5).filter(lambda name: not any("\ud800" <= letter <= "\udfff" for letter in name))


def maybe(strategy: Any) -> Any:
    return st.none() | strategy


structs = st.fixed_dictionaries(
    {},
    optional={
        "x": maybe(ints),
        "y": maybe(st.lists(maybe(st.fixed_dictionaries({}, optional={"z": maybe(texts)})), max_size=3)),
    },
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "i": maybe(ints),
        "l": maybe(longs),
        "d": maybe(doubles),
        "s": maybe(texts),
        "b": maybe(st.booleans()),
        "a": maybe(st.lists(maybe(longs), max_size=4)),
        "t": maybe(st.lists(maybe(texts), max_size=4)),
        "o": maybe(structs),
        "m": maybe(st.dictionaries(names, maybe(doubles), max_size=3)),
        "mm": maybe(
            st.dictionaries(
                names,
                maybe(st.fixed_dictionaries({}, optional={"k": maybe(longs), "v": maybe(st.lists(longs, max_size=3))})),
                max_size=3,
            )
        ),
        "odd na`me": maybe(texts),
        "aa": maybe(st.lists(maybe(st.lists(maybe(ints), max_size=3)), max_size=3)),
        "unknown": st.recursive(
            longs | texts | st.none() | st.booleans(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
            max_leaves=5,
        ),
    },
)


@settings(max_examples=200)
@given(st.lists(objects, max_size=5), st.booleans(), st.sampled_from((None, 2)))
@example([{"s": '\U0001f600\\"/\b\f\n\r\t\u2028'}], True, None)
def test_objects_are_what_python_wrote(rows: list[dict[str, Any]], ascii_only: bool, indent: int | None) -> None:
    wide = of(WIDE)
    values = [json.dumps(row, ensure_ascii=ascii_only, indent=indent).encode() for row in rows]
    found = rows_of(wide, values)
    assert [_comparable(row) for row in found] == [_comparable(_filled(row)) for row in rows]


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    """With every column, as nulls where there is nothing."""
    wide = {name: row.get(name) for name in ("i", "l", "d", "s", "b", "a", "t", "o", "m", "mm", "odd na`me", "aa")}
    if wide["o"] is not None:
        lines = wide["o"].get("y")
        lines = None if lines is None else [None if one is None else {"z": one.get("z")} for one in lines]
        wide["o"] = {"x": wide["o"].get("x"), "y": lines}
    if wide["mm"] is not None:
        wide["mm"] = {
            key: None if one is None else {"k": one.get("k"), "v": one.get("v")} for key, one in wide["mm"].items()
        }
    return wide


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {key: _comparable(one) for key, one in value.items()}
    return [_comparable(one) for one in value] if isinstance(value, list) else value


@settings(max_examples=200)
@given(st.text(alphabet='{}[]",:\\ntrue0-1.e+u\x00é ', max_size=30) | st.binary(max_size=20))
def test_what_python_cannot_read_is_bad_and_what_it_can_is_not(text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    decoded = decode(of("a string, n map<string, string>"), [b'{"a":"x"}', data, b'{"a":"y"}'])
    assert [decoded.struct[row].as_py()["a"] for row in (0, 2)] == ["x", "y"]
    if not decoded.reasons:
        assert isinstance(json.loads(data), dict)


@settings(max_examples=100)
@given(objects, st.data())
def test_an_object_that_python_reads_with_unique_names_is_good(row: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps({"a": row, "b": [row]}).encode()
    cut = data.draw(st.integers(0, len(text) - 1))
    decoded = decode(of("a string, b string"), [text, text[:cut], text])
    assert decoded.bad.tolist() == [1]
    assert _comparable(json.loads(decoded.struct[0].as_py()["b"])) == _comparable([row])
    assert decoded.struct[0] == decoded.struct[2]


def test_null_rows_are_null_and_empty_ones_are_bad() -> None:
    decoded = decode(of("a int"), [None, b"", b"  ", b"{}", b' {"a": null}\n'])
    assert decoded.struct.to_pylist() == [None, None, None, {"a": None}, {"a": None}]
    assert decoded.bad.tolist() == [1, 2]
    assert decoded.reasons == ("the JSON ends too early (byte 0)", "the JSON ends too early (byte 2)")


@pytest.mark.parametrize(
    ("columns", "value", "reason"),
    [
        ("a int", b"[]", "the value is not a JSON object (byte 0)"),
        ("a int", b"17", "the value is not a JSON object (byte 0)"),
        ("a int", b'{"a":1}{"a":2}', "bytes follow the end of the value (byte 7)"),
        ("a int", b'{"a":1', "the JSON ends too early (byte 6)"),
        ("a int", b'{"a":1,}', "the JSON is not well-formed (byte 7)"),
        ("a int", b'{"a":}', "field a: the JSON is not well-formed (byte 5)"),
        ("a int", b"{'a':1}", "the JSON is not well-formed (byte 1)"),
        ("a int", b'{"a":01}', "the JSON is not well-formed (byte 6)"),
        ("a int", b'{"a":nul}', "field a: the JSON is not well-formed (byte 5)"),
        ("a int", b'{"a":1,"a":2}', "field a: the field is there twice (byte 11)"),
        ("a int", b'{"a":2147483648}', "field a: a number does not fit its type (byte 5)"),
        ("a byte", b'{"a":-129}', "field a: a number does not fit its type (byte 5)"),
        ("a long", b'{"a":99999999999999999999}', "field a: a number does not fit its type (byte 5)"),
        ("a long", b'{"a":1.0}', "field a: the number is not a whole one (byte 5)"),
        ("a long", b'{"a":"1"}', "field a: the JSON value is of another kind (byte 5)"),
        ("a boolean", b'{"a":1}', "field a: the JSON value is of another kind (byte 5)"),
        ("a double", b'{"a":"1.5"}', "field a: the JSON value is of another kind (byte 5)"),
        ("a array<int>", b'{"a":{}}', "field a: the JSON value is of another kind (byte 5)"),
        ("a array<int>", b'{"a":[1,"x"]}', "field a[]: the JSON value is of another kind (byte 8)"),
        ("a struct<b: int>", b'{"a":[]}', "field a: the JSON value is of another kind (byte 5)"),
        ("a struct<b: int>", b'{"a":{"b":true}}', "field a.b: the JSON value is of another kind (byte 10)"),
        ("a map<string, int>", b'{"a":{"b":true}}', "field a{}: the JSON value is of another kind (byte 10)"),
        ("a string", b'{"a":"\xff"}', "field a: a text is not UTF-8 (byte 5)"),
        ("a string", b'{"a":"\\ud800"}', "field a: a text has an impossible escape or a control character (byte 5)"),
        ("a string", b'{"a":"\\x"}', "field a: a text has an impossible escape or a control character (byte 5)"),
        ("a string", b'{"a":"\n"}', "field a: a text has an impossible escape or a control character (byte 5)"),
        ("a int", b'{"z":"\\q"}', "a text has an impossible escape or a control character (byte 5)"),
        ("a timestamp", b'{"a":1700000000}', "field a: the JSON value is of another kind (byte 5)"),
        ("a timestamp", b'{"a":"2024-13-01"}', f"field a: {NO_TIME} (byte 5)"),
        ("a timestamp", b'{"a":"2024-01-01T25:00"}', f"field a: {NO_TIME} (byte 5)"),
        ("a timestamp_ntz", b'{"a":"2024-01-01T00:00Z"}', f"field a: {NO_TIME} (byte 5)"),
        ("a date", b'{"a":"2023-02-29"}', f"field a: {NO_TIME} (byte 5)"),
        ("a binary", b'{"a":"a"}', "field a: the text is not base64 (byte 5)"),
        ("a binary", b'{"a":"a?=="}', "field a: the text is not base64 (byte 5)"),
        ("a decimal(4,2)", b'{"a":100}', "field a: a number does not fit its type (byte 5)"),
        ("a decimal(4,2)", b'{"a":1.005}', "field a: the number has more decimals than its type (byte 5)"),
        ("a decimal(4,2)", b'{"a":"x"}', "field a: the JSON value is of another kind (byte 5)"),
        ("a int", b'{"z":' + b"[" * 300 + b"]" * 300 + b"}", "the JSON is nested too deep (byte 260)"),
    ],
)  # fmt: skip
def test_a_bad_row_says_why_and_where(columns: str, value: bytes, reason: str) -> None:
    assert reason_of(of(columns), value) == reason


@pytest.mark.parametrize(
    ("columns", "value", "expected"),
    [
        ("a string", b'{"a":12.50}', "12.50"),
        ("a string", b'{"a":{"b": [1, "x"]} }', '{"b": [1, "x"]}'),
        ("a string", b'{"a":true}', "true"),
        ("a array<string>", b'{"a":[1,[2],"3",null]}', ["1", "[2]", "3", None]),
        ("a double", b'{"a":NaN}', "NaN"),
        ("a double", b'{"a":"-INF"}', float("-inf")),
        ("a double", b'{"a":-Infinity}', float("-inf")),
        ("a double", b'{"a":0.1}', 0.1),
        ("a double", b'{"a":1e400}', float("inf")),
        ("a double", b'{"a":123456789012345678901234567890}', 1.2345678901234568e29),
        ("a float", b'{"a":0.5}', 0.5),
        (
            "a decimal(38,10)",
            b'{"a":-1234567890123456789012345678.0123456789}',
            D("-1234567890123456789012345678.0123456789"),
        ),
        ("a decimal(5,2)", b'{"a":"-1.5"}', D("-1.50")),
        ("a decimal(5,2)", b'{"a":1.5e2}', D("150.00")),
        ("a decimal(5,2)", b'{"a":1500e-1}', D("150.00")),
        ("a decimal(5,2)", b'{"a":0e99999999999999999999}', D("0.00")),
        ("a decimal(5,2)", b'{"a":0.00000e5}', D("0.00")),
        (
            "a timestamp",
            b'{"a":"2024-02-29T01:02:03.123456789+05:30"}',
            datetime.datetime(2024, 2, 28, 19, 32, 3, 123456, UTC),
        ),
        ("a timestamp", b'{"a":"2024-01-01 00:00"}', datetime.datetime(2024, 1, 1, tzinfo=UTC)),
        ("a timestamp", b'{"a":"2024-01-01T00:00:00.5-01"}', datetime.datetime(2024, 1, 1, 1, 0, 0, 500000, UTC)),
        (
            "a timestamp",
            b'{"a":"1969-12-31T23:59:59.999999Z"}',
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        ),
        ("a timestamp_ntz", b'{"a":"2024-01-01T10:11:12"}', datetime.datetime(2024, 1, 1, 10, 11, 12)),
        ("a date", b'{"a":"0001-01-01"}', datetime.date(1, 1, 1)),
        ("a binary", b'{"a":"++\\/_-w=="}', base64.b64decode("++//+w==")),
        ("a binary", b'{"a":""}', b""),
        ("a map<string,int>", b'{"a":{"x":1,"\\u0078":2}}', {"x": 2}),
        ("a tinyint", b'{"\\u0061":-128}', -128),
    ],
)
def test_values_are_read_as_spark_would(columns: str, value: bytes, expected: Any) -> None:
    found = row_of(of(columns), value)["a"]
    assert (str(found).replace("nan", "NaN") if expected == "NaN" else found) == expected


@given(st.dates())
def test_any_date_is_read(date: datetime.date) -> None:
    assert row_of(of("a date"), json.dumps({"a": date.isoformat()}).encode()) == {"a": date}


@given(st.datetimes(timezones=st.timezones() | st.none()))
def test_any_time_is_read(moment: datetime.datetime) -> None:
    offset = moment.utcoffset()
    if offset is not None and (offset.total_seconds() % 60 or moment.year in (1, 9999)):
        return  # no zone of today; a year that UTC does not have
    expected = moment.replace(tzinfo=UTC) if offset is None else moment.astimezone(UTC)
    assert row_of(of("a timestamp"), json.dumps({"a": moment.isoformat()}).encode()) == {"a": expected}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20))
def test_any_decimal_that_fits_is_exact(number: decimal.Decimal) -> None:
    assert row_of(of("a decimal(38,6)"), f'{{"a":{number:f}}}'.encode()) == {"a": number}


@given(st.binary(max_size=50))
def test_any_bytes_are_read_from_base64(data: bytes) -> None:
    value = json.dumps({"a": base64.b64encode(data).decode()}).encode()
    assert row_of(of("a binary"), value) == {"a": data}


def test_a_slice_of_a_column_is_read_from_its_place() -> None:
    values = pa.array([b'{"a":1}', None, b'{"a":3}', b"x", b'{"a":5}'], pa.binary())
    decoded = of("a int").decode(values.slice(1, 3))
    assert (decoded.struct.to_pylist(), decoded.bad.tolist()) == ([None, {"a": 3}, None], [2])


def test_no_rows_give_no_rows() -> None:
    assert len(decode(of(WIDE), []).struct) == 0


def test_keys_of_a_map_are_strings() -> None:
    with pytest.raises(SchemaError, match="keys of the map 'a' have to be strings"):
        of("a map<int, int>")


def test_a_row_of_many_values_is_bounded() -> None:
    value = b'{"a":[' + b"0," * (1 << 22) + b"0]}"
    assert reason_of(of("a array<int>"), value).startswith("field a[]: the row unfolds to too many values")


def test_rows_that_are_all_bad_are_all_told() -> None:
    decoded = decode(of("a int"), [b"x"] * 1000)
    assert len(decoded.bad) == len(decoded.reasons) == 1000
    assert plain(decoded.struct[0].as_py(), decoded.struct.type) is None
