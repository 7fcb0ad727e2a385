"""Ctrl-C while a call is being pumped: it waits for the next safe place, so that no exchange is left half done."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps: its enums cost more than all the rest here
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

_SIGINT = int(signal.SIGINT)


class Interrupts:
    """As a context: SIGINT is noted and `wake` is called; `check` raises it. Elsewhere than in the main thread, and
    where the program has a handler of its own, nothing is changed."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._is_ours = False
        self._came = False

    def __enter__(self) -> Interrupts:
        self._came = False
        in_main = threading.current_thread() is threading.main_thread()
        self._is_ours = in_main and _signal.getsignal(_SIGINT) is signal.default_int_handler
        if self._is_ours:
            _signal.signal(_SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if self._is_ours:
            _signal.signal(_SIGINT, signal.default_int_handler)
            if kind is None:
                self.check()

    def check(self) -> None:
        if self._came:
            self._came = False
            raise KeyboardInterrupt

    def _note(self, _: int, __: FrameType | None) -> None:
        self._came = True
        self._wake()
