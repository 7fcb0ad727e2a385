"""Requests of transactional producers as bytes, and their replies.

The old path (AddPartitionsToTxn, Produce, EndTxn) in versions that are not flexible; the newer one, in which Produce
adds its partition and each transaction has an epoch of its own, exists in flexible versions only.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import crc32c

from bench.connection import Cursor
from bench.frames import CLIENT_ID, PRODUCE, array, request, string, varint

FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 10, 22, 24, 26
TRANSACTIONAL = 0x10
ACKS_ALL, TIMEOUT_MS = -1, 30_000
NO_TAGS = b"\0"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who writes: a producer id, its epoch, and the sequence number that comes next."""

    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0

    def after(self, records: int) -> Identity:
        return replace(self, sequence=self.sequence + records)


class Values:
    """Records without keys, encoded once; `batch` says whose they are."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.count = len(values)
        self.bytes = sum(map(len, values))
        encoded = bytearray()
        for delta, value in enumerate(values):
            body = b"\0\0" + varint(delta) + b"\1" + varint(len(value)) + value + b"\0"
            encoded += varint(len(body)) + body
        self._records = bytes(encoded)

    def batch(self, who: Identity, attributes: int) -> bytes:
        now_ms, last = time.time_ns() // 1_000_000, self.count - 1
        identity = (who.producer_id, who.epoch, who.sequence if who.producer_id >= 0 else -1)
        checked = struct.pack(">hiqqqhii", attributes, last, now_ms, now_ms, *identity, self.count) + self._records
        return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c.crc32c(checked)) + checked


def find_coordinator(transactional_id: str) -> bytes:
    """FindCoordinator v2."""
    return request(FIND_COORDINATOR, 2, string(transactional_id) + b"\1")


def init_producer_id(transactional_id: str) -> bytes:
    """InitProducerId v1."""
    return request(INIT_PRODUCER_ID, 1, string(transactional_id) + struct.pack(">i", 60_000))


def initialized(reply: bytes) -> tuple[int, Identity]:
    """(error, who) of InitProducerId v1."""
    error, producer_id, epoch = struct.unpack_from(">hqh", reply, 4)
    return error, Identity(producer_id, epoch)


# -- the old path


def add_partition(transactional_id: str, who: Identity, topic: str, partition: int) -> bytes:
    """AddPartitionsToTxn v2."""
    head = string(transactional_id) + struct.pack(">qh", who.producer_id, who.epoch)
    return request(ADD_PARTITIONS_TO_TXN, 2, head + array([string(topic) + array([struct.pack(">i", partition)])]))


def added_error(reply: bytes) -> int:
    """That of the only partition."""
    return int(struct.unpack_from(">h", reply, len(reply) - 2)[0])


def produce(transactional_id: str | None, topic: str, partition: int, batch: bytes) -> bytes:
    """Produce v7."""
    name = struct.pack(">h", -1) if transactional_id is None else string(transactional_id)
    of_partition = struct.pack(">ii", partition, len(batch)) + batch
    body = name + struct.pack(">hi", ACKS_ALL, TIMEOUT_MS) + array([string(topic) + array([of_partition])])
    return request(PRODUCE, 7, body)


def produced_error(reply: bytes, topic: str) -> int:
    return int(struct.unpack_from(">h", reply, 4 + len(string(topic)) + 4 + 4)[0])


def end(transactional_id: str, who: Identity, commit: bool) -> bytes:
    """EndTxn v2."""
    return request(END_TXN, 2, string(transactional_id) + struct.pack(">qh?", who.producer_id, who.epoch, commit))


def ended_error(reply: bytes) -> int:
    return int(struct.unpack_from(">h", reply, 4)[0])


# -- the new path


def produce_and_add(transactional_id: str, topic: str, partition: int, batch: bytes) -> bytes:
    """Produce v12."""
    of_partition = struct.pack(">i", partition) + _compact(batch) + NO_TAGS
    of_topic = _compact(topic.encode()) + b"\2" + of_partition + NO_TAGS
    head = _compact(transactional_id.encode()) + struct.pack(">hi", ACKS_ALL, TIMEOUT_MS)
    return _flexible(PRODUCE, 12, head + b"\2" + of_topic + NO_TAGS)


def produced_and_added_error(reply: bytes, topic: str) -> int:
    return int(struct.unpack_from(">h", reply, 1 + 1 + len(_compact(topic.encode())) + 1 + 4)[0])


def end_and_move_on(transactional_id: str, who: Identity, commit: bool) -> bytes:
    """EndTxn v5."""
    body = _compact(transactional_id.encode()) + struct.pack(">qh?", who.producer_id, who.epoch, commit) + NO_TAGS
    return _flexible(END_TXN, 5, body)


def moved_on(reply: bytes) -> tuple[int, Identity]:
    """(error, who goes on) of EndTxn v5."""
    error, producer_id, epoch = struct.unpack_from(">hqh", reply, 1 + 4)
    return error, Identity(producer_id, epoch)


def _flexible(api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhi", api_key, version, 1) + string(CLIENT_ID) + NO_TAGS
    return struct.pack(">i", len(header) + len(body)) + header + body


def _compact(data: bytes) -> bytes:
    """With its length + 1 in front, base 128."""
    length, lead = len(data) + 1, bytearray()
    while length > 0x7F:
        lead.append(length & 0x7F | 0x80)
        length >>= 7
    lead.append(length)
    return bytes(lead) + data


# -- reading


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the reply to a Fetch v11 of one partition tells."""

    error: int
    last_stable: int
    size: int
    next_offset: int


def fetched(reply: bytes, position: int) -> Fetched:
    """`position` is what was asked for; it stays where nothing came."""
    cursor = Cursor(reply)
    cursor.skip(4 + 2 + 4)
    cursor.number("i"), cursor.string(), cursor.number("i"), cursor.number("i")
    error, _, last_stable, _ = cursor.number("h"), cursor.number("q"), cursor.number("q"), cursor.number("q")
    cursor.skip(16 * max(0, cursor.number("i")))
    cursor.number("i")
    size = cursor.number("i")
    at = len(reply) - size
    while len(reply) - at >= 61:
        base, length = struct.unpack_from(">qi", reply, at)
        if at + 12 + length > len(reply):
            break
        position = base + struct.unpack_from(">i", reply, at + 23)[0] + 1
        at += 12 + length
    return Fetched(error, last_stable, size, position)
