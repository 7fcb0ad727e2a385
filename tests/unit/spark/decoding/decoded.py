"""What the tests of decoding share: rows in, plain Python values and reasons out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lowwater.spark.decoding.decoder import Decoded, Decoder
from lowwater.spark.decoding.spec import DecodeSpec


def decoder(format: str, schema: str | bytes, **fields: Any) -> Decoder:
    return Decoder.of(DecodeSpec.of(format, schema=schema, **fields))


def decode(decoder: Decoder, values: Sequence[bytes | None]) -> Decoded:
    """Decoded, with everything checked that Arrow can check, and the bad rows being null."""
    decoded = decoder.decode(pa.array(values, pa.binary()))
    decoded.struct.validate(full=True)
    assert decoded.struct.type == decoder.type
    assert len(decoded.struct) == len(values)
    assert all(decoded.struct[int(row)].as_py() is None for row in decoded.bad)
    return decoded


def rows_of(decoder: Decoder, values: Sequence[bytes | None]) -> list[Any]:
    """The rows, all of which have to be good; maps as dicts."""
    decoded = decode(decoder, values)
    assert decoded.reasons == ()
    return [plain(row, decoder.type) for row in decoded.struct.to_pylist()]


def row_of(decoder: Decoder, value: bytes) -> Any:
    return rows_of(decoder, [value])[0]


def reason_of(decoder: Decoder, value: bytes) -> str:
    """Why this value is bad; good rows around it stay good."""
    decoded = decode(decoder, [None, value, None])
    assert decoded.bad.tolist() == [1]
    return decoded.reasons[0]


def plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [plain(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return {key: plain(item, kind.item_type) for key, item in value}
    return value
