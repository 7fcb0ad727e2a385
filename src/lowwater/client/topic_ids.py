"""Ids of topics, as Kafka's tools write them; and topics that are not those any more that one expects."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from uuid import UUID

from lowwater.client.cluster import Topic
from lowwater.client.errors import TopicRecreatedError
from lowwater.errors import ConfigError, ErrorCode
from lowwater.wire.schema import ZERO_UUID

_BYTES = 16


def id_text(topic_id: bytes) -> str:
    """22 characters."""
    return base64.urlsafe_b64encode(topic_id).decode("ascii").rstrip("=")


def topic_id(given: str | bytes | UUID) -> bytes:
    """From 22 characters, from 16 bytes, or from a UUID, also as text. ConfigError when it is none of those."""
    if isinstance(given, UUID):
        return given.bytes
    found = _from_text(given) if isinstance(given, str) else bytes(given)
    if len(found) != _BYTES:
        raise ConfigError(f"{given!r} is no id of a topic; `lowwater topics describe` shows it, 22 characters")
    return found


def _from_text(text: str) -> bytes:
    try:
        return UUID(text).bytes
    except ValueError:
        pass
    try:
        return base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def recreated(name: str, expected: bytes, found: bytes, partition: int | None = None) -> TopicRecreatedError:
    error = TopicRecreatedError(
        ErrorCode.INCONSISTENT_TOPIC_ID, topic=name, partition=partition, advice="decide where to start in the new one"
    )
    return error.instead_of(id_text(expected), id_text(found))


def is_another(expected: bytes, found: bytes) -> bool:
    """Whether both are known, and differ. Brokers before 2.8 tell none."""
    return ZERO_UUID not in (expected, found) and expected != found


def check_ids(expected: Mapping[str, bytes], topics: Mapping[str, Topic]) -> None:
    """TopicRecreatedError for a topic that has another id than expected."""
    for name, topic in topics.items():
        wanted = expected.get(name, ZERO_UUID)
        if is_another(wanted, topic.id):
            raise recreated(name, wanted, topic.id)
