"""A client that does next to nothing: it sends prebuilt requests and counts replies, so only the broker is measured."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import frames
from bench.connection import ANSWER_TIMEOUT_S, BrokerError, connect, exchange, receive

SOCKET_BUFFER_BYTES = 4 * 1024 * 1024
RECEIVE_BYTES = 1024 * 1024
NO_ERROR = b"\0\0"


@dataclass(frozen=True, slots=True)
class Load:
    """What came back, and how long it took from the first byte sent to the last reply."""

    replies: int
    seconds: float


class Pipeline:
    """One connection with several requests in flight. All its replies have the same size.

    `error_at` is where a reply has its error code; without it the size of the replies is the only check.
    """

    def __init__(
        self,
        connection: socket.socket,
        requests: Sequence[bytes] | Iterator[bytes],
        reply_size: int,
        error_at: int | None = None,
    ) -> None:
        """`requests` are sent round and round; those of an iterator, which pipelines may share, once."""
        self.connection = connection
        self.in_flight = 0
        self._requests = requests if isinstance(requests, Iterator) else itertools.cycle(requests)
        self._only = None
        if not isinstance(requests, Iterator) and len(requests) == 1 and len(requests[0]) < 1024:
            self._only = requests[0]
        self._reply_size = reply_size
        self._error_at = error_at
        self._rest = b""

    def send(self, count: int) -> None:
        self.in_flight += count
        if self._only is not None:
            self.connection.sendall(self._only * count)
            return
        for request in itertools.islice(self._requests, count):
            self.connection.sendall(request)

    def receive(self) -> int:
        """Take what has arrived; return how many whole replies that were."""
        data = self.connection.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the broker closed the connection")
        data = self._rest + data if self._rest else data
        count, size = len(data) // self._reply_size, self._reply_size
        if self._error_at is not None:
            for at in range(self._error_at, count * size, size):
                if data[at : at + 2] != NO_ERROR:
                    raise BrokerError(f"error {struct.unpack_from('>h', data, at)[0]} in a reply")
        self._rest = data[count * size :]
        self.in_flight -= count
        return count


def drive(pipelines: Sequence[Pipeline], depth: int, goes_on: Callable[[int], int]) -> Load:
    """Keep every pipeline `depth` deep; `goes_on(wanted)` says how many of the wanted requests may still be sent."""
    by_handle = {pipeline.connection.fileno(): pipeline for pipeline in pipelines}
    poll = select.epoll()
    for handle in by_handle:
        poll.register(handle, select.EPOLLIN)
    replies = 0
    started = time.perf_counter()
    for pipeline in pipelines:
        pipeline.send(goes_on(depth))
    waiting = sum(1 for pipeline in pipelines if pipeline.in_flight)
    while waiting:
        ready = poll.poll(ANSWER_TIMEOUT_S)
        if not ready:
            raise TimeoutError(f"no reply for {ANSWER_TIMEOUT_S} s, {replies} so far")
        for handle, _ in ready:
            pipeline = by_handle[handle]
            count = pipeline.receive()
            replies += count
            if count:
                pipeline.send(goes_on(count))
                waiting -= not pipeline.in_flight
    poll.close()
    return Load(replies, time.perf_counter() - started)


def total(count: int) -> Callable[[int], int]:
    """Let `count` requests through, then no more."""
    left = count

    def goes_on(wanted: int) -> int:
        nonlocal left
        allowed = min(wanted, left)
        left -= allowed
        return allowed

    return goes_on


def until(seconds: float) -> Callable[[int], int]:
    """Let requests through until the time is over."""
    end = time.perf_counter() + seconds
    return lambda wanted: wanted if time.perf_counter() < end else 0


@contextlib.contextmanager
def connections(port: int, count: int, *, buffer_bytes: int = 0) -> Iterator[list[socket.socket]]:
    """Open connections that have each been answered once: brokers with a short backlog would drop a crowd."""
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(connect(port, buffer_bytes=buffer_bytes))
            exchange(opened[-1], frames.api_versions())
        yield opened
    finally:
        for connection in opened:
            connection.close()


def reply_size(port: int, request: bytes) -> int:
    """How long the reply to this request is, length prefix included."""
    with contextlib.closing(connect(port)) as connection:
        connection.sendall(request)
        (size,) = struct.unpack(">i", receive(connection, 4))
        receive(connection, size)
    return 4 + int(size)


def produce(
    port: int,
    requests: Sequence[frames.ProduceFrame],
    count: int | None = None,
    *,
    seconds: float = 0.0,
    connection_count: int = 1,
    depth: int = 5,
) -> Load:
    """`count` requests, or as many as go in `seconds`, over the connections, going round through `requests`."""
    after_error = 2 + 8 + 8 + 8 + 4
    error_at = requests[0].error_at
    with connections(port, connection_count, buffer_bytes=SOCKET_BUFFER_BYTES) as opened:
        data = [request.data for request in requests]
        pipelines = []
        for number, connection in enumerate(opened):
            start = number * len(data) // connection_count
            pipelines.append(Pipeline(connection, data[start:] + data[:start], error_at + after_error, error_at))
        return drive(pipelines, depth, until(seconds) if count is None else total(count))


def fetch(port: int, requests: Sequence[bytes], sizes: Sequence[int], error_at: int, *, depth: int = 2) -> Load:
    """Each request once, in order, its bytes dropped as they come; `sizes` are those of the replies."""
    scratch = memoryview(bytearray(RECEIVE_BYTES))
    with connections(port, 1, buffer_bytes=SOCKET_BUFFER_BYTES) as (connection,):
        started = time.perf_counter()
        for request in requests[:depth]:
            connection.sendall(request)
        for number, size in enumerate(sizes):
            _drop_reply(connection, scratch, size, error_at)
            if number + depth < len(requests):
                connection.sendall(requests[number + depth])
        return Load(len(sizes), time.perf_counter() - started)


def _drop_reply(connection: socket.socket, scratch: memoryview, size: int, error_at: int) -> None:
    head = receive(connection, error_at + 2)
    if head[error_at:] != NO_ERROR:
        raise BrokerError(f"Fetch answered error {head[error_at:].hex()}")
    if (announced := 4 + struct.unpack_from(">i", head)[0]) != size:
        raise BrokerError(f"Fetch answered {announced} bytes where {size} were expected")
    left = size - len(head)
    while left:
        taken = connection.recv_into(scratch, min(left, len(scratch)))
        if not taken:
            raise ConnectionError("the broker closed the connection")
        left -= taken
