"""Shapes as the Arrow types that Spark expects: no large or dictionary types, timestamps in microseconds of UTC."""

from __future__ import annotations

import pyarrow as pa

from lowwater.spark.decoding.shapes import Decimal, ListOf, MapOf, Scalar, Shape, StructOf

_SCALARS = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "utf8": pa.utf8(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "duration": pa.duration("us"),
}


def arrow_type(shape: Shape) -> pa.DataType:
    match shape:
        case Scalar(name):
            return _SCALARS[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case ListOf(item):
            return pa.list_(pa.field("element", arrow_type(item)))
        case MapOf(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case StructOf(fields):
            return pa.struct([pa.field(name, arrow_type(child)) for name, child in fields])


def arrow_schema(shape: StructOf) -> pa.Schema:
    return pa.schema(list(arrow_type(shape)))
