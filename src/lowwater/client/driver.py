"""What the client's flows need from whoever runs them: time, sockets, and a place for slow work.

There are two drivers, `blocking` and `aio`; tests have a third, on virtual time. Everything above them is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from lowwater.client.config import Address
from lowwater.client.errors import ClientError
from lowwater.pending import Pending
from lowwater.ports import Ids, Timer
from lowwater.types import Buffer

T = TypeVar("T")


class Transport(Protocol):
    """One connection, open or being opened."""

    def write(self, parts: Sequence[Buffer]) -> None:
        """Send in order, now or as soon as the peer takes it. The parts must not change until then."""

    def abort(self) -> None:
        """Close at once. The receiver hears nothing any more."""


class Receiver(Protocol):
    """What a connection is opened for."""

    def connected(self) -> None:
        """The connection stands, TLS included."""

    def room(self) -> memoryview:
        """Where to put what comes next; never empty."""

    def received(self, count: int) -> None:
        """So many bytes were put there."""

    def lost(self, error: ClientError) -> None:
        """There is no connection, or none any more. Nothing follows."""


class Driver(Protocol):
    """One thread; everything is called back in it, never from within the call that asked for it."""

    @property
    def ids(self) -> Ids: ...

    def now_ms(self) -> int:
        """The wall clock."""

    def monotonic_ms(self) -> float: ...

    def call_soon(self, callback: Callable[[], None]) -> None: ...

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...

    def dial(self, address: Address, receiver: Receiver) -> Transport: ...

    def elsewhere(self, work: Callable[[], T]) -> Pending[T]:
        """Run slow work where it holds up nothing that must not wait."""


def sleep(driver: Driver, delay_ms: float) -> Pending[None]:
    """Done after a while; given up, it leaves no timer behind."""
    over: Pending[None] = Pending()
    timer = driver.call_later(delay_ms, lambda: over.resolve(None))
    over.on_abandon = timer.cancel
    return over


def jitter(ids: Ids) -> float:
    """Random, in [0, 1)."""
    return int.from_bytes(ids.uuid()[:4], "big") / 2**32


def backoff_ms(first_ms: float, most_ms: float, failures: int, ids: Ids) -> float:
    """How long to wait after so many failures in a row: doubling, at most `most_ms`, 20 % more or less."""
    grown = first_ms * 2.0 ** min(max(failures, 1) - 1, 30)
    return min(most_ms, grown) * (0.8 + 0.4 * jitter(ids))
