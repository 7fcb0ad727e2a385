"""Runs flows in the thread that calls: sockets and timers move while a call waits, and only then."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Receiver
from lowwater.client.errors import ClientError, ClosedError, RequestTimeoutError
from lowwater.client.flow import Flow
from lowwater.client.interrupts import Interrupts
from lowwater.client.timers import HeapTimer, Timers
from lowwater.client.tls import tls_context
from lowwater.client.wire_socket import WireSocket
from lowwater.pending import Pending
from lowwater.ports import Ids
from lowwater.system import SystemIds

T = TypeVar("T")


class BlockingDriver:
    """For one thread at a time, and one call at a time. Ctrl-C ends a call, and leaves the connections usable."""

    def __init__(self, config: ClientConfig, ids: Ids | None = None) -> None:
        self._config = config
        self._tls = tls_context(config)
        self._ids = ids or SystemIds()
        self._timers = Timers()
        self._soon: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._drain)
        self._interrupts = Interrupts(self._wake)
        self._pumped_by: int | None = None
        self._pid = os.getpid()
        self._is_closed = False

    # ---- for whoever calls

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_ms: float | None = None) -> T:
        """The coroutine's result. When the time is over, or on Ctrl-C, it is cancelled first."""
        try:
            self._require_free()
        except ClientError:
            coroutine.close()
            raise
        with self._pumping():
            flow = Flow(coroutine)
            try:
                self._pump(flow, timeout_ms)
                if not flow.done:
                    raise RequestTimeoutError(f"the call was not done within {(timeout_ms or 0) / 1000:g} s")
            finally:
                flow.cancel()
        return flow.result()

    def wait(self, pending: Pending[Any], timeout_ms: float | None = None) -> bool:
        """Pump until it is settled, true, or the time is over; it goes on with the next call then."""
        with self._pumping():
            self._pump(pending, timeout_ms)
        return pending.done

    def close(self) -> None:
        """Nothing runs any more. The network is closed first: whoever waits is told by it."""
        if self._is_closed:
            return
        self._is_closed = True
        self._timers.clear()
        self._soon.clear()
        for key in list(self._selector.get_map().values()):
            if key.fileobj is not self._woken:
                cast(socket.socket, key.fileobj).close()
        self._selector.close()
        self._woken.close()
        self._waker.close()

    @property
    def open_sockets(self) -> int:
        """Of connections, open or being opened."""
        return 0 if self._is_closed else len(self._selector.get_map()) - 1

    # ---- the Driver

    @property
    def ids(self) -> Ids:
        return self._ids

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def post(self, callback: Callable[[], None]) -> None:
        """As `call_soon`, from any thread; a turn that waits is woken."""
        self._soon.append(callback)
        self._wake()

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> HeapTimer:
        return self._timers.add(self.monotonic_ms() + delay_ms, callback)

    def dial(self, address: Address, receiver: Receiver) -> WireSocket:
        wire = WireSocket(self._config, self._tls, address, receiver, self._watch, self.call_soon)
        self.call_soon(wire.begin)
        return wire

    def elsewhere(self, work: Callable[[], T]) -> Pending[T]:
        """At once: the caller waits anyway."""
        done: Pending[T] = Pending()
        try:
            done.resolve(work())
        except Exception as error:
            done.fail(error)
        return done

    # ---- pumping

    @property
    def is_forked(self) -> bool:
        return os.getpid() != self._pid

    def _require_same_process(self) -> None:
        if self.is_forked:
            raise ClientError("the client belongs to the process that made it", advice="make another after a fork")

    def _require_free(self) -> None:
        self._require_same_process()
        if self._is_closed:
            raise ClosedError("the client was closed")
        if self._pumped_by is not None:
            who = "this thread, in a callback" if self._pumped_by == threading.get_ident() else "another thread"
            raise ClientError(f"the client is in use by {who}", advice="give each thread a client of its own")

    @contextlib.contextmanager
    def _pumping(self) -> Iterator[None]:
        self._require_free()
        self._pumped_by = threading.get_ident()
        try:
            with self._interrupts:
                yield
        finally:
            self._pumped_by = None

    def _pump(self, pending: Pending[Any], timeout_ms: float | None) -> None:
        deadline_ms = None if timeout_ms is None else self.monotonic_ms() + timeout_ms
        while True:
            # Also when it is settled already: what came meanwhile is taken, and timers have their turn.
            self._turn(0 if pending.done else self._idle_s(deadline_ms))
            self._interrupts.check()
            if pending.done or (deadline_ms is not None and self.monotonic_ms() >= deadline_ms):
                return

    def _idle_s(self, deadline_ms: float | None) -> float | None:
        """How long there is nothing to do but wait for sockets."""
        if self._soon:
            return 0
        limits = [each for each in (deadline_ms, self._timers.next_ms()) if each is not None]
        return max(0.0, min(limits) - self.monotonic_ms()) / 1000 if limits else None

    def _turn(self, idle_s: float | None) -> None:
        for key, events in self._selector.select(idle_s):
            # An event before this one may have closed the socket, or changed who wants it.
            if self._selector.get_map().get(key.fd) == key:
                key.data(events)
        for callback in self._timers.take_due(self.monotonic_ms()):
            callback()
        for _ in range(len(self._soon)):
            self._soon.popleft()()

    def _watch(self, sock: socket.socket, events: int, ready: Callable[[int], None] | None) -> None:
        if self.is_forked:
            return  # what epoll knows is shared with the process that made this: it would go deaf
        key = self._selector.get_map().get(sock.fileno()) if not self._is_closed else None
        if ready is None:
            if key is not None:
                self._selector.unregister(sock)
        elif key is None:
            self._selector.register(sock, events, ready)
        elif key.events != events or key.data != ready:
            self._selector.modify(sock, events, ready)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._waker.send(b"\0")

    def _drain(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(64)
