"""The blocking driver with a thread of its own: heartbeats and fetches go on while the caller works.

Everything that flows do happens in that thread. Callers hand in coroutines and wait; what a flow holds is touched
inside such coroutines only.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lowwater.client.blocking import BlockingDriver
from lowwater.client.config import ClientConfig
from lowwater.client.errors import ClientError, ClosedError, RequestTimeoutError
from lowwater.client.flow import Flow
from lowwater.pending import Pending
from lowwater.ports import Ids

T = TypeVar("T")

STOP_S = 10
"""How long closing waits for a turn that is under way."""
CANCEL_S = 5
"""How long a call that was interrupted waits until its flow has let go."""


class Call:
    """Somebody who waits, in another thread."""

    def __init__(self, begin: Callable[[], Pending[Any]]) -> None:
        self._begin = begin
        self.over = threading.Event()
        self.pending: Pending[Any] | None = None
        self.failure: ClientError | None = None

    def start(self) -> None:
        """In the driver's thread."""
        if not self.over.is_set():
            self.pending = self._begin()
            self.pending.on_done(lambda _: self.over.set())

    def fail(self, failure: ClientError) -> None:
        self.failure = failure
        self.over.set()


class ThreadedDriver(BlockingDriver):
    """`run` and `wait` may be called from any thread, also by many at a time. Ctrl-C ends the caller's call alone."""

    def __init__(self, config: ClientConfig, ids: Ids | None = None) -> None:
        super().__init__(config, ids)
        self._lock = threading.Lock()  # over the calls, and whether more are taken
        self._calls: set[Call] = set()
        self._stopping: Pending[None] = Pending()
        self._end: ClientError | None = None
        self._thread: threading.Thread | None = None
        self._closes_itself = False

    # ---- for whoever calls

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_ms: float | None = None) -> T:
        """The coroutine's result. When the time is over, or on Ctrl-C, it is cancelled."""
        call = Call(lambda: Flow(coroutine))
        try:
            self._enter(call)
        except ClientError:
            coroutine.close()
            raise
        try:
            if not self._over(call, timeout_ms):
                raise RequestTimeoutError(f"the call was not done within {(timeout_ms or 0) / 1000:g} s")
        finally:
            self._leave(call)
        assert call.pending is not None
        result: T = call.pending.result()
        return result

    def wait(self, pending: Pending[Any], timeout_ms: float | None = None) -> bool:
        """True once it is settled, false when the time is over before; it goes on in any case."""
        call = Call(lambda: pending)
        self._enter(call)
        try:
            return self._over(call, timeout_ms)
        finally:
            with self._lock:
                self._calls.discard(call)

    def close(self) -> None:
        """The thread ends. Whoever still waits is told so."""
        if self.is_forked:
            super().close()
        elif threading.current_thread() is self._thread:
            self._closes_itself = True  # of a garbage collection, perhaps: after the turn that is under way
            self._end = self._end or ClosedError("the client was closed")
            self._stop()
        else:
            self.stop(ClosedError("the client was closed"))
            super().close()

    def stop(self, why: ClientError) -> None:
        """No more turns: as `close`, but sockets stay as they are."""
        with self._lock:
            self._end = self._end or why
            thread = self._thread
        if thread is not None and thread.is_alive():
            self.post(self._stop)
            thread.join(STOP_S)
        self._tell_all()

    def elsewhere(self, work: Callable[[], T]) -> Pending[T]:
        """In a thread of its own: connections and heartbeats go on meanwhile."""
        outcome: Pending[T] = Pending()

        def job() -> None:
            try:
                value = work()
            except Exception as error:
                failure = error
                self.post(lambda: outcome.fail(failure))
            else:
                self.post(lambda: outcome.resolve(value))

        threading.Thread(target=job, name="lowwater-work", daemon=True).start()
        return outcome

    # ---- calls

    def _enter(self, call: Call) -> None:
        self._require_same_process()
        if threading.current_thread() is self._thread:
            raise ClientError("the client is in use by this thread, in a callback")
        with self._lock:
            if self._end is not None:
                raise self._end
            self._calls.add(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._pump_on, name="lowwater-client", daemon=True)
                _RUNNING.add(self)
                self._thread.start()
        self.post(call.start)

    def _over(self, call: Call, timeout_ms: float | None) -> bool:
        is_over = call.over.wait(None if timeout_ms is None else timeout_ms / 1000)
        if call.failure is not None:
            raise call.failure
        return is_over

    def _leave(self, call: Call) -> None:
        """Nobody waits any more; a flow that is not done is cancelled, and has let go when this returns."""
        with self._lock:
            self._calls.discard(call)
        if not call.over.is_set():
            self.post(lambda: call.pending.abandon() if call.pending is not None else None)
            call.over.wait(CANCEL_S)

    # ---- the thread

    def _pump_on(self) -> None:
        try:
            super().wait(self._stopping)
        except BaseException as error:
            failure = ClientError(f"the client failed: {error!r}", advice="this is a bug; nothing runs any more")
            failure.__cause__ = error
            with self._lock:
                self._end = self._end or failure
        self._tell_all()
        if self._closes_itself:
            super().close()

    def _stop(self) -> None:
        if not self._stopping.done:
            self._stopping.resolve(None)

    def _tell_all(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, set()
            end = self._end or ClosedError("the client was closed")
        for call in calls:
            if not call.over.is_set():
                call.fail(end)


_RUNNING: weakref.WeakSet[ThreadedDriver] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Before the interpreter takes itself apart: a thread in the middle of native code would not survive that."""
    for driver in list(_RUNNING):
        if not driver.is_forked:
            driver.stop(ClosedError("the interpreter ends"))
