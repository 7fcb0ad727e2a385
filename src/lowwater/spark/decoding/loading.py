"""Making a spec whole: its schema from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lowwater.spark.decoding.errors import DecodeError
from lowwater.spark.decoding.spec import PROTOBUF, DecodeSpec, ReadFile


def load_spec(spec: DecodeSpec, read: ReadFile | None = None) -> DecodeSpec:
    """See `DecodeSpec.loaded`."""
    if spec.schema_file is None:
        return spec
    data = (read or _read)(spec.schema_file)
    is_set = spec.format == PROTOBUF and not spec.schema_file.endswith(".proto")
    return replace(spec, schema=data if is_set else _text(spec.schema_file, data), schema_file=None)


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
