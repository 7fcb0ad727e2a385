"""Avro values as columns: every type, read as fastavro wrote it, and bad rows told apart."""

from __future__ import annotations

import datetime
import decimal
import json
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.spark.decoding.avro_cases import Cases, encode, read
from tests.unit.spark.decoding.decoded import decode, decoder, reason_of, row_of, rows_of
from tests.unit.spark.decoding.registries import known

from lowwater.spark.decoding.decoder import Decoder
from lowwater.spark.decoding.errors import SchemaError

FRAME = b"\0\0\0\0\x01"
LONGS = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}


def of(schema: Any) -> Decoder:
    return decoder("avro", json.dumps(schema))


def record(*fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields], **more}


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_values_are_what_fastavro_wrote(seed: int) -> None:
    cases = Cases(seed)
    schema = cases.record()
    drawn = [cases.value(schema) for _ in range(20)]
    values: list[bytes | None] = [encode(schema, value) for value, _ in drawn]
    assert rows_of(of(schema), [*values, None]) == [*(expected for _, expected in drawn), None]


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_a_cut_or_longer_value_is_bad_and_its_neighbours_are_not(seed: int) -> None:
    cases = Cases(seed)
    schema = cases.record()
    value, expected = cases.value(schema)
    data = encode(schema, value)
    decoded = decode(of(schema), [data, data + b"\0", data, *(data[:size] for size in range(len(data)))])
    assert decoded.bad.tolist() == [1, *range(3, 3 + len(data))]
    assert decoded.reasons[0].startswith("bytes follow the end of the value")
    assert rows_of(of(schema), [data, data]) == [expected, expected]


def test_a_null_value_is_a_null_row_and_an_empty_one_is_bad() -> None:
    decoded = decode(of(LONGS), [None, b"", encode(LONGS, {"n": 5})])
    assert decoded.struct.to_pylist() == [None, None, {"n": 5}]
    assert decoded.bad.tolist() == [1]
    assert decoded.reasons == ("field n: the bytes end too early (byte 0)",)


def test_a_record_without_fields_to_read_takes_no_bytes() -> None:
    schema = record(("inner", {"type": "record", "name": "empty", "fields": []}), ("n", "int"))
    assert row_of(of(schema), encode(schema, {"inner": {}, "n": 3})) == {"inner": {}, "n": 3}


def test_a_schema_that_is_no_record_gives_a_column_named_value() -> None:
    assert row_of(of("long"), b"\x06") == {"value": 3}
    assert row_of(of({"type": "array", "items": "int"}), b"\x04\x02\x04\x00") == {"value": [1, 2]}


def test_blocks_may_say_their_size_in_bytes() -> None:
    # two items in one block of 2 bytes, one item in another
    assert row_of(of({"type": "array", "items": "int"}), b"\x03\x04\x02\x04\x02\x06\x00") == {"value": [1, 2, 3]}


def test_a_uuid_in_bytes_is_told_as_text() -> None:
    one = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    schema = {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}
    nullable = of(record(("u", ["null", schema])))
    assert rows_of(nullable, [b"\x02" + one.bytes, b"\x00", b"\x02" + one.bytes]) == [
        {"u": str(one)},
        {"u": None},
        {"u": str(one)},
    ]


def test_logical_types_that_do_not_fit_count_as_not_there() -> None:
    schema = record(
        ("a", {"type": "string", "logicalType": "date"}),
        ("b", {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5}),
        ("c", {"type": "long", "logicalType": "timestamp-nanos"}),
    )
    assert [str(field.type) for field in of(schema).schema] == ["string", "binary", "int64"]


def test_names_are_found_within_their_namespace() -> None:
    inner = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
    schema = record(("a", inner), ("b", "Colour"), ("c", ["null", "shop.Colour"]), namespace="shop")
    assert row_of(of(schema), b"\x00\x02\x02\x00") == {"a": "RED", "b": "BLUE", "c": "RED"}


