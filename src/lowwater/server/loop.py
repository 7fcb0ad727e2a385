"""The broker's ports on a running event loop: timers and worker threads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

from lowwater.broker.durability import SYNCS_MAX
from lowwater.ports import Timer

A = TypeVar("A")
T = TypeVar("T")

# The fsyncs that may run side by side, and some for everything else.
THREADS_MAX = SYNCS_MAX + 4
# Reads of their own: a disk that syncs for seconds must not hold up who reads from another, or from its cache.
READERS_MAX = 4


class LoopScheduler:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)


class PoolOffload:
    """A few threads for fsyncs, some for cold reads, a process for heavy work; results come back on the loop.

    The process lives only while there is work for it. Without `processes`, heavy work goes to a thread.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, threads_max: int = THREADS_MAX, processes: bool = False
    ) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(threads_max, thread_name_prefix="lowwater-offload")
        self._readers = ThreadPoolExecutor(READERS_MAX, thread_name_prefix="lowwater-read")
        self._processes = processes
        self._heavy_pool: Executor | None = None
        self._heavy_unfinished = 0
        self._unfinished = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self._watch(self._threads.submit(work), done)

    def submit_read(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self._watch(self._readers.submit(work), done)

    def submit_heavy(
        self, work: Callable[[A], T], argument: A, done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        if not self._processes:
            self._watch(self._threads.submit(work, argument), done)
            return
        if self._heavy_pool is None:
            self._heavy_pool = _new_process_pool()
        self._heavy_unfinished += 1

        def heavy_done(result: T | None, error: BaseException | None) -> None:
            self._heavy_unfinished -= 1
            if not self._heavy_unfinished:
                self._end_process()
            done(result, error)

        try:
            future = self._heavy_pool.submit(work, argument)
        except (OSError, RuntimeError) as error:  # no process can be started now
            future = Future()
            future.set_exception(error)
        self._watch(future, heavy_done)

    def _watch(self, future: Future[T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self._unfinished += 1
        self._idle.clear()

        def deliver(result: T | None, error: BaseException | None) -> None:
            self._unfinished -= 1
            try:
                done(result, error)
            finally:
                if not self._unfinished:
                    self._idle.set()

        def finished(future: Future[T]) -> None:
            error = future.exception()
            self._loop.call_soon_threadsafe(deliver, None if error else future.result(), error)

        future.add_done_callback(finished)

    def _end_process(self) -> None:
        if self._heavy_pool is not None:
            self._heavy_pool.shutdown(wait=False)
            self._heavy_pool = None

    def interrupt_heavy(self) -> None:
        """End the worker process whatever it does; what it was doing fails. Heavy work must be safe to interrupt."""
        for process in list(getattr(self._heavy_pool, "_processes", None) or {}):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    async def drained(self) -> None:
        """Return when nothing is under way and every callback has run."""
        while self._unfinished:
            await self._idle.wait()

    def close(self) -> None:
        self._end_process()
        self._threads.shutdown(wait=True)
        self._readers.shutdown(wait=True)


def _new_process_pool() -> Executor:
    # Imported late: most brokers never need it, and it would cost every start.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, not forked: this process has threads.
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
