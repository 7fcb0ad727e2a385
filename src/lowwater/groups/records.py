"""Records of `__consumer_offsets`, read and written as Apache Kafka 4.3 does.

A key begins with its type, a value with its version. Committed offsets are written and read by the hundred thousand:
their usual form has its own few lines here, which do what the generated codec does in a third of its time.
"""

import struct
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

from lowwater.errors import WireError
from lowwater.groups import record_schemas as schemas
from lowwater.groups.record_schemas import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from lowwater.outcome import StateRecord
from lowwater.wire.schema import ZERO_UUID, declaration_of, decoder, encoder

Key: TypeAlias = Any
Value: TypeAlias = Any

_INT16 = struct.Struct(">h")
_KEY_LEAD = struct.Struct(">hh")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_VALUE_LEAD = struct.Struct(">hqiB")
_new = object.__new__
_OFFSET_COMMIT, _GROUP_METADATA = 1, 2
_OFFSET_VERSION, _EXPIRING_OFFSET_VERSION = 4, 1
_SHORT_TEXT_MAX = 126  # its length is a varint of one byte
_NO_TAGS, _TOPIC_ID_TAG = b"\0", b"\1\0\x10"


class _Kind:
    """A key, its value, and the version in which that is written. The codecs are made when they are first used."""

    def __init__(self, key: type[Any], value: type[Any], version: int) -> None:
        self.key = key
        self.value = value
        self.version = version

    @cached_property
    def write_key(self) -> Callable[[Key], bytes]:
        lead, write = _INT16.pack(declaration_of(self.key).key), encoder(self.key, 0)
        return lambda key: lead + write(key)

    @cached_property
    def write_value(self) -> Callable[[Value], bytes]:
        lead, write = _INT16.pack(self.version), encoder(self.value, self.version)
        return lambda value: lead + write(value)


_KINDS = {
    declaration_of(kind.key).key: kind
    for kind in (
        _Kind(schemas.LegacyOffsetCommitKey, schemas.LegacyOffsetCommitValue, 0),
        _Kind(schemas.OffsetCommitKey, schemas.OffsetCommitValue, _OFFSET_VERSION),
        _Kind(schemas.GroupMetadataKey, schemas.GroupMetadataValue, 3),
        _Kind(schemas.ConsumerGroupMetadataKey, schemas.ConsumerGroupMetadataValue, 0),
        _Kind(schemas.ConsumerGroupPartitionMetadataKey, schemas.ConsumerGroupPartitionMetadataValue, 0),
        _Kind(schemas.ConsumerGroupMemberMetadataKey, schemas.ConsumerGroupMemberMetadataValue, 0),
        _Kind(schemas.ConsumerGroupTargetAssignmentMetadataKey, schemas.ConsumerGroupTargetAssignmentMetadataValue, 0),
        _Kind(schemas.ConsumerGroupTargetAssignmentMemberKey, schemas.ConsumerGroupTargetAssignmentMemberValue, 0),
        _Kind(schemas.ConsumerGroupCurrentMemberAssignmentKey, schemas.ConsumerGroupCurrentMemberAssignmentValue, 0),
        _Kind(schemas.ConsumerGroupRegularExpressionKey, schemas.ConsumerGroupRegularExpressionValue, 0),
    )
}
_EXPIRING_OFFSET = _Kind(schemas.OffsetCommitKey, schemas.OffsetCommitValue, _EXPIRING_OFFSET_VERSION)


def encode(key: Key, value: Value | None) -> StateRecord:
    """The record that stores `value` under `key`, or with None forgets what is there."""
    return StateRecord(encode_key(key), None if value is None else encode_value(value))


def encode_key(key: Key) -> bytes:
    return _KINDS[key.__declared__.key].write_key(key)


def encode_value(value: Value) -> bytes:
    if type(value) is OffsetCommitValue and value.expire_timestamp != -1:
        return _EXPIRING_OFFSET.write_value(value)
    return _KINDS[value.__declared__.key].write_value(value)


def decode(record: StateRecord) -> tuple[Key, Value | None] | None:
    """The key and the value, or None for the value of a key that is forgotten.

    None altogether for a type of key that is not known: groups of other kinds. WireError when it cannot be read.
    """
    key, value = record
    if value is not None and key[:2] == b"\0\1" and value[:2] == b"\0\4":
        return _decoded_offset(key, value)
    kind = _KINDS.get(int.from_bytes(key[:2], signed=True))
    if kind is None or len(key) < _INT16.size:
        return None
    read_key = decoder(kind.key, 0)(memoryview(key)[2:])
    return read_key, None if value is None else _decoded_value(kind.value, value)


def _decoded_offset(key: bytes, value: bytes) -> tuple[OffsetCommitKey, OffsetCommitValue]:
    """The usual committed offset. Slots are filled without the constructor: a restart reads a million of them."""
    read_key = _new(OffsetCommitKey)
    read_key.group, read_key.topic, read_key.partition = read_offset_key(key)
    return read_key, read_offset_value(value)


