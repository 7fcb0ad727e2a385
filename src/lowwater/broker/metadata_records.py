"""The records of the metadata log: one for each change of what the broker knows about topics and settings.

A record is one JSON object; its `kind` says which. Records carry the new state in full, never a difference to the old
one, so that each stands for itself.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

from lowwater.errors import StorageError

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""(entity type, name) pairs in the order of their types; a name of None is the default entity."""


@dataclass(frozen=True, slots=True)
class ClusterNamed:
    """First in every log. `records` counts those that an earlier rewrite replaced."""

    cluster_id: str
    records: int = 0


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """`boot` is the store's boot count at that time: leader epochs count from it."""

    name: str
    topic_id: bytes
    partitions: int
    boot: int
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    topic_id: bytes
    partitions: int
    boot: int


@dataclass(frozen=True, slots=True)
class TopicConfigured:
    topic_id: bytes
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class BrokerConfigured:
    """`node` is empty for the settings of all brokers."""

    node: str
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class GroupConfigured:
    """Without configs the group has none of its own."""

    group: str
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """Without values the entity has no quota of its own."""

    entity: QuotaEntity
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class FeatureLevelSet:
    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """Producer ids below `end` may have been given out."""

    end: int


Record: TypeAlias = (
    ClusterNamed
    | TopicCreated
    | PartitionsAdded
    | TopicConfigured
    | TopicDeleted
    | BrokerConfigured
    | GroupConfigured
    | QuotaSet
    | FeatureLevelSet
    | ProducerIdsReserved
)

KINDS: dict[str, type[Record]] = {
    "cluster": ClusterNamed,
    "topic": TopicCreated,
    "partitions": PartitionsAdded,
    "topic-config": TopicConfigured,
    "topic-deleted": TopicDeleted,
    "broker-config": BrokerConfigured,
    "group-config": GroupConfigured,
    "quota": QuotaSet,
    "feature": FeatureLevelSet,
    "producer-ids": ProducerIdsReserved,
}
KIND_OF = {record: kind for kind, record in KINDS.items()}


def encode(record: Record) -> bytes:
    values = {"kind": KIND_OF[type(record)], **asdict(record)}
    return json.dumps(values, default=bytes.hex, separators=(",", ":")).encode()


def decode(payload: bytes) -> Record:
    """StorageError when the record was not written by this version or an earlier one."""
    try:
        values: dict[str, Any] = json.loads(payload)
        kind = KINDS[values.pop("kind")]
        if set(values) != {field.name for field in fields(kind)}:
            raise ValueError(f"fields {sorted(values)}")
        if "topic_id" in values:
            values["topic_id"] = bytes.fromhex(values["topic_id"])
        if "entity" in values:
            values["entity"] = tuple((part, name) for part, name in values["entity"])
        return kind(**values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"a metadata record is not readable by this version of lowwater: {error}") from error
