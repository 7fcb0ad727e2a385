"""What consumers tell each other inside JoinGroup and SyncGroup. It is theirs: the broker only looks, where it can."""

import struct
from typing import TypeVar

from lowwater.errors import WireError
from lowwater.wire.schema import Bytes, Int32, String, decoder, encoder, message, since
from lowwater.wire.schema import struct as part

T = TypeVar("T")

PROTOCOL_TYPE = "consumer"
VERSION_MAX = 3
_VERSION = struct.Struct(">h")


@part
class TopicPartition:
    """Partitions of one topic."""

    topic: String
    partitions: list[Int32]


@message(key=-1, versions=(0, VERSION_MAX), flexible=None, from_client=True)
class ConsumerProtocolSubscription:
    """What a member wants to read, and what it still holds."""

    topics: list[String]
    user_data: Bytes | None = None
    owned_partitions: list[TopicPartition] = since(1, ignorable=True)
    generation_id: Int32 = since(2, default=-1, ignorable=True)
    rack_id: String | None = since(3, ignorable=True)


@message(key=-1, versions=(0, VERSION_MAX), flexible=None, from_client=True)
class ConsumerProtocolAssignment:
    """What the leader gives to a member."""

    assigned_partitions: list[TopicPartition]
    user_data: Bytes | None = None


@message(key=-1, versions=(0, 1), flexible=None, from_client=True)
class StickyUserData:
    """What a member of a sticky group last had: it gives everything up before it joins, so it has to say so."""

    previous_assignment: list[TopicPartition]
    generation: Int32 = since(1, default=-1, ignorable=True)


@message(key=-1, versions=(0, 0), flexible=None, from_client=True)
class CooperativeUserData:
    """The generation of what a member still has, for leaders that do not look for it in the subscription."""

    generation: Int32


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription | None:
    """None when these are not the words of a consumer."""
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment | None:
    """None when these are not the words of a consumer."""
    return _decode(ConsumerProtocolAssignment, data)


def _decode(cls: type[T], data: bytes) -> T | None:
    """A version from the future is read as the newest that is known: it only adds fields at the end."""
    try:
        (version,) = _VERSION.unpack_from(data)
        if version < 0:
            return None
        return decoder(cls, min(version, VERSION_MAX))(memoryview(data)[_VERSION.size :])
    except (struct.error, WireError):
        return None


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = VERSION_MAX) -> bytes:
    return _VERSION.pack(version) + encoder(ConsumerProtocolSubscription, version)(subscription)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = VERSION_MAX) -> bytes:
    return _VERSION.pack(version) + encoder(ConsumerProtocolAssignment, version)(assignment)


def version_of(data: bytes) -> int:
    """The version in which these words were spoken, as far as it is known here."""
    (version,) = _VERSION.unpack_from(data)
    return min(max(int(version), 0), VERSION_MAX)