def test_of_a_key_twice_in_a_map_the_last_one_counts() -> None:
    schema = of(record(("m", {"type": "map", "values": "int"})))
    assert row_of(schema, b"\x06\x02a\x02\x02b\x04\x02a\x06\x00") == {"m": {"a": 3, "b": 2}}


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ("int", b"\x80\x80\x80\x80\x80\x01", "field : a number does not fit its type"),
        ("long", b"\xff" * 10, "a number has too many bytes"),
        ("long", b"\xff", "the bytes end too early"),
        ("boolean", b"\x02", "a boolean is neither 0 nor 1"),
        ("string", b"\x02\xff", "a text is not UTF-8"),
        ("string", b"\x01", "a length is negative or beyond the end"),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a length is negative or beyond the end"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x02", "there is no such symbol"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x01", "there is no such symbol"),
        (["null", "int"], b"\x04", "there is no such branch"),
        ({"type": "fixed", "name": "f", "size": 4}, b"abc", "the bytes end too early"),
        ({"type": "array", "items": "int"}, b"\x01\x01", "a block has an impossible length"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0}, b"\x02\x64", "does not fit"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
            b"\x22\x01" + bytes(16),
            "does not fit",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\xff" * 9 + b"\x01", "does not fit"),
    ],
)
def test_a_bad_row_says_why(schema: Any, value: bytes, reason: str) -> None:
    assert reason.removeprefix("field : ") in reason_of(of(schema), value)


def test_decimals_reach_exactly_their_precision() -> None:
    schema = of({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1})
    assert row_of(schema, b"\x02\x63") == {"value": decimal.Decimal("9.9")}
    assert row_of(schema, b"\x02\x9d") == {"value": decimal.Decimal("-9.9")}
    assert row_of(schema, b"\x00") == {"value": decimal.Decimal("0.0")}
    assert row_of(schema, b"\x28" + b"\xff" * 20) == {"value": decimal.Decimal("-0.1")}


def test_times_before_the_epoch_keep_their_milliseconds() -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.UTC)
    assert row_of(of({"type": "long", "logicalType": "timestamp-millis"}), b"\x01") == {"value": moment}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("nothing", "names the type 'nothing'"),
        ({"type": "record", "name": "r"}, "lacks 'fields'"),
        (record(("r", ["null", "r"])), "contains itself"),
        (record(("n", "null")), "always null"),
        (record(("n", ["null"])), "nothing but null"),
        (record(("a", "int"), ("A", "int")), "are the same to Spark"),
        (record(("a", "int"), ("a", "int")), "two fields of one name"),
        (record(("a", ["int", ["null"]])), "directly within another"),
        ({"type": "fixed", "name": "f", "size": -1}, "impossible size"),
        (17, "in place of a type"),
    ],
)
def test_a_schema_that_cannot_be_columns_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        of(schema)


def test_a_schema_of_too_many_levels_or_steps_is_refused() -> None:
    deep: Any = "int"
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    with pytest.raises(SchemaError, match="nested more than"):
        of(deep)
    wide: Any = record(("f", "int"))
    fields: list[Any] = []
    for place in range(12):
        inner = {"type": "record", "name": f"w{place}", "fields": list(fields)} if place else "int"
        fields = [
            {"name": f"a{one}", "type": inner if one == 0 else (f"w{place}" if place else "int")} for one in range(4)
        ]
    wide["fields"] = fields
    with pytest.raises(SchemaError, match="more than"):
        of(wide)


def test_zero_sized_items_do_not_eat_memory() -> None:
    schema = of({"type": "array", "items": {"type": "fixed", "name": "none", "size": 0}})
    count = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"  # 2^61 items in nine bytes
    assert "too many values" in reason_of(schema, count)


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_values_of_another_writer_are_read_as_fastavro_reads_them(seed: int) -> None:
    cases = Cases(seed)
    chance = cases.chance
    numbers = ["int", "long", "float", "double"]
    kinds = [(chance.randrange(4),) * 2 for _ in range(3)]
    kinds = [(low, chance.randrange(low, 4)) for low, _ in kinds]
    kept = [(f"k{place}", numbers[low], numbers[high]) for place, (low, high) in enumerate(kinds)]
    kept += [
        ("t", "string", "bytes"),
        ("b", "bytes", "string"),
        ("o", "int", ["null", "long"]),
        ("u", ["int", "string"], ["string", "long"]),
    ]
    writer_fields = [{"name": name, "type": kind} for name, kind, _ in kept]
    writer_fields += [{"name": f"gone{place}", "type": cases.schema(2)} for place in range(2)]
    reader_fields = [{"name": name, "type": kind} for name, _, kind in kept]
    reader_fields += [
        {"name": "new", "type": "string", "default": "é"},
        {"name": "none", "type": ["null", "int"], "default": None},
    ]
    chance.shuffle(writer_fields)
    chance.shuffle(reader_fields)
    writer, reader = ({"type": "record", "name": "r", "fields": one} for one in (writer_fields, reader_fields))
    value = {field["name"]: cases.value(field["type"])[0] for field in writer_fields} | {
        "b": b"text",
        "u": chance.choice((3, "x")),
    }
    data = encode(writer, value)
    expected = read(data, writer, reader)
    expected["u"] = {"member0": None, "member1": None} | {
        "member0" if isinstance(expected["u"], str) else "member1": expected["u"]
    }
    # a column of floats has no more digits than a float
    expected |= {name: _single(expected[name]) for name, _, kind in kept if kind == "float"}
    assert _resolved(reader, writer, data) == expected


