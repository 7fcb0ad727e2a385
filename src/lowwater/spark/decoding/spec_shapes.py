"""What a spec's rows are decoded to, by its schema alone: no row is decoded for it, and nothing compiled."""

from __future__ import annotations

from lowwater.spark.decoding.avro_schema import parse_avro
from lowwater.spark.decoding.avro_shape import avro_shape
from lowwater.spark.decoding.ddl import json_shape
from lowwater.spark.decoding.protobuf_files import chosen_message
from lowwater.spark.decoding.protobuf_shape import protobuf_shape
from lowwater.spark.decoding.shapes import StructOf
from lowwater.spark.decoding.spec import AVRO, JSON, DecodeSpec


def shape_of(spec: DecodeSpec) -> StructOf:
    """Of a whole spec. SchemaError when its schema cannot be understood."""
    if spec.format == JSON:
        return json_shape(str(spec.schema))
    if spec.format == AVRO:
        return avro_shape(parse_avro(str(spec.schema), dict(spec.references)))
    return protobuf_shape(*chosen_message(spec))
