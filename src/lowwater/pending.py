"""An answer that comes later, without an event loop.

Handlers are plain functions or coroutines; a coroutine waits by awaiting a `Pending`. Nothing here knows asyncio, so
the same handlers run under the real server and under a simulated clock.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Self, TypeVar

from lowwater.errors import ApiError

T = TypeVar("T")
U = TypeVar("U")


class Pending(Generic[T]):
    """Settled exactly once, by `resolve` or `fail`; callbacks run at once, in the order they were added."""

    __slots__ = ("_callback", "_error", "_further", "_value", "done", "on_abandon")

    def __init__(self) -> None:
        self.done = False
        # Called when nobody waits any more, so that whoever would settle this can let go.
        self.on_abandon: Callable[[], None] | None = None
        self._value: T | None = None
        self._error: BaseException | None = None
        # Nearly always there is one; a list for each would be half of what a pending answer costs.
        self._callback: Callable[[Any], None] | None = None
        self._further: list[Callable[[Any], None]] | None = None

    def resolve(self, value: T) -> None:
        assert not self.done, "settled twice"
        self._value = value
        self._settle()

    def fail(self, error: BaseException) -> None:
        assert not self.done, "settled twice"
        self._error = error
        self._settle()

    def result(self) -> T:
        assert self.done, "not settled yet"
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def on_done(self, callback: Callable[[Self], None]) -> None:
        if self.done:
            callback(self)
        elif self._callback is None:
            self._callback = callback
        elif self._further is None:
            self._further = [callback]
        else:
            self._further.append(callback)

    def map(self, change: Callable[[T], U]) -> Pending[U]:
        """The same answer, changed; what `change` raises is the failure of the new one."""
        return self.then(lambda done: change(done.result()))

    def recover(self, change: Callable[[ApiError], T]) -> Pending[T]:
        """The same answer, or what `change` makes of a refusal."""

        def settled(done: Pending[T]) -> T:
            try:
                return done.result()
            except ApiError as error:
                return change(error)

        return self.then(settled)

    def then(self, change: Callable[[Self], U]) -> Pending[U]:
        """What `change` makes of this once it is settled; what it raises is the failure of the new one."""
        changed: Pending[U] = Pending()

        def settle(done: Self) -> None:
            try:
                value = change(done)
            except Exception as error:
                changed.fail(error)
            else:
                changed.resolve(value)

        self.on_done(settle)
        return changed

    @staticmethod
    def gather(answers: list[Any], combine: Callable[[list[Any]], U]) -> U | Pending[U]:
        """All answers together, at once when each is there; a failure of any is the failure of all."""
        waiting = [one for one in answers if isinstance(one, Pending)]
        if not waiting:
            return combine(answers)
        left = len(waiting)
        together: Pending[U] = Pending()

        def one_done(_: Pending[Any]) -> None:
            nonlocal left
            left -= 1
            if left:
                return
            try:
                value = combine([one.result() if isinstance(one, Pending) else one for one in answers])
            except Exception as error:
                together.fail(error)
            else:
                together.resolve(value)

        for one in waiting:
            one.on_done(one_done)
        return together

    def abandon(self) -> None:
        if not self.done and self.on_abandon is not None:
            self.on_abandon()

    def __await__(self) -> Generator[Pending[Any], None, T]:
        if not self.done:
            yield self
        return self.result()

    def _settle(self) -> None:
        self.done = True
        # It mostly refers to this object, and so the answer, perhaps many megabytes, would wait for the collector.
        self.on_abandon = None
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(self)
        if self._further is not None:
            further, self._further = self._further, None
            for callback in further:
                callback(self)


def run(coroutine: Coroutine[Any, Any, T]) -> Pending[T]:
    """Drive a coroutine that awaits nothing but `Pending`s."""
    outcome: Pending[T] = Pending()
    _step(coroutine, outcome)
    return outcome


def _step(coroutine: Coroutine[Any, Any, T], outcome: Pending[T]) -> None:
    while True:
        try:
            waits_for: Pending[Any] = coroutine.send(None)
        except StopIteration as stop:
            outcome.resolve(stop.value)
            return
        except BaseException as error:
            # Whoever holds the outcome decides what a failure means.
            outcome.fail(error)
            return
        if not waits_for.done:
            waits_for.on_done(lambda _: _step(coroutine, outcome))
            return
