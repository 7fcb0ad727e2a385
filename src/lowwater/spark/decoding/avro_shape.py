"""What Spark sees of an Avro schema: the types its own Avro reader gives."""

from __future__ import annotations

from lowwater.spark.decoding import shapes
from lowwater.spark.decoding.avro_schema import ArrayOf, Avro, EnumOf, Fixed, MapOf, Primitive, Record, Union
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.shapes import Decimal, ListOf, Room, Shape, StructOf

NULL = Primitive("null")
_PRIMITIVES = {
    "boolean": shapes.BOOL,
    "int": shapes.INT32,
    "long": shapes.INT64,
    "float": shapes.FLOAT32,
    "double": shapes.FLOAT64,
    "bytes": shapes.BINARY,
    "string": shapes.UTF8,
}
_LOGICAL = {
    "date": shapes.DATE,
    "timestamp-millis": shapes.TIMESTAMP,
    "timestamp-micros": shapes.TIMESTAMP,
    "local-timestamp-millis": shapes.TIMESTAMP_NTZ,
    "local-timestamp-micros": shapes.TIMESTAMP_NTZ,
    "uuid": shapes.UTF8,
}


def avro_shape(schema: Avro) -> StructOf:
    """Of a record, its fields; of anything else one column `value`."""
    shape = _shape(schema, (), Room())
    return shapes.check_struct(shape if isinstance(schema, Record) and isinstance(shape, StructOf) else whole(shape))


def whole(shape: Shape) -> StructOf:
    return StructOf((("value", shape),))


def branches_of(union: Union) -> list[Avro]:
    """Branches that have a column each: not null; and one for numbers that differ in size only."""
    some = [branch for branch in union.branches if branch != NULL]
    if set(some) == {Primitive("int"), Primitive("long")}:
        return [Primitive("long")]
    if set(some) == {Primitive("float"), Primitive("double")}:
        return [Primitive("double")]
    return some


def _shape(schema: Avro, within: tuple[Avro, ...], room: Room) -> Shape:
    room.take()
    if len(within) > shapes.DEPTH_MAX:
        raise SchemaError(f"the Avro schema is nested more than {shapes.DEPTH_MAX} deep")
    match schema:
        case Primitive(name="null"):
            raise SchemaError("an Avro field that is always null has no type in Spark")
        case Primitive() | Fixed():
            return _leaf(schema)
        case EnumOf():
            return shapes.UTF8
        case ArrayOf(item):
            return ListOf(_shape(item, (*within, schema), room))
        case MapOf(value):
            return shapes.MapOf(shapes.UTF8, _shape(value, (*within, schema), room))
        case Union():
            return _union(schema, (*within, schema), room)
        case Record():
            if any(schema is outer for outer in within):
                raise SchemaError(f"the Avro record {schema.name} contains itself: Spark has no such type")
            return StructOf(tuple((one.name, _shape(one.type, (*within, schema), room)) for one in schema.fields))


def _leaf(schema: Primitive | Fixed) -> Shape:
    if schema.logical == "decimal":
        return Decimal(schema.precision, schema.scale)
    if schema.logical is not None:
        return _LOGICAL[schema.logical]
    return _PRIMITIVES[schema.name] if isinstance(schema, Primitive) else shapes.BINARY


def _union(union: Union, within: tuple[Avro, ...], room: Room) -> Shape:
    some = branches_of(union)
    if len(some) == 1:
        return _shape(some[0], within, room)
    if not some:
        raise SchemaError("an Avro union of nothing but null has no type in Spark")
    return StructOf(tuple((f"member{place}", _shape(branch, within, room)) for place, branch in enumerate(some)))
