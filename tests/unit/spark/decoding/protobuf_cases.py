"""Random Protobuf messages by Google's own library: schemas, values, and what they are as columns."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.descriptor import FieldDescriptor

Proto = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "double": Proto.TYPE_DOUBLE, "float": Proto.TYPE_FLOAT, "int64": Proto.TYPE_INT64, "uint64": Proto.TYPE_UINT64,
    "int32": Proto.TYPE_INT32, "fixed64": Proto.TYPE_FIXED64, "fixed32": Proto.TYPE_FIXED32, "bool": Proto.TYPE_BOOL,
    "string": Proto.TYPE_STRING, "bytes": Proto.TYPE_BYTES, "uint32": Proto.TYPE_UINT32,
    "sfixed32": Proto.TYPE_SFIXED32, "sfixed64": Proto.TYPE_SFIXED64, "sint32": Proto.TYPE_SINT32,
    "sint64": Proto.TYPE_SINT64,
}  # fmt: skip
NAMES = {number: name for name, number in SCALARS.items()}
KEYS = ("int64", "uint32", "sint32", "fixed32", "bool", "string")
TIMESTAMP = ".google.protobuf.Timestamp"


class Cases:
    """A file with messages m0, m1 …; each uses only those before it, so none contains itself."""

    def __init__(self, seed: int, syntax: str, is_flat: bool = False) -> None:
        self.chance = random.Random(seed)
        self.is_flat = is_flat  # no message within another, no oneof
        self.is_proto3 = syntax == "proto3"
        self.file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="shop.v1", syntax=syntax)
        self.file.dependency.append("google/protobuf/timestamp.proto")
        kind = self.file.enum_type.add(name="Kind")
        for number in (0, 1, -7, 300):
            kind.value.add(name=f"K{number}".replace("-", "M"), number=number)
        for place in range(self.chance.randint(1, 3)):
            self._message(place)
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self.file.SerializeToString())
        self.name = f"shop.v1.{self.file.message_type[-1].name}"
        self.type = message_factory.GetMessageClass(pool.FindMessageTypeByName(self.name))

    def descriptor_set(self) -> bytes:
        files = descriptor_pb2.FileDescriptorSet()
        files.file.add().MergeFromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
        files.file.append(self.file)
        return files.SerializeToString()

    def message(self) -> Any:
        message = self.type()
        self._fill(message)
        return message

    def _message(self, place: int) -> None:
        message = self.file.message_type.add(name=f"m{place}")
        numbers = self.chance.sample(range(1, 40), 7) if self.chance.random() < 0.7 else [1, 2, 16, 2047, 2**29 - 1]
        if self.chance.random() < 0.5 and not self.is_flat:
            message.oneof_decl.add(name="one")
            for number in (50, 51, 52):
                self._single(message, number, place).oneof_index = 0
        for number in numbers:
            self._field(message, number, place)

    def _field(self, message: Any, number: int, place: int) -> None:
        shape = self.chance.choice(("single", "single", "optional", "repeated", "map"))
        if shape == "map":
            return self._map(message, number, place)
        field = self._single(message, number, place)
        if shape == "repeated":
            field.label = Proto.LABEL_REPEATED
        elif shape == "optional" and self.is_proto3 and field.type != Proto.TYPE_MESSAGE:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_f{number}")
        return None

    def _single(self, message: Any, number: int, place: int) -> Any:
        field = message.field.add(name=f"f{number}", number=number, label=Proto.LABEL_OPTIONAL)
        self._type(field, place)
        return field

    def _type(self, field: Any, place: int) -> None:
        choice = 1 if self.is_flat else self.chance.random()
        if choice < 0.2 and place:
            field.type, field.type_name = Proto.TYPE_MESSAGE, f".shop.v1.m{self.chance.randrange(place)}"
        elif choice < 0.3:
            field.type, field.type_name = Proto.TYPE_MESSAGE, TIMESTAMP
        elif choice < 0.4:
            field.type, field.type_name = Proto.TYPE_ENUM, ".shop.v1.Kind"
        else:
            field.type = self.chance.choice(list(SCALARS.values()))

    def _map(self, message: Any, number: int, place: int) -> None:
        entry = message.nested_type.add(name=f"F{number}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=Proto.LABEL_OPTIONAL, type=SCALARS[self.chance.choice(KEYS)])
        self._type(entry.field.add(name="value", number=2, label=Proto.LABEL_OPTIONAL), place)
        name = f".shop.v1.{message.name}.{entry.name}"
        message.field.add(name=f"f{number}", number=number, label=Proto.LABEL_REPEATED, type=11, type_name=name)

    def _fill(self, message: Any) -> None:
        for field in message.DESCRIPTOR.fields:
            if self.chance.random() < 0.3:
                continue
            if _is_map(field):
                self._fill_map(getattr(message, field.name), field.message_type.fields_by_name["value"], field)
            elif field.is_repeated:
                self._fill_list(getattr(message, field.name), field)
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                getattr(message, field.name).SetInParent()
                self._fill_message(getattr(message, field.name))
            else:
                setattr(message, field.name, self._scalar(field))

    def _fill_message(self, message: Any) -> None:
        if message.DESCRIPTOR.full_name == TIMESTAMP[1:]:
            message.seconds, message.nanos = (
                self.chance.randint(-(10**10), 10**11),
                self.chance.choice((0, 1000, 999999999)),
            )
        else:
            self._fill(message)

    def _fill_list(self, items: Any, field: Any) -> None:
        for _ in range(self.chance.choice((0, 1, 3))):
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                self._fill_message(items.add())
            else:
                items.append(self._scalar(field))

    def _fill_map(self, items: Any, value: Any, field: Any) -> None:
        key = field.message_type.fields_by_name["key"]
        for _ in range(self.chance.choice((0, 1, 3))):
            if value.type == FieldDescriptor.TYPE_MESSAGE:
                self._fill_message(items[self._scalar(key)])
            else:
                items[self._scalar(key)] = self._scalar(value)

    def _scalar(self, field: Any) -> Any:
        chance, kind = self.chance, NAMES.get(field.type, "enum")
        if kind == "enum":
            return chance.choice((0, 1, -7, 300))
        if kind in ("double", "float"):
            return chance.choice((0.0, 0.5, -1.25, float("inf")))
        if kind == "bool":
            return chance.random() < 0.5
        if kind == "string":
            return chance.choice(("", "a", "é日𝄞" * 20))
        if kind == "bytes":
            return chance.randbytes(chance.choice((0, 3, 200)))
        bits = 64 if "64" in kind else 32
        if kind.startswith(("u", "fixed")):
            return chance.choice((0, 1, 2**bits - 1, chance.getrandbits(bits)))
        return chance.choice((0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), chance.getrandbits(bits - 1)))


def expected(message: Any, emit_defaults: bool) -> dict[str, Any]:
    """A message as it is in columns."""
    return {field.name: _expected(message, field, emit_defaults) for field in message.DESCRIPTOR.fields}


def _expected(message: Any, field: Any, emit_defaults: bool) -> Any:
    value = getattr(message, field.name)
    if _is_map(field):
        inner = field.message_type.fields_by_name["value"]
        key = field.message_type.fields_by_name["key"]
        return {_plain(one, key, emit_defaults): _plain(value[one], inner, emit_defaults) for one in value}
    if field.is_repeated:
        return [_plain(one, field, emit_defaults) for one in value]
    if field.has_presence:
        return _plain(value, field, emit_defaults) if message.HasField(field.name) else None
    is_set = any(one.name == field.name for one, _ in message.ListFields())
    return _plain(value, field, emit_defaults) if is_set or emit_defaults else None


def _plain(value: Any, field: Any, emit_defaults: bool) -> Any:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        if field.message_type.full_name == TIMESTAMP[1:]:
            moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
            return moment + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        return expected(value, emit_defaults)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return field.enum_type.values_by_number[value].name
    return decimal.Decimal(value) if field.type in (Proto.TYPE_UINT64, Proto.TYPE_FIXED64) else value


def _is_map(field: Any) -> bool:
    return field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type.GetOptions().map_entry


def as_text(file: Any) -> str:
    """The file as somebody would have written it."""
    lines = [f'syntax = "{file.syntax}"; // a comment', f"package {file.package};"]
    lines += [f"import '{name}'; /* another\n one */" for name in file.dependency]
    for enum in file.enum_type:
        values = "".join(f"  {value.name} = {value.number};\n" for value in enum.value)
        lines.append(f"enum {enum.name} {{\n{values}}}")
    return "\n".join([*lines, *(_message_text(message, file) for message in file.message_type)])


def _message_text(message: Any, file: Any) -> str:
    entries = {entry.name: entry for entry in message.nested_type}
    lines = [f"message {message.name} {{", '  reserved 100 to 200, 300; reserved "gone"; option deprecated = true;']
    members = []
    for field in message.field:
        kind = _kind(field)
        entry = entries.get(kind.rpartition(".")[2])
        if entry is not None:
            kind = f"map<{_kind(entry.field[0])}, {_kind(entry.field[1])}>"
            lines.append(f"  {kind} {field.name} = {field.number};")
        elif field.HasField("oneof_index") and not field.proto3_optional:
            members.append(f"    {kind} {field.name} = {field.number};")
        else:
            lines.append(f"  {_label(field, file)}{kind} {field.name} = {field.number} [deprecated = false];")
    if members:
        lines += ["  oneof one {", *members, "  }"]
    return "\n".join([*lines, "}"])


def _kind(field: Any) -> str:
    return NAMES[field.type] if field.type in NAMES else field.type_name.removeprefix(".shop.v1.")


def _label(field: Any, file: Any) -> str:
    if field.label == Proto.LABEL_REPEATED:
        return "repeated "
    return "optional " if file.syntax == "proto2" or field.proto3_optional else ""
