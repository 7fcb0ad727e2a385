"""Protobuf values as columns: every type, read as Google's library wrote it, and bad rows told apart."""

from __future__ import annotations

import datetime
import decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.spark.decoding.decoded import decode, decoder, reason_of, row_of, rows_of
from tests.unit.spark.decoding.protobuf_cases import Cases, as_text, expected

from lowwater.spark.decoding.errors import SchemaError

LINE = "message Line { int32 n = 1; repeated int32 z = 2; }"


def proto3(text: str) -> str:
    return (
        f'syntax = "proto3"; import "google/protobuf/duration.proto"; import "google/protobuf/wrappers.proto"; {text}'
    )


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.sampled_from(("proto2", "proto3")), st.booleans())
def test_values_are_what_googles_library_wrote(seed: int, syntax: str, emit_defaults: bool) -> None:
    cases = Cases(seed, syntax)
    messages = [cases.message() for _ in range(10)]
    options = {"message": cases.name, "emit_defaults": emit_defaults}
    wanted = [expected(message, emit_defaults) for message in messages]
    values = [message.SerializeToString() for message in messages]
    by_set = decoder("protobuf", cases.descriptor_set(), **options)
    assert rows_of(by_set, values) == wanted
    by_text = decoder("protobuf", as_text(cases.file), **options)
    assert sorted(by_text.schema.names) == sorted(by_set.schema.names)
    assert rows_of(by_text, values) == wanted


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_what_comes_later_counts_and_lists_go_on(seed: int) -> None:
    cases = Cases(seed, "proto3", is_flat=True)
    first, second = cases.message(), cases.message()
    data = first.SerializeToString() + second.SerializeToString()
    merged = cases.type()
    merged.ParseFromString(data)
    one = decoder("protobuf", cases.descriptor_set(), message=cases.name)
    assert row_of(one, data) == expected(merged, False)


def test_the_last_member_of_a_oneof_counts() -> None:
    one = decoder(
        "protobuf", proto3("message M { oneof o { int32 a = 1; string b = 2; Line c = 3; } } " + LINE), message="M"
    )
    assert row_of(one, b"\x08\x05\x12\x01x") == {"a": None, "b": "x", "c": None}
    assert row_of(one, b"\x12\x01x\x08\x00") == {"a": 0, "b": None, "c": None}
    assert row_of(one, b"\x12\x01x\x1a\x02\x08\x07") == {"a": None, "b": None, "c": {"n": 7, "z": []}}


def test_a_message_in_two_parts_is_one() -> None:
    one = decoder("protobuf", proto3("message M { Line l = 1; int32 k = 2; } " + LINE), message="M")
    assert row_of(one, b"\x0a\x04\x08\x05\x10\x01\x10\x09\x0a\x02\x10\x02") == {"l": {"n": 5, "z": [1, 2]}, "k": 9}


def test_numbers_are_packed_or_not_as_they_come() -> None:
    one = decoder("protobuf", proto3(LINE))
    assert row_of(one, b"\x12\x02\x01\x02\x10\x03\x12\x00\x12\x01\x04") == {"n": None, "z": [1, 2, 3, 4]}


def test_an_empty_value_is_a_message_and_null_is_none() -> None:
    one = decoder("protobuf", proto3(LINE))
    assert rows_of(one, [b"", None]) == [{"n": None, "z": []}, None]
    emitting = decoder("protobuf", proto3(LINE), emit_defaults=True)
    assert rows_of(emitting, [b"", None]) == [{"n": 0, "z": []}, None]


def test_unknown_fields_groups_and_other_wire_types_are_read_over() -> None:
    one = decoder("protobuf", proto3(LINE))
    unknown = b"\x98\x06\x05" + b"\x1b\x23\x08\x01\x24\x1c" + b"\x29" + bytes(8) + b"\x2d" + bytes(4) + b"\x32\x01x"
    assert row_of(one, unknown + b"\x0a\x01x" + b"\x08\x07") == {"n": 7, "z": []}


def test_proto2_has_defaults_and_closed_enums() -> None:
    text = r"""message M { optional int32 a = 1 [default = -5, deprecated = true];
      optional string s = 2 [default = 'x\'\n'];
      optional bytes b = 3 [default = "\001\xff"]; optional E e = 4 [default = B]; required bool t = 5;
      optional double d = 6 [default = -inf]; repeated E es = 7; } enum E { A = 1; B = 2; }"""
    one = decoder("protobuf", text)
    assert row_of(one, b"") == {
        "a": -5, "s": "x'\n", "b": b"\x01\xff", "e": "B", "t": None, "d": float("-inf"), "es": [],
    }  # fmt: skip
    assert row_of(one, b"\x20\x09\x38\x01\x38\x09")["es"] == ["A", None]


def test_an_open_enums_unknown_number_is_told_as_spark_tells_it() -> None:
    one = decoder("protobuf", proto3("message M { E e = 1; } enum E { A = 0; }"))
    assert row_of(one, b"\x08\x05") == {"e": "UNKNOWN_ENUM_VALUE_E_5"}