def test_a_missing_field_takes_its_default_of_any_type() -> None:
    inner = {"type": "record", "name": "i", "fields": [{"name": "x", "type": "int", "default": 7}]}
    fields = [
        {"name": "n", "type": "long"},
        {"name": "list", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        {"name": "map", "type": {"type": "map", "values": "double"}, "default": {"a": 1.5}},
        {"name": "inner", "type": inner, "default": {}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}, "default": "B"},
        {"name": "f", "type": {"type": "fixed", "name": "f", "size": 2}, "default": "\u00ff\u0001"},
        {"name": "u", "type": ["null", "string"], "default": None},
    ]
    reader = {"type": "record", "name": "r", "fields": fields}
    assert _resolved(reader, LONGS, b"\x02") == {
        "n": 1, "list": [1, 2], "map": {"a": 1.5}, "inner": {"x": 7}, "e": "B", "f": b"\xff\x01", "u": None,
    }  # fmt: skip


def test_aliases_and_enum_defaults_are_the_readers() -> None:
    colours = {"type": "enum", "name": "c", "symbols": ["RED", "GREEN"]}
    reader = record(
        ("n", "long"), ("c", {"type": "enum", "name": "c", "symbols": ["OTHER", "RED"], "default": "OTHER"})
    )
    reader["fields"][0]["aliases"] = ["number"]
    writer = record(("number", "int"), ("c", colours))
    assert _resolved(reader, writer, b"\x02\x00") == {"n": 1, "c": "RED"}
    assert _resolved(reader, writer, b"\x02\x02") == {"n": 1, "c": "OTHER"}


@pytest.mark.parametrize(
    ("writer", "reader", "reason"),
    [
        ("string", "int", "string of the field 'n' cannot be read as int"),
        ("long", "int", "cannot be read as int"),
        ({"type": "array", "items": "int"}, "int", "array of the field 'n' cannot be read as int"),
        ({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 3}, "cannot be read as f"),
    ],
)
def test_a_writers_type_that_cannot_be_read_is_told(writer: Any, reader: Any, reason: str) -> None:
    assert reason in _refused(record(("n", reader)), record(("n", writer)), b"\x02")


def test_a_field_without_default_is_needed() -> None:
    assert "'new' has no default" in _refused(record(("n", "long"), ("new", "int")), LONGS, b"\x02")


def test_only_the_branch_that_cannot_be_read_is_bad() -> None:
    reader, writer = record(("n", ["null", "long"])), record(("n", ["null", "long", "string"]))
    assert _resolved(reader, writer, b"\x02\x06") == {"n": 3}
    assert _resolved(reader, writer, b"\x00") == {"n": None}
    assert _refused(reader, writer, b"\x04\x02a") == "field n: its schema cannot be read as the one asked for (byte 1)"


def _single(number: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def _resolved(reader: Any, writer: Any, data: bytes) -> Any:
    """A row behind a frame whose schema id is the writer's."""
    return row_of(_reading(reader, writer), FRAME + data)


def _refused(reader: Any, writer: Any, data: bytes) -> str:
    return reason_of(_reading(reader, writer), FRAME + data)


def _reading(reader: Any, writer: Any) -> Decoder:
    return decoder("avro", json.dumps(reader), registry=known({1: ("AVRO", json.dumps(writer))}))
