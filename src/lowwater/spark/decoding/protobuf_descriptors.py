"""Descriptor sets, as `protoc --descriptor_set_out --include_imports` writes them."""

from __future__ import annotations

from collections import defaultdict

from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.protobuf_model import NAMED, ProtoEnum, ProtoField, ProtoFile, ProtoMessage, unescape

# Numbers of descriptor.proto.
_FILES = 1
_NAME, _PACKAGE, _IMPORTS, _MESSAGES, _ENUMS, _SYNTAX, _EDITION = 1, 2, 3, 4, 5, 12, 14
_FIELDS, _NESTED, _NESTED_ENUMS, _MESSAGE_OPTIONS, _ONEOFS, _MAP_ENTRY = 2, 3, 4, 7, 8, 7
_NUMBER, _LABEL, _TYPE, _TYPE_NAME, _DEFAULT, _ONEOF_INDEX, _PROTO3_OPTIONAL = 3, 4, 5, 6, 7, 9, 17
_VALUES, _VALUE_NUMBER = 2, 2
_REPEATED = 3
_TYPES = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    11: NAMED,
    12: "bytes",
    13: "uint32",
    14: NAMED,
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
DEPTH_MAX = 64
Fields = dict[int, list[int | bytes]]


def parse_descriptor_set(data: bytes) -> list[ProtoFile]:
    """All files of the set, those that others import first, as protoc orders them."""
    files = [_file(_bytes(one)) for one in _read(data).get(_FILES, [])]
    if not files:
        raise SchemaError("the descriptor set holds no files: is it the output of protoc --descriptor_set_out?")
    return files


def _file(data: bytes) -> ProtoFile:
    fields = _read(data)
    if _EDITION in fields:
        raise SchemaError("the descriptor set uses editions, which are not understood: use syntax proto2 or proto3")
    file = ProtoFile(_text(fields, _PACKAGE), [_bytes(one).decode() for one in fields.get(_IMPORTS, [])])
    is_proto3 = _text(fields, _SYNTAX) == "proto3"
    for one in fields.get(_MESSAGES, []):
        file.top.append(_message(file, _bytes(one), file.package, is_proto3, 0))
    for one in fields.get(_ENUMS, []):
        _enum(file, _bytes(one), file.package, is_proto3)
    return file


def _message(file: ProtoFile, data: bytes, scope: str, is_proto3: bool, depth: int) -> str:
    if depth > DEPTH_MAX:
        raise SchemaError(f"messages of the descriptor set are nested more than {DEPTH_MAX} deep")
    fields = _read(data)
    message = ProtoMessage(_within(scope, _text(fields, _NAME)))
    options = _read(_bytes(fields[_MESSAGE_OPTIONS][-1])) if _MESSAGE_OPTIONS in fields else {}
    message.is_map_entry = bool(_number(options, _MAP_ENTRY))
    file.messages[message.name] = message
    oneofs = [_text(_read(_bytes(one)), _NAME) for one in fields.get(_ONEOFS, [])]
    message.fields = [_field(_bytes(one), oneofs, is_proto3) for one in fields.get(_FIELDS, [])]
    message.nested = [
        _message(file, _bytes(one), message.name, is_proto3, depth + 1) for one in fields.get(_NESTED, [])
    ]
    for one in fields.get(_NESTED_ENUMS, []):
        _enum(file, _bytes(one), message.name, is_proto3)
    return message.name


def _field(data: bytes, oneofs: list[str], is_proto3: bool) -> ProtoField:
    fields = _read(data)
    kind = _TYPES.get(_number(fields, _TYPE))
    name = _text(fields, _NAME)
    if kind is None:
        raise SchemaError(f"the Protobuf field {name} is a group, which is not understood")
    is_optional = bool(_number(fields, _PROTO3_OPTIONAL))  # its oneof is there for the wire's sake only
    place = _number(fields, _ONEOF_INDEX)
    oneof = oneofs[place] if _ONEOF_INDEX in fields and not is_optional and 0 <= place < len(oneofs) else None
    return ProtoField(
        name,
        _number(fields, _NUMBER),
        kind,
        _text(fields, _TYPE_NAME),
        _number(fields, _LABEL) == _REPEATED,
        not is_proto3 or is_optional or oneof is not None,
        oneof,
        _default(fields, kind),
    )


def _default(fields: Fields, kind: str) -> str | None:
    if _DEFAULT not in fields:
        return None
    text = _text(fields, _DEFAULT)
    return unescape(text) if kind == "bytes" else text


def _enum(file: ProtoFile, data: bytes, scope: str, is_proto3: bool) -> None:
    fields = _read(data)
    enum = ProtoEnum(_within(scope, _text(fields, _NAME)), {}, is_closed=not is_proto3)
    for one in fields.get(_VALUES, []):
        value = _read(_bytes(one))
        number = _number(value, _VALUE_NUMBER) & 0xFFFFFFFF
        enum.values.setdefault(number - (number >> 31 << 32), _text(value, _NAME))
    file.enums[enum.name] = enum


def _read(data: bytes) -> Fields:
    """Numbers and bytes of a message, by field."""
    found: Fields = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            number, at = _varint(data, at)
            found[tag >> 3].append(number)
            continue
        size, at = _varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}.get(tag & 7, len(data) + 1), at)
        if size > len(data) - at:
            raise _broken()
        found[tag >> 3].append(data[at : at + size])
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(10):
        if at + place >= len(data):
            break
        byte = data[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    raise _broken()


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _broken()
    return value


def _text(fields: Fields, number: int) -> str:
    try:
        return _bytes(fields[number][-1]).decode() if number in fields else ""
    except UnicodeDecodeError:
        raise _broken() from None


def _number(fields: Fields, number: int) -> int:
    value = fields[number][-1] if number in fields else 0
    if isinstance(value, bytes):
        raise _broken()
    return value


def _broken() -> SchemaError:
    return SchemaError("the descriptor set cannot be read: is it the output of protoc --descriptor_set_out?")


def _within(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
