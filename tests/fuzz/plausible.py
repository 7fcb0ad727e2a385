"""Requests that a broker has to think about: declared messages filled with values that mean something here."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.hostile_batches import produced_bytes

from lowwater.wire.fields import Array, Fixed, Shape, Sized
from lowwater.wire.schema import fields_of

PLAIN, COMPACTED, SMALL_SEGMENTS = "fuzz-plain", "fuzz-compacted", "fuzz-small-segments"
TOPICS = (PLAIN, COMPACTED, SMALL_SEGMENTS)
FUZZED_TOPICS: dict[str, dict[str, str]] = {
    PLAIN: {},
    COMPACTED: {"cleanup.policy": "compact"},
    SMALL_SEGMENTS: {"segment.bytes": "2000", "retention.bytes": "100000"},
}
# Those of the broker under attack; whoever attacks it asks for them first.
topic_ids: list[bytes] = []
GROUPS = ("fuzz-classic", "fuzz-consumer", "fuzz-mixed")
MEMBERS = ("fuzz-member-1", "fuzz-member-2", "fuzz-member-3")
MEANINGFUL = 0.9
EXTREMES = (0, 1, -1, 2, 127, 128, 255, 32767, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
Draw = Callable[[random.Random], Any]


def _topic(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return rng.choice(TOPICS)
    return rng.choice((f"fuzz-new-{rng.randrange(10)}", "", "..", "a/b", "x" * 249, "x" * 250))


def _doomed(rng: random.Random) -> str:
    """What may be deleted: the topics that the other attacks need stay."""
    return rng.choice((f"fuzz-new-{rng.randrange(10)}", "", "no-such-topic"))


def _topic_id(rng: random.Random) -> bytes:
    known = topic_ids[rng.randrange(60) % len(topic_ids)] if topic_ids else bytes(16)
    return rng.choice((known, known, bytes(16), rng.randbytes(16)))


def _partition(rng: random.Random) -> int:
    return rng.choice((0, 0, 0, 1, 2, -1, 10_000))


def _offset(rng: random.Random) -> int:
    return rng.choice((0, 0, 1, 5, 100, -1, 2**62))


def _epoch(rng: random.Random) -> int:
    return rng.choice((0, 0, 1, 2, 3, -1, -2))


def _doomed_names(rng: random.Random) -> list[str]:
    return [_doomed(rng) for _ in range(rng.randrange(4))]


# Names of fields carry their meaning; what is not here is drawn by its type.
MEANINGS: dict[str, Draw] = {
    "name": _topic,
    "topic": _topic,
    "topic_name": _topic,
    "topic_names": _doomed_names,
    "topic_id": _topic_id,
    "partition": _partition,
    "partition_index": _partition,
    "index": _partition,
    "fetch_offset": _offset,
    "offset": _offset,
    "max_wait_ms": lambda rng: rng.choice((0, 1, 20)),
    "min_bytes": lambda rng: rng.choice((0, 1, 1000)),
    "max_bytes": lambda rng: rng.choice((0, 1, 1000, 2**31 - 1)),
    "partition_max_bytes": lambda rng: rng.choice((0, 1, 1000, 2**31 - 1)),
    "session_id": lambda rng: rng.choice((0, 0, 1, rng.getrandbits(31))),
    "session_epoch": lambda rng: rng.choice((-1, 0, 1)),
    "acks": lambda rng: rng.choice((1, 1, -1, 0, 7)),
    "timeout_ms": lambda rng: rng.choice((0, 1000)),
    "timestamp": lambda rng: rng.choice((-1, -2, -3, -4, -5, -6, -7, 0, 1_700_000_000_000, 2**62)),
    "max_num_offsets": lambda rng: rng.choice((0, 1, 5, -1, 2**31 - 1)),
    "isolation_level": lambda rng: rng.choice((0, 1)),
    "current_leader_epoch": lambda rng: rng.choice((-1, -1, 0, 7)),
    "last_fetched_epoch": lambda rng: rng.choice((-1, -1, 0, 7)),
    "leader_epoch": lambda rng: rng.choice((0, 1, -1, 7)),
    "replica_id": lambda rng: rng.choice((-1, -1, -1, -2, 0, 1)),
    "replica_state": lambda rng: None,
    "num_partitions": lambda rng: rng.choice((1, 2, -1, 0, 10_001, 2**31 - 1)),
    "count": lambda rng: rng.choice((2, 3, 4, 0, -1, 2**31 - 1)),
    "replication_factor": lambda rng: rng.choice((1, -1, 0, 3)),
    "assignments": lambda rng: [],
    "broker_ids": lambda rng: rng.choice(([1], [], [1, 1], [7])),
    "resource_type": lambda rng: rng.choice((2, 2, 2, 4, 8, 32, 0)),
    "resource_name": lambda rng: rng.choice((*TOPICS, "1", "", "7")),
    "config_operation": lambda rng: rng.choice((0, 1, 2, 3, 9)),
    "value": lambda rng: rng.choice(("1", "", "compact", "delete", "100000", "-1", None)),
    "key_type": lambda rng: rng.choice((0, 1, 2, 9)),
    "endpoint_type": lambda rng: rng.choice((1, 2, 9)),
    "election_type": lambda rng: rng.choice((0, 1, 9)),
    "match_type": lambda rng: rng.choice((0, 1, 2, 9)),
    "entity_type": lambda rng: rng.choice(("user", "client-id", "ip", "")),
    "response_partition_limit": lambda rng: rng.choice((1, 2000, 0, -1)),
    "transactional_id": lambda rng: rng.choice((None, None, "", "t-1")),
    "client_software_name": lambda rng: rng.choice(("fuzz", "", "-", "a b")),
    "client_software_version": lambda rng: rng.choice(("1.0", "")),
    "records": produced_bytes,
    "group_id": lambda rng: rng.choice((*GROUPS, "", "x" * 300)),
    "group_ids": lambda rng: rng.choices((*GROUPS, ""), k=rng.randrange(4)),
    "groups_names": lambda rng: rng.choices((*GROUPS, ""), k=rng.randrange(4)),
    "member_id": lambda rng: rng.choice(("", "", *MEMBERS, "stranger")),
    "group_instance_id": lambda rng: rng.choice((None, None, "i-1", "i-2", "")),
    "instance_id": lambda rng: rng.choice((None, None, None, "i-1", "i-2", "")),
    "generation_id": _epoch,
    "generation_id_or_member_epoch": _epoch,
    "member_epoch": _epoch,
    "session_timeout_ms": lambda rng: rng.choice((6_000, 45_000, 0)),
    "rebalance_timeout_ms": lambda rng: rng.choice((1, 1_000, 60_000, -1)),
    "protocol_type": lambda rng: rng.choice(("consumer", "consumer", "connect", "")),
    "protocol_name": lambda rng: rng.choice(("range", "range", "roundrobin", None)),
    "subscribed_topic_names": lambda rng: rng.choice((None, [], [PLAIN], [PLAIN, COMPACTED, "no-such-topic"])),
    "subscribed_topic_regex": lambda rng: rng.choice((None, None, "fuzz-.*", "((", "(a*)*b", "")),
    "server_assignor": lambda rng: rng.choice((None, None, "uniform", "range", "sticky", "no-such-assignor")),
    "partition_indexes": lambda rng: [_partition(rng) for _ in range(rng.randrange(3))],
    "committed_offset": _offset,
    "committed_leader_epoch": lambda rng: rng.choice((-1, 0, 7)),
}
# What stands in a field that is called like a topic's.
PROTOCOLS = ("range", "range", "roundrobin", "")
# A setting's name stands in a field that is called like a topic's.
SETTINGS = ("retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes", "no.such.setting", "")
SETTINGS_IN = ("CreatableTopicConfig", "AlterableConfig")


def request(cls: type[Any], version: int, rng: random.Random) -> Any:
    """An instance that this version can carry, whatever the broker may think of it."""
    values = {}
    for field in fields_of(cls):
        if not field.present(version):
            continue
        nullable = field.nullable(version) or (field.default is None and field.tag is not None)
        if nullable and rng.random() < 0.1:
            values[field.name] = None
            continue
        value = _meaning(cls, field.name, field.shape, rng) if rng.random() < MEANINGFUL else None
        if value is None and not (nullable and field.name in MEANINGS):
            value = _any(field.shape, version, rng)
        values[field.name] = value
    return cls(**values)


def _meaning(cls: type[Any], name: str, shape: Shape, rng: random.Random) -> Any:
    if name == "name" and cls.__name__ in SETTINGS_IN:
        return rng.choice(SETTINGS)
    if cls.__name__ == "JoinGroupRequestProtocol" and name == "name":
        return rng.choice(PROTOCOLS)
    if cls.__name__ == "DeleteTopicState":
        return _doomed(rng) if name == "name" else rng.choice((bytes(16), rng.randbytes(16)))
    if name not in MEANINGS or (name == "value" and isinstance(shape, Fixed)):
        return None
    return MEANINGS[name](rng)


def _any(shape: Shape, version: int, rng: random.Random) -> Any:
    if isinstance(shape, Fixed):
        return _number(shape, rng)
    if isinstance(shape, Sized):
        return _text(rng) if shape.name == "string" else rng.randbytes(rng.choice((0, 1, 60, 300)))
    if isinstance(shape, Array):
        return [_any(shape.item, version, rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    return request(shape, version, rng)


def _number(shape: Fixed, rng: random.Random) -> Any:
    if shape.code == "?":
        return rng.random() < 0.5
    if shape.code == "16s":
        return rng.randbytes(16)
    if shape.code == "d":
        return rng.choice((0.0, -1.0, 1e308, float("nan"), float("inf")))
    bits = 8 * shape.size
    low, high = (0, 2**bits - 1) if shape.code.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return rng.choice([extreme for extreme in EXTREMES if low <= extreme <= high])


def _text(rng: random.Random) -> str:
    kind = rng.randrange(5)
    if kind == 0:
        return ""
    if kind == 1:  # grows when it is quoted in a message
        return "\x00\x1b[31m\u2028" * rng.choice((1, 100, 2000))
    if kind == 2:
        return "漢字🌊" * rng.choice((1, 50))
    return "".join(rng.choices("abc.-_/%$\\'\"<>", k=rng.choice((1, 10, 300))))
