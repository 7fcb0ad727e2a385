"""Columns as Spark writes them."""

from __future__ import annotations

import pytest

from lowwater.spark.decoding import shapes
from lowwater.spark.decoding.ddl import parse_ddl
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.shapes import Decimal, ListOf, MapOf, StructOf


def test_columns_have_names_and_types() -> None:
    assert parse_ddl("id LONG, amount: double,`odd, name` string, at timestamp") == StructOf(
        (("id", shapes.INT64), ("amount", shapes.FLOAT64), ("odd, name", shapes.UTF8), ("at", shapes.TIMESTAMP))
    )


def test_types_are_nested() -> None:
    line = StructOf((("sku", shapes.UTF8), ("price", Decimal(10, 2))))
    found = parse_ddl("lines array<struct<sku: string, price decimal(10, 2)>>, m map<string, array<int>>, e struct<>")
    assert found == StructOf(
        (("lines", ListOf(line)), ("m", MapOf(shapes.UTF8, ListOf(shapes.INT32))), ("e", StructOf(())))
    )


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("boolean", shapes.BOOL), ("tinyint", shapes.INT8), ("byte", shapes.INT8), ("smallint", shapes.INT16),
        ("short", shapes.INT16), ("integer", shapes.INT32), ("bigint", shapes.INT64), ("real", shapes.FLOAT32),
        ("float", shapes.FLOAT32), ("binary", shapes.BINARY), ("date", shapes.DATE),
        ("timestamp_ntz", shapes.TIMESTAMP_NTZ), ("decimal", Decimal(10, 0)), ("numeric(5)", Decimal(5, 0)),
    ],
)  # fmt: skip
def test_every_type_has_sparks_name(text: str, shape: shapes.Shape) -> None:
    assert parse_ddl(f"a {text}") == StructOf((("a", shape),))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a name, found the end"),
        ("a", "expected a type, found the end"),
        ("a int b int", "expected a comma or the end, found 'b' at character 7"),
        ("a int,", "expected a name, found the end"),
        ("a varchar", "'varchar' at character 3 is not a type"),
        ("a array<int", "expected '>', found the end"),
        ("a map<string>", "expected ',', found '>' at character 13"),
        ("a decimal(x)", "expected a number, found 'x' at character 11"),
        ("a decimal(39,0)", "at most 38 digits"),
        ("a int, A long", "'a' and 'A' are the same to Spark"),
        ("`a int", "a ` is not closed"),
        ("a int; b int", "expected a comma or the end, found ';' at character 6"),
        ("a " + "array<" * 70 + "int" + ">" * 70, "nested more than 64 deep"),
    ],
)
def test_what_is_wrong_has_its_place(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        parse_ddl(text)
