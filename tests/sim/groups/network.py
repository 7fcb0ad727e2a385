"""Requests and answers on their way: late, out of order, lost, twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.sim.groups.events import Events

REQUEST_LOST = ANSWER_LOST = 0.02
CUT_WHILE_WAITING = 0.02
DELIVERED_AGAIN = 0.04
TOLD_OF_LOSS = 0.5
LATE_MS = 25_000


class Client(Protocol):
    name: str
    asleep_until_ms: float  # a process may be stopped for a while, and go on as if nothing had happened

    def answered(self, exchange: Exchange) -> None: ...

    def broken(self, exchange: Exchange) -> None:
        """The connection is gone; whether the request arrived is not known."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and what became of it. Without a sender it is a late copy, and nobody takes its answer."""

    sender: Client | None
    request: Any
    version: int
    response: Any = None
    is_open: bool = True  # the client still waits
    delivered_ms: float = -1.0
    delivered_at: int = -1  # place in the order in which the broker got its requests
    life: int = -1  # of the broker that got it
    decided_ms: float = -1.0  # when its answer was certain, though perhaps not yet durable
    replies: int = 0

    @property
    def name(self) -> str:
        return self.sender.name if self.sender else "copy"

    def __repr__(self) -> str:
        return f"{type(self.request).__name__} from {self.name}"


class Node(Protocol):
    def deliver(self, exchange: Exchange) -> None: ...


class Network:
    """Between the clients and one broker. It calms down when `is_faulty` ends."""

    def __init__(self, events: Events, draw: random.Random) -> None:
        self._events = events
        self._draw = draw
        self.is_faulty = True
        self.deliver: Callable[[Exchange], None] = lambda exchange: None

    def send(self, sender: Client, request: Any, version: int) -> Exchange:
        exchange = Exchange(sender, request, version)
        if self._strikes(REQUEST_LOST):
            self.lose(exchange)
            return exchange
        self._events.after(self._latency_ms(), lambda: self.deliver(exchange))
        if self._strikes(DELIVERED_AGAIN):
            copy = Exchange(None, request, version)
            self._events.after(self._draw.random() * LATE_MS, lambda: self.deliver(copy))
        if self._strikes(CUT_WHILE_WAITING):
            self._events.after(self._draw.random() * LATE_MS / 5, lambda: self.break_now(exchange))
        return exchange

    def answer(self, exchange: Exchange) -> None:
        """The broker has replied; `exchange.response` is on its way back."""
        if self._strikes(ANSWER_LOST):
            self.lose(exchange)
        else:
            self._events.after(self._latency_ms(), lambda: self._hand_over(exchange))

    def lose(self, exchange: Exchange) -> None:
        """The client sees its connection go, or nothing at all until its own timeout."""
        if self._draw.random() < TOLD_OF_LOSS:
            self._events.after(self._latency_ms(), lambda: self.break_now(exchange))

    def break_now(self, exchange: Exchange) -> None:
        if exchange.is_open and exchange.sender is not None:
            exchange.is_open = False
            exchange.sender.broken(exchange)

    def _hand_over(self, exchange: Exchange) -> None:
        if not exchange.is_open or exchange.sender is None:
            return
        asleep_ms = exchange.sender.asleep_until_ms - self._events.now_ms
        if asleep_ms > 0:
            self._events.after(asleep_ms, lambda: self._hand_over(exchange))
            return
        exchange.is_open = False
        exchange.sender.answered(exchange)

    def _strikes(self, chance: float) -> bool:
        return self.is_faulty and self._draw.random() < chance

    def _latency_ms(self) -> float:
        if not self.is_faulty:
            return 1 + self._draw.random() * 4
        kind = self._draw.random()
        most = 20 if kind < 0.85 else 600 if kind < 0.97 else LATE_MS
        return self._draw.random() * most
