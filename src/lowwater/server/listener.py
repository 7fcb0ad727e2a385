"""The listening socket: accepts, counts, and retires connections."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from lowwater.broker.metrics import Traffic
from lowwater.broker.router import Router
from lowwater.server.connection import SCRATCH_BYTES, Connection

logger = logging.getLogger(__name__)

BUFFER_IDLE_MS = 10_000
SWEEP_MS = 5_000
SWEEP_MS_MIN = 20


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    frame_bytes_max: int
    unparsed_bytes_max: int
    write_bytes_high: int
    connections_max: int
    connections_per_host_max: int
    idle_ms_max: int


class Listener:
    """One address. `close` stops accepting and ends every connection."""

    def __init__(self, router: Router, limits: ListenerLimits, name: str = "PLAINTEXT") -> None:
        self.name = name
        self.frame_bytes_max = limits.frame_bytes_max
        self.unparsed_bytes_max = limits.unparsed_bytes_max
        self.write_bytes_high = limits.write_bytes_high
        self.traffic = Traffic()
        self._limits = limits
        self._sweep_ms = max(SWEEP_MS_MIN, min(SWEEP_MS, limits.idle_ms_max / 4))
        self._router = router
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._connections: set[Connection] = set()
        self._by_host: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port, which is a free one when 0 was asked."""
        self._loop = loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, host, port, backlog=1024)
        self._sweep = loop.call_later(self._sweep_ms / 1000, self._retire_idle)
        listening: socket.socket = self._server.sockets[0]
        return int(listening.getsockname()[1])

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.close()

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def now_ms(self) -> float:
        assert self._loop is not None
        return self._loop.time() * 1000

    def call_soon(self, callback: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_soon(callback)

    def connected(self, connection: Connection) -> None:
        host = connection.peer.host
        self._connections.add(connection)
        self._by_host[host] += 1
        self.traffic.connections_total += 1
        if len(self._connections) > self._limits.connections_max:
            logger.warning("refusing a connection of %s: max.connections=%d", host, self._limits.connections_max)
            self._refuse(connection)
        elif self._by_host[host] > self._limits.connections_per_host_max:
            logger.warning(
                "refusing a connection of %s: max.connections.per.ip=%d", host, self._limits.connections_per_host_max
            )
            self._refuse(connection)

    def _refuse(self, connection: Connection) -> None:
        self.traffic.connections_refused += 1
        connection.close()

    def disconnected(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._by_host[connection.peer.host] -= 1
        if not self._by_host[connection.peer.host]:
            del self._by_host[connection.peer.host]

    def _accept(self) -> Connection:
        return Connection(self, self._router, self._scratch)

    def _retire_idle(self) -> None:
        now_ms = self.now_ms()
        for connection in tuple(self._connections):
            if connection.take_activity():
                # Noted here, not by a look at the clock with every read: small requests would feel that.
                connection.idle_since_ms = now_ms
            idle_ms = now_ms - connection.idle_since_ms
            if idle_ms > self._limits.idle_ms_max:
                connection.abort()
            elif idle_ms > BUFFER_IDLE_MS:
                connection.release_buffers()
        assert self._loop is not None
        self._sweep = self._loop.call_later(self._sweep_ms / 1000, self._retire_idle)
