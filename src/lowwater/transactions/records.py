"""Records of `__transaction_state`, as Apache Kafka 4.3 does it: a type before the key, a version before the value."""

from __future__ import annotations

import struct

from lowwater.errors import WireError
from lowwater.outcome import StateRecord
from lowwater.transactions.record_schemas import TransactionLogKey, TransactionLogPartitions, TransactionLogValue
from lowwater.wire.schema import declaration_of, decoder, encoder

__all__ = [
    "TransactionLogKey",
    "TransactionLogPartitions",
    "TransactionLogValue",
    "decode",
    "encode",
]

_INT16 = struct.Struct(">h")
_KEY_TYPE = 0
_VERSION_OF_LEVEL = {0: 0, 1: 1, 2: 1}


def encode(transactional_id: str, value: TransactionLogValue | None, *, transaction_version: int = 2) -> StateRecord:
    """The record that stores `value` for the id, or with None forgets the id.

    The level of the feature transaction.version decides the form: at level 0 the tagged fields cannot be told.
    """
    key = _INT16.pack(_KEY_TYPE) + encoder(TransactionLogKey, 0)(TransactionLogKey(transactional_id=transactional_id))
    if value is None:
        return StateRecord(key, None)
    version = _VERSION_OF_LEVEL[transaction_version]
    return StateRecord(key, _INT16.pack(version) + encoder(TransactionLogValue, version)(value))


def decode(record: StateRecord) -> tuple[str, TransactionLogValue | None] | None:
    """The id and its value, None for the value of an id that is forgotten.

    None altogether for a type of key that is not known. WireError when it cannot be read.
    """
    key, value = record
    if len(key) < _INT16.size or _INT16.unpack_from(key)[0] != _KEY_TYPE:
        return None
    read_key = decoder(TransactionLogKey, 0)(memoryview(key)[2:])
    return read_key.transactional_id, None if value is None else _decoded_value(value)


def _decoded_value(value: bytes) -> TransactionLogValue:
    if len(value) < _INT16.size:
        raise WireError(f"a value of {len(value)} bytes")
    (version,) = _INT16.unpack_from(value)
    declared = declaration_of(TransactionLogValue)
    if not declared.version_min <= version <= declared.version_max:
        raise WireError(f"TransactionLogValue v{version} is not known here")
    return decoder(TransactionLogValue, version)(memoryview(value)[2:])
