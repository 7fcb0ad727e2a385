"""The files that a Protobuf schema consists of, and the message that is meant."""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.protobuf_descriptors import parse_descriptor_set
from lowwater.spark.decoding.protobuf_model import ProtoFile, ProtoMessage, ProtoTypes
from lowwater.spark.decoding.protobuf_text import parse_proto
from lowwater.spark.decoding.protobuf_well_known import WELL_KNOWN
from lowwater.spark.decoding.spec import DecodeSpec


def chosen_message(spec: DecodeSpec) -> tuple[ProtoTypes, ProtoMessage]:
    """All types of a whole spec's schema, and the message to decode to."""
    files = proto_files(spec.schema if spec.schema is not None else "", dict(spec.references))
    types = ProtoTypes(files)
    return types, types.message(spec.message or _first(files[-1], spec.is_framed))


def proto_files(schema: str | bytes, references: Mapping[str, str]) -> list[ProtoFile]:
    """The files that a schema consists of, the schema itself last."""
    if isinstance(schema, bytes):
        return parse_descriptor_set(schema)
    known = {**WELL_KNOWN, **references}
    found: dict[str, ProtoFile] = {}
    main = parse_proto(schema)
    waiting = list(main.imports)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name not in known:
            raise SchemaError(f"the Protobuf schema imports {name!r}, which is not at hand: use a descriptor set")
        found[name] = parse_proto(known[name])
        waiting += found[name].imports
    return [*found.values(), main]


def _first(file: ProtoFile, is_framed: bool) -> str:
    """The message that is meant when none is named: behind a frame the first, as Confluent's serializers have it."""
    if len(file.top) == 1 or (file.top and is_framed):
        return file.top[0]
    raise SchemaError(f"decode.message has to say which: {', '.join(file.top) or 'the schema has no message'}")
