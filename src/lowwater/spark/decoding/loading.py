"""Making a spec whole: its schema from a file or from the registry, so that whoever decodes by it decodes alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lowwater.spark.decoding.errors import DecodeError
from lowwater.spark.decoding.registry import Registry
from lowwater.spark.decoding.spec import PROTOBUF, DecodeSpec, ReadFile


def load_spec(spec: DecodeSpec, read: ReadFile | None = None) -> DecodeSpec:
    """See `DecodeSpec.loaded`."""
    if spec.schema_file is not None:
        return _from_file(spec, spec.schema_file, read or _read)
    return spec if spec.schema is not None else _from_registry(spec)


def _from_file(spec: DecodeSpec, path: str, read: ReadFile) -> DecodeSpec:
    """A Protobuf schema is a descriptor set unless its file ends in .proto, whose imports are looked for beside it."""
    data = read(path)
    if spec.format == PROTOBUF and not path.endswith(".proto"):
        return replace(spec, schema=data, schema_file=None)
    text = _text(path, data)
    references = _imports(path, text, read) if spec.format == PROTOBUF else {}
    return replace(spec, schema=text, schema_file=None, references=tuple(references.items()))


def _imports(path: str, text: str, read: ReadFile) -> dict[str, str]:
    from lowwater.spark.decoding.protobuf_text import parse_proto
    from lowwater.spark.decoding.protobuf_well_known import WELL_KNOWN

    found: dict[str, str] = {}
    waiting = parse_proto(text).imports
    while waiting:
        name = waiting.pop()
        if name in WELL_KNOWN or name in found:
            continue
        beside = str(Path(path).parent / name)
        found[name] = _text(beside, read(beside))
        waiting += parse_proto(found[name]).imports
    return found


def _from_registry(spec: DecodeSpec) -> DecodeSpec:
    assert spec.registry is not None, "a spec without a schema has a registry"
    subject = spec.registry.subject
    if subject is None:
        raise DecodeError("decode.registry.subject is needed: which schema of the registry are rows decoded to?")
    found = Registry.of(spec.registry).latest(subject, spec.registry.version, spec.format)
    return replace(spec, schema=found.text, references=found.references)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DecodeError(f"decode.schemaFile: {path} cannot be read: {error.strerror}") from None


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DecodeError(f"decode.schemaFile: {path} is not text in UTF-8") from None
