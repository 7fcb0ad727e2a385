"""A coroutine over `Pending`s that somebody may give up on."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from lowwater.pending import Pending

T = TypeVar("T")


class Flow(Pending[T]):
    """Runs until it has to wait, and on whenever what it waits for is there. It is the Pending of its own result."""

    __slots__ = ("_coroutine", "_is_running", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self._coroutine = coroutine
        self._waits_for: Pending[Any] | None = None
        self._is_running = False
        self.on_abandon = self.cancel
        self._step(None)

    def cancel(self) -> None:
        """Give up: what is waited for is let go, `finally` blocks run, and the outcome is a GivenUpError."""
        if self.done or self._is_running:
            return
        waits_for, self._waits_for = self._waits_for, None
        if waits_for is not None:
            waits_for.abandon()
        if not self.done:
            self._step(GivenUpError("nobody waits for this any more"))

    def _step(self, thrown: BaseException | None) -> None:
        while True:
            self._is_running = True
            try:
                waits_for = self._coroutine.send(None) if thrown is None else self._coroutine.throw(thrown)
            except StopIteration as stop:
                self.resolve(stop.value)
                return
            except BaseException as error:
                # Whoever holds the outcome decides what a failure means.
                self.fail(error)
                return
            finally:
                self._is_running = False
            thrown = None
            if not waits_for.done:
                self._waits_for = waits_for
                waits_for.on_done(self._resumed)
                return

    def _resumed(self, settled: Pending[Any]) -> None:
        if self._waits_for is settled:
            self._waits_for = None
            self._step(None)


def surface(done: Pending[Any]) -> None:
    """For a flow that nobody waits for: that it failed is a bug, and shows in whoever runs it."""
    try:
        done.result()
    except GivenUpError:
        return


class GivenUpError(BaseException):
    """Raised inside a flow that is cancelled. No `except Exception` holds it."""