def read_offset_key(key: bytes) -> tuple[str, str, int]:
    """(group, topic, partition) of a committed offset, also of one in the oldest form."""
    try:
        _, group_size = _KEY_LEAD.unpack_from(key)
        topic_from = 6 + group_size
        (topic_size,) = _INT16.unpack_from(key, topic_from - 2)
        topic_to = topic_from + topic_size
        if group_size < 0 or topic_size < 0 or len(key) != topic_to + 4:
            raise WireError("the lengths in the key of a committed offset do not fit")
        (partition,) = _INT32.unpack_from(key, topic_to)
        return key[4 : topic_from - 2].decode(), key[topic_from:topic_to].decode(), partition
    except (struct.error, UnicodeDecodeError) as error:
        raise WireError(f"the key of a committed offset cannot be read: {error}") from error


def read_offset_value(value: bytes) -> OffsetCommitValue:
    """What `encode_value` or `offset_value` wrote, in any version."""
    if (
        len(value) > _VALUE_LEAD.size
        and value[:2] == b"\0\4"
        and 0 < value[_VALUE_LEAD.size - 1] <= _SHORT_TEXT_MAX + 1
    ):
        read = _usual_offset(value)
        if read is not None:
            return read
    decoded: OffsetCommitValue = _decoded_value(OffsetCommitValue, value)
    return decoded


def _usual_offset(value: bytes) -> OffsetCommitValue | None:
    """None when its lengths do not fit: the generated codec knows what is the matter."""
    read = _new(OffsetCommitValue)
    _, read.offset, read.leader_epoch, text_size = _VALUE_LEAD.unpack_from(value)
    text_to = _VALUE_LEAD.size + text_size - 1
    tags = value[text_to + _INT64.size :]
    if tags == _NO_TAGS:
        read.topic_id = ZERO_UUID
    elif len(tags) == len(_TOPIC_ID_TAG) + 16 and tags.startswith(_TOPIC_ID_TAG):
        read.topic_id = tags[-16:]
    else:
        return None
    try:
        read.metadata = value[_VALUE_LEAD.size : text_to].decode()
    except UnicodeDecodeError as error:
        raise WireError(f"a committed offset cannot be read: {error}") from error
    (read.commit_timestamp,) = _INT64.unpack_from(value, text_to)
    read.expire_timestamp = -1
    return read


def _decoded_value(cls: type[Any], value: bytes) -> Value:
    if len(value) < _INT16.size:
        raise WireError(f"a value of {len(value)} bytes")
    (version,) = _INT16.unpack_from(value)
    declared = declaration_of(cls)
    if not declared.version_min <= version <= declared.version_max:
        raise WireError(f"{cls.__name__} v{version} is not known here")
    return decoder(cls, version)(memoryview(value)[2:])


def group_key(group: str) -> bytes:
    """What `encode_key(GroupMetadataKey(…))` gives."""
    name = group.encode()
    return _KEY_LEAD.pack(_GROUP_METADATA, len(name)) + name


def read_group_key(key: bytes) -> str:
    """The name of a classic group."""
    try:
        _, size = _KEY_LEAD.unpack_from(key)
        if len(key) != _KEY_LEAD.size + size:
            raise WireError("the length in the key of a group does not fit")
        return key[_KEY_LEAD.size :].decode()
    except (struct.error, UnicodeDecodeError) as error:
        raise WireError(f"the key of a group cannot be read: {error}") from error


def read_group_value(value: bytes) -> GroupMetadataValue:
    """A generation of a classic group, in any version."""
    decoded: GroupMetadataValue = _decoded_value(GroupMetadataValue, value)
    return decoded


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """What `encode_key(OffsetCommitKey(…))` gives."""
    group_bytes, topic_bytes = group.encode(), topic.encode()
    return b"".join(
        (
            _KEY_LEAD.pack(_OFFSET_COMMIT, len(group_bytes)),
            group_bytes,
            _INT16.pack(len(topic_bytes)),
            topic_bytes,
            _INT32.pack(partition),
        )
    )


def offset_value(
    offset: int, leader_epoch: int, metadata: str, commit_timestamp: int, topic_id: bytes = ZERO_UUID
) -> bytes:
    """What `encode_value(OffsetCommitValue(…))` gives, of an offset that does not expire by itself."""
    text = metadata.encode()
    if len(text) > _SHORT_TEXT_MAX:
        return encode_value(
            OffsetCommitValue(
                offset=offset,
                leader_epoch=leader_epoch,
                metadata=metadata,
                commit_timestamp=commit_timestamp,
                topic_id=topic_id,
            )
        )
    lead = _VALUE_LEAD.pack(_OFFSET_VERSION, offset, leader_epoch, len(text) + 1)
    tags = _NO_TAGS if topic_id == ZERO_UUID else _TOPIC_ID_TAG + topic_id
    return lead + text + _INT64.pack(commit_timestamp) + tags


def forget_offset(group: str, topic: str, partition: int) -> StateRecord:
    return StateRecord(offset_key(group, topic, partition), None)
