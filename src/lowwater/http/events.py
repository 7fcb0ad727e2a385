"""Telling browsers that there is something new: server-sent events, one line to everybody who listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

LISTENERS_MAX = 200
QUIET_S = 15.0


class Events:
    """A listener that does not keep up misses events, and sees with the next one that there is something new."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._last: str | None = None
        self._is_closed = False

    def publish(self, name: str, value: Any) -> None:
        self._last = f"event: {name}\ndata: {json.dumps(value)}\n\n"
        for one in self._listeners:
            if not one.full():
                one.put_nowait(self._last)

    def close(self) -> None:
        self._is_closed = True
        for one in self._listeners:
            while one.full():
                one.get_nowait()
            one.put_nowait(None)

    def stream(self) -> StreamingResponse:
        return StreamingResponse(self._lines(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _lines(self) -> AsyncIterator[str]:
        if self._is_closed or len(self._listeners) >= LISTENERS_MAX:
            yield "event: full\ndata: {}\n\n"
            return
        mine: asyncio.Queue[str | None] = asyncio.Queue(maxsize=4)
        self._listeners.add(mine)
        try:
            yield "retry: 2000\n\n"
            if self._last is not None:
                yield self._last
            while True:
                try:
                    line = await asyncio.wait_for(mine.get(), QUIET_S)
                except TimeoutError:
                    line = ": still here\n\n"
                if line is None:
                    return
                yield line
        finally:
            self._listeners.discard(mine)
