"""A client that does no more than receive: it finds out where to ask next, and drops the rest. No reader is faster."""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from bench import frames
from bench.connection import Cursor, connect

PARTITIONS_ASKED = 4
BYTES_ASKED = 1024 * 1024  # of each: together an answer is as large as those that Lowwater asks for
RECEIVE_BYTES = 8 * 1024 * 1024
BATCH_HEAD_BYTES = 61
_BASE_OFFSET_AND_SIZE, _LAST_DELTA, _RECORDS = struct.Struct(">qi"), struct.Struct(">i"), struct.Struct(">i")
_LAST_DELTA_AT, _RECORDS_AT = 23, 57


class Dropped(NamedTuple):
    """So many rows were received, and are gone."""

    num_rows: int


def rows(bootstrap: str, topic: str, partitions: int, records: int) -> Iterator[Dropped]:
    """All records of a topic, a few partitions at a time, each answer received into the same memory."""
    positions = dict.fromkeys(range(partitions), 0)
    turns = deque(positions)
    memory = memoryview(bytearray(RECEIVE_BYTES))
    with closing(connect(int(bootstrap.rpartition(":")[2]))) as connection:
        while records > 0:
            asked = [turns.popleft() for _ in range(min(PARTITIONS_ASKED, len(turns)))]
            request = frames.fetch(topic, {one: positions[one] for one in asked}, BYTES_ASKED, wait_ms=0)
            connection.sendall(request)
            _receive(connection, memory[:4])
            answer = memory[: struct.unpack_from(">i", memory)[0]]
            _receive(connection, answer)
            found = 0
            for partition, (behind, count) in _behind(answer).items():
                positions[partition] = behind
                turns.append(partition)
                found += count
            if not found and not turns:
                raise ValueError(f"{topic} ends {records} records early")
            records -= found
            yield Dropped(found)


def _receive(connection: socket.socket, into: memoryview) -> None:
    have = 0
    while have < len(into):
        count = connection.recv_into(into[have:])
        if not count:
            raise ConnectionError("the broker closed the connection")
        have += count


def _behind(answer: memoryview) -> dict[int, tuple[int, int]]:
    """By partition, unless it is at its end: the offset behind its last whole batch, and how many records came."""
    found: dict[int, tuple[int, int]] = {}
    reply = Cursor(answer)
    reply.skip(4 + 4)  # correlation id, throttle time
    if error := reply.number("h"):
        raise ValueError(f"Fetch answered error {error}")
    reply.skip(4)
    for _ in reply.count():
        reply.string()
        for _ in reply.count():
            partition, error = reply.number("i"), reply.number("h")
            if error:
                raise ValueError(f"Fetch of partition {partition} answered error {error}")
            reply.skip(8 + 8 + 8)
            reply.skip(16 * max(reply.number("i"), 0) + 4)
            size = reply.number("i")
            batches = list(_batches(answer, reply.at, reply.at + size))
            reply.skip(size)
            if batches:
                found[partition] = batches[-1][0], sum(count for _, count in batches)
    return found


def _batches(answer: memoryview, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Of each whole batch, the offset behind it and its records."""
    while end - at >= BATCH_HEAD_BYTES:
        base_offset, size = _BASE_OFFSET_AND_SIZE.unpack_from(answer, at)
        if size > end - at - _BASE_OFFSET_AND_SIZE.size:
            return
        (last,), (count,) = (
            _LAST_DELTA.unpack_from(answer, at + _LAST_DELTA_AT),
            _RECORDS.unpack_from(answer, at + _RECORDS_AT),
        )
        yield base_offset + last + 1, count
        at += _BASE_OFFSET_AND_SIZE.size + size