def test_unsigned_numbers_keep_their_value_and_durations_are_durations() -> None:
    text = (
        "message M { uint64 u = 1; fixed32 f = 2; google.protobuf.Duration d = 3; google.protobuf.Int32Value w = 4; }"
    )
    row = row_of(
        decoder("protobuf", proto3(text)), b"\x08" + b"\xff" * 9 + b"\x01\x15\xff\xff\xff\xff\x1a\x02\x08\x02\x22\x00"
    )
    assert row == {
        "u": decimal.Decimal(2**64 - 1), "f": 2**32 - 1, "d": datetime.timedelta(seconds=2), "w": {"value": None},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x08", "the bytes end too early"),
        (b"\x08" + b"\xff" * 10, "a number has too many bytes"),
        (b"\x00\x01", "an impossible number or wire type"),
        (b"\x0e", "an impossible number or wire type"),
        (b"\x12\x05\x01", "field z: a length is negative or beyond the end"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "field z: a length is negative or beyond the end"),
        (b"\x12\x01\xff", "field z: the bytes end too early"),
        (b"\x1b\x08\x01", "the bytes end too early"),
        (b"\x1b\x24", "a group is not closed"),
        (b"\x1c", "a group is not closed"),
        (b"\x1b" * 2000, "groups are nested too deep"),
    ],
)
def test_a_bad_row_says_why(value: bytes, reason: str) -> None:
    assert reason in reason_of(decoder("protobuf", proto3(LINE)), value)


def test_a_text_that_is_not_utf8_is_bad() -> None:
    one = decoder("protobuf", proto3("message M { string s = 1; bytes b = 2; }"))
    assert reason_of(one, b"\x0a\x01\xff") == "field s: a text is not UTF-8 (byte 2)"
    assert row_of(one, b"\x12\x01\xff") == {"s": None, "b": b"\xff"}


def test_values_cut_anywhere_disturb_nobody() -> None:
    cases = Cases(11, "proto3")
    data = max((cases.message().SerializeToString() for _ in range(20)), key=len)
    one = decoder("protobuf", cases.descriptor_set(), message=cases.name)
    whole = row_of(one, data)
    decoded = decode(one, [piece for size in range(len(data)) for piece in (data[:size], data)])
    assert [decoded.struct[row].as_py() is not None for row in range(1, 2 * len(data), 2)] == [True] * len(data)
    assert rows_of(one, [data]) == [whole]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message M { M m = 1; }", "contains itself"),
        ("message M { google.protobuf.Struct s = 1; }", "unknown type"),
        ("message M { Other o = 1; }", "unknown type 'Other'"),
        ("message M { int32 a = 1; int32 b = 1; }", "a field number twice"),
        ("message M { int32 a = 0; }", "an impossible one"),
        ("message M { }", "has no fields"),
        ("message M { int32 a = 1", "expected ';'"),
        ("message M { int32 a; }", "expected '='"),
        ("message M { int32 a = x; }", "expected a number, found 'x'"),
        ("message M { int32 a = 1; } message N { int32 a = 1; }", "which: M, N"),
        ("message M { repeated group G = 1 { } }", "groups are not understood"),
        ('import "other.proto"; message M { int32 a = 1; }', "imports 'other.proto'"),
        ("@", "'@' cannot be read"),
        ("message M { option (x) = { a: [1, 2) }; }", "brackets do not match"),
        ("message M { string a = 1; string A = 2; }", "are the same to Spark"),
    ],
)
def test_a_schema_that_cannot_be_columns_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason.replace("(", r"\(")):
        decoder("protobuf", proto3(text))


def test_an_error_in_a_schema_has_its_line() -> None:
    with pytest.raises(SchemaError, match="line 3: expected '='"):
        decoder("protobuf", 'syntax = "proto3";\nmessage M {\n int32 a; }')


def test_services_extensions_and_options_are_read_over() -> None:
    text = """option java_package = "x"; extend google.protobuf.FieldOptions { optional string tag = 50000; }
      service S { rpc Get(M) returns (stream M) { option (google.api.http) = { get: "/v1/{name=*}" }; } }
      message M { extensions 100 to max; option (a).b = "}"; .M.Inner inner = 1; message Inner { int64 optional = 1; }
        enum E { option allow_alias = true; A = 0 [(x) = "y"]; B = 0; } E repeated = 2; int32 message = 3; };"""
    one = decoder("protobuf", 'syntax = "proto3";' + text)
    assert row_of(one, b"\x0a\x02\x08\x05\x18\x09") == {"inner": {"optional": 5}, "repeated": None, "message": 9}


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    text = "".join(f"message M{n} {{ {''.join(f'M{n - 1} f{k} = {k}; ' for k in range(1, 9))} }}" for n in range(1, 12))
    with pytest.raises(SchemaError, match="unfolds to more than"):
        decoder("protobuf", proto3("message M0 { int32 a = 1; } " + text), message="M11")


@pytest.mark.parametrize("data", [b"", b"\x0a\x05abc", b"\xff" * 20, b"not a descriptor set"])
def test_what_is_no_descriptor_set_is_refused(data: bytes) -> None:
    with pytest.raises(SchemaError, match="descriptor set"):
        decoder("protobuf", data, message="M")
