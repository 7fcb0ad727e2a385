"""Requests of consumer groups as bytes, and their replies; versions that are not flexible."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.connection import Cursor
from bench.frames import array, request, string

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC = 8, 9, 10, 11, 12, 13, 14
INCREMENTAL_ALTER_CONFIGS = 44
SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 60_000, 60_000
PROTOCOL = "range"

# Where the replies to Join, Sync, Heartbeat have their error code: after size, correlation id and throttle time.
ERROR_AT = 12
HEARTBEAT_REPLY_SIZE = ERROR_AT + 2
NULL = struct.pack(">h", -1)


def bytes_(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def find_coordinator(group: str) -> bytes:
    """FindCoordinator v2."""
    return request(FIND_COORDINATOR, 2, string(group) + b"\0")


def join(group: str, member_id: str, metadata: bytes) -> bytes:
    """JoinGroup v5."""
    timeouts = struct.pack(">ii", SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS)
    protocols = array([string(PROTOCOL) + bytes_(metadata)])
    return request(JOIN, 5, string(group) + timeouts + string(member_id) + NULL + string("consumer") + protocols)


@dataclass(frozen=True, slots=True)
class Joined:
    """The reply to a Join."""

    error: int
    generation: int
    leader: str
    member_id: str
    members: list[str]


def joined(reply: bytes) -> Joined:
    cursor = Cursor(reply)
    cursor.number("i")
    error, generation = cursor.number("h"), cursor.number("i")
    cursor.string()
    leader, member_id = cursor.string(), cursor.string()
    members = []
    for _ in cursor.count():
        members.append(cursor.string())
        cursor.string()
        cursor.skip(cursor.number("i"))
    return Joined(error, generation, leader, member_id, members)


def sync(group: str, generation: int, member_id: str, assignments: Mapping[str, bytes]) -> bytes:
    """SyncGroup v3."""
    given = array([string(member) + bytes_(assignment) for member, assignment in assignments.items()])
    return request(SYNC, 3, string(group) + struct.pack(">i", generation) + string(member_id) + NULL + given)


def heartbeat(group: str, generation: int, member_id: str) -> bytes:
    """Heartbeat v3."""
    return request(HEARTBEAT, 3, string(group) + struct.pack(">i", generation) + string(member_id) + NULL)


def leave(group: str, member_id: str) -> bytes:
    """LeaveGroup v1."""
    return request(LEAVE, 1, string(group) + string(member_id))


def error_of(reply: bytes) -> int:
    """Of a Sync, Heartbeat or Leave."""
    return int(struct.unpack_from(">h", reply, 4)[0])


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose replies all have the same size, and where those have the error code of the first partition.

    `turns`: several requests to send one after the other instead.
    """

    data: bytes
    reply_size: int
    error_at: int
    turns: tuple[bytes, ...] = ()


def commit(group: str, generation: int, member_id: str, topic: str, offsets: Mapping[int, int]) -> Call:
    """OffsetCommit v7 without metadata."""
    partitions = array([struct.pack(">iqih", index, offset, -1, 0) for index, offset in offsets.items()])
    head = string(group) + struct.pack(">i", generation) + string(member_id) + NULL
    error_at = ERROR_AT + 4 + len(string(topic)) + 4 + 4
    reply_size = error_at - 4 + 6 * len(offsets)
    return Call(request(OFFSET_COMMIT, 7, head + array([string(topic) + partitions])), reply_size, error_at)


def fetch_offsets(group: str, topic: str, partitions: Sequence[int]) -> Call:
    """OffsetFetch v5 of offsets that have no metadata."""
    wanted = array([struct.pack(">i", index) for index in partitions])
    before = ERROR_AT + 4 + len(string(topic)) + 4
    reply_size = before + len(partitions) * (4 + 8 + 4 + 2 + 2) + 2
    return Call(request(OFFSET_FETCH, 5, string(group) + array([string(topic) + wanted])), reply_size, before + 18)


def fetched_offset(reply: bytes, topic: str) -> int:
    """The first offset in the reply to `fetch_offsets`; -1 when there is none, as while groups are loaded."""
    at = 4 + 4 + len(string(topic)) + 4 + 4
    return int(struct.unpack_from(">q", reply, at)[0]) if len(reply) >= at + 8 else -1


def set_topic_config(topic: str, name: str, value: str) -> bytes:
    """IncrementalAlterConfigs v0."""
    config = string(name) + b"\0" + string(value)
    return request(INCREMENTAL_ALTER_CONFIGS, 0, array([b"\2" + string(topic) + array([config])]) + b"\0")
