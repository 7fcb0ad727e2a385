"""Running the HTTP server: by itself for any cluster, or beside a broker that started it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from lowwater.http.app import App
from lowwater.http.desk import Desk
from lowwater.http.guard import Guard
from lowwater.system import SystemClock

logger = logging.getLogger(__name__)

STOP_S = 3
CONNECTIONS_MAX = 500


@dataclass(frozen=True, slots=True)
class Settings:
    """`client` are settings of the client, bootstrap.servers among them. `counters`: a broker that tells of itself."""

    client: Mapping[str, Any]
    host: str = "127.0.0.1"
    password: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    interval_ms: int = 2_000
    lag_allowed: int = 0
    counters: socket.socket | None = None


def run(settings: Settings, listening: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or Ctrl-C, or until the broker beside us is gone."""
    asyncio.run(_serve(settings, listening, ready))


async def _serve(settings: Settings, listening: socket.socket, ready: Callable[[], None]) -> None:
    desk = Desk(settings)
    guard = Guard(
        settings.host, allowed=settings.allowed_hosts, password=settings.password, now_ms=SystemClock().now_ms
    )
    config = uvicorn.Config(
        App(desk, guard),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=STOP_S,
        timeout_keep_alive=30,
        limit_concurrency=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = _Server(config, desk)

    def stop() -> None:
        server.should_exit = True

    desk.on_broker_gone = stop
    ready()
    await server.serve(sockets=[listening])


class _Server(uvicorn.Server):
    """Streams of events never end by themselves: they end before it waits for what is still being answered."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self._desk = desk

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A stop that was asked for is no failure: uvicorn would end by the signal, and not with 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._desk.events.close()
        await super().shutdown(sockets)


def main() -> None:
    """Beside a broker: settings come as JSON on stdin, sockets as inherited handles."""
    logging.basicConfig(stream=sys.stderr, level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    told = json.load(sys.stdin)
    listening = socket.socket(fileno=told.pop("listening"))
    counters = socket.socket(fileno=told.pop("counters"))
    settings = Settings(**{**told, "allowed_hosts": tuple(told["allowed_hosts"]), "counters": counters})
    run(settings, listening)
