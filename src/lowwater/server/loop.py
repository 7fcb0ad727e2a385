"""The broker's ports on a running event loop: timers and worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lowwater.ports import Timer

T = TypeVar("T")


class LoopScheduler:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)


class ThreadOffload:
    """A few threads for fsync and cold reads; results come back on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads_max: int = 4) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(threads_max, thread_name_prefix="lowwater-offload")
        self._unfinished = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self._unfinished += 1
        self._idle.clear()

        def deliver(result: T | None, error: BaseException | None) -> None:
            self._unfinished -= 1
            done(result, error)
            if not self._unfinished:
                self._idle.set()

        def finished(future: Future[T]) -> None:
            error = future.exception()
            self._loop.call_soon_threadsafe(deliver, None if error else future.result(), error)

        self._pool.submit(work).add_done_callback(finished)

    async def drained(self) -> None:
        """Return when nothing is under way and every callback has run."""
        while self._unfinished:
            await self._idle.wait()

    def close(self) -> None:
        self._pool.shutdown(wait=True)
