"""A plain socket to a broker, and the few calls the bench makes outside its measured rounds."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench import frames

ANSWER_TIMEOUT_S = 60.0


class BrokerError(Exception):
    """A broker answered with an error code where the bench expected none."""


def connect(port: int, *, buffer_bytes: int = 0) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if buffer_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    return connection


def receive(connection: socket.socket, size: int) -> bytes:
    """So many bytes. MSG_WAITALL does not wait on a socket that has a timeout."""
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError(f"the broker closed the connection after {len(data)} of {size} bytes")
        data += piece
    return bytes(data)


def exchange(connection: socket.socket, frame: bytes) -> bytes:
    """Send one request; return its reply without size and correlation id."""
    connection.sendall(frame)
    (size,) = struct.unpack(">i", receive(connection, 4))
    return receive(connection, size)[4:]


class Cursor:
    """Reads the fields of a reply one after the other."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self.at = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def string(self) -> str:
        size = self.number("h")
        text = bytes(self._data[self.at : self.at + max(size, 0)]).decode()
        self.at += max(size, 0)
        return text

    def skip(self, size: int) -> None:
        self.at += size

    def count(self) -> Iterator[int]:
        return iter(range(self.number("i")))


@dataclass(frozen=True, slots=True)
class TopicState:
    error: int
    partitions: int
    leaderless: int


def topics(connection: socket.socket, names: list[str]) -> dict[str, TopicState]:
    """What Metadata says of these topics."""
    reply = Cursor(exchange(connection, frames.metadata(names)))
    reply.number("i")
    for _ in reply.count():
        reply.number("i"), reply.string(), reply.number("i"), reply.string()
    reply.string()
    reply.number("i")
    found = {}
    for _ in reply.count():
        error, name = reply.number("h"), reply.string()
        reply.number("b")
        leaders = [_leader(reply) for _ in reply.count()]
        found[name] = TopicState(error, len(leaders), leaders.count(-1))
    return found


def _leader(reply: Cursor) -> int:
    error, _, leader = reply.number("h"), reply.number("i"), reply.number("i")
    for _ in range(2):
        for _ in reply.count():
            reply.number("i")
    return -1 if error else leader


def create_topic(port: int, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    """Create a topic; return when every partition is served."""
    with contextlib.closing(connect(port)) as connection:
        reply = Cursor(exchange(connection, frames.create_topic(name, partitions, configs)))
        reply.number("i"), reply.number("i"), reply.string()
        if error := reply.number("h"):
            raise BrokerError(f"CreateTopics of {name} answered error {error}: {reply.string()}")
    wait_for_topic(port, name, partitions)
    _wait_until_served(port, name, partitions)


def _wait_until_served(port: int, name: str, partitions: int) -> None:
    """Kafka's metadata names a leader a little before that leader takes requests."""
    request = frames.fetch(name, dict.fromkeys(range(partitions), 0), 1, wait_ms=0)
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    with contextlib.closing(connect(port)) as connection:
        while any(_fetch_errors(exchange(connection, request))):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} is not served by its leader")
            time.sleep(0.01)


def _fetch_errors(reply: bytes) -> Iterator[int]:
    """The error codes in the reply to a Fetch of one empty topic."""
    cursor = Cursor(reply)
    cursor.number("i")
    yield cursor.number("h")
    cursor.number("i"), cursor.number("i"), cursor.string()
    for _ in cursor.count():
        cursor.number("i")
        yield cursor.number("h")
        cursor.skip(8 + 8 + 8 + 4 + 4 + 4)


def wait_for_topic(port: int, name: str, partitions: int) -> None:
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    with contextlib.closing(connect(port)) as connection:
        while (state := topics(connection, [name])[name]) != TopicState(0, partitions, 0):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} has no leader for every partition: {state}")
            time.sleep(0.01)


def delete_topic(port: int, name: str) -> None:
    with contextlib.closing(connect(port)) as connection:
        exchange(connection, frames.delete_topic(name))
