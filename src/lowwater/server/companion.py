"""The HTTP server beside a broker: a process of its own, so that nobody who looks slows down those who work.

It asks the broker over Kafka's protocol like everybody else. Only what the broker counts of itself, which no message of
the protocol carries, comes over a socket pair: a line with anything in it is answered by one line of JSON. When that
socket closes, the broker is gone and the companion ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

logger = logging.getLogger(__name__)

STOP_S = 5


class Companion:
    """`start` returns when the process runs; connections wait in the listening socket until it serves them."""

    def __init__(self, listening: socket.socket, settings: Mapping[str, Any], metrics: Callable[[], Any]) -> None:
        self._listening = listening
        self._settings = settings
        self._metrics = metrics
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        ours, theirs = socket.socketpair()
        handles = (self._listening.fileno(), theirs.fileno())
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lowwater.http", stdin=asyncio.subprocess.PIPE, pass_fds=handles
        )
        told = {**self._settings, "listening": handles[0], "counters": handles[1]}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(told).encode())
        self._process.stdin.close()
        theirs.close()
        self._listening.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        self._tasks = [asyncio.create_task(self._answer(reader, writer)), asyncio.create_task(self._watch())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readline():
                writer.write(json.dumps(self._metrics()).encode() + b"\n")
                await writer.drain()
        except OSError as error:
            logger.debug("the HTTP server does not listen any more: %s", error)
        finally:
            writer.close()

    async def _watch(self) -> None:
        assert self._process is not None
        code = await self._process.wait()
        logger.error("the HTTP server ended with %d; the broker goes on without. `lowwater dashboard` starts one", code)
