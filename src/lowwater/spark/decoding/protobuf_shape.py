"""What Spark sees of a Protobuf message: its own types, with unsigned numbers in the next wider one."""

from __future__ import annotations

from lowwater.spark.decoding import shapes
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.protobuf_model import ENUM, MESSAGE, ProtoField, ProtoMessage, ProtoTypes
from lowwater.spark.decoding.protobuf_well_known import DURATION, TIMESTAMP
from lowwater.spark.decoding.shapes import Decimal, ListOf, MapOf, Room, Shape, StructOf

UINT64 = Decimal(20, 0)
_SCALARS: dict[str, Shape] = {
    "double": shapes.FLOAT64,
    "float": shapes.FLOAT32,
    "bool": shapes.BOOL,
    "string": shapes.UTF8,
    "bytes": shapes.BINARY,
    **dict.fromkeys(("int32", "sint32", "sfixed32"), shapes.INT32),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), shapes.INT64),
    **dict.fromkeys(("uint64", "fixed64"), UINT64),
}
_SPECIAL = {TIMESTAMP: shapes.TIMESTAMP, DURATION: shapes.DURATION}


def protobuf_shape(types: ProtoTypes, message: ProtoMessage) -> StructOf:
    """The message's fields; those whose message has no fields at all are left out, as Spark does."""
    shape = _struct(types, message, (), Room())
    if not shape.fields:
        raise SchemaError(f"the Protobuf message {message.name} has no fields")
    return shapes.check_struct(shape)


def columns_of(types: ProtoTypes, message: ProtoMessage) -> list[ProtoField]:
    """Fields that have a column, in the order of the columns."""
    return [field for field in message.fields if not _is_empty(types, field)]


def _is_empty(types: ProtoTypes, field: ProtoField) -> bool:
    return field.type == MESSAGE and not types.messages[field.type_name].fields


def _struct(types: ProtoTypes, message: ProtoMessage, within: tuple[str, ...], room: Room) -> StructOf:
    if message.name in within:
        raise SchemaError(f"the Protobuf message {message.name} contains itself: Spark has no such type")
    inner = (*within, message.name)
    return StructOf(tuple((field.name, _field(types, field, inner, room)) for field in columns_of(types, message)))


def _field(types: ProtoTypes, field: ProtoField, within: tuple[str, ...], room: Room) -> Shape:
    if field.type == MESSAGE and types.messages[field.type_name].is_map_entry:
        key, value = types.messages[field.type_name].fields
        if _is_empty(types, value):
            raise SchemaError(f"the Protobuf map {field.name} has values without fields: Spark has no such type")
        return MapOf(_one(types, key, within, room), _one(types, value, within, room))
    shape = _one(types, field, within, room)
    return ListOf(shape) if field.is_repeated else shape


def _one(types: ProtoTypes, field: ProtoField, within: tuple[str, ...], room: Room) -> Shape:
    room.take()
    if field.type == ENUM:
        return shapes.UTF8
    if field.type != MESSAGE:
        return _SCALARS[field.type]
    if field.type_name in _SPECIAL:
        return _SPECIAL[field.type_name]
    return _struct(types, types.messages[field.type_name], within, room)
