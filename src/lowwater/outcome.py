"""What a decision comes to: records to write, replies to send when those are durable, work to do elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Token: TypeAlias = Any
"""Whoever waits for a reply, as the driver knows it. The cores only hand it back, once."""


class Now(NamedTuple):
    """The time of a decision: what is stored is stamped by the wall clock, timers run by the one that never jumps."""

    wall_ms: int
    monotonic_ms: float


class StateRecord(NamedTuple):
    """A record of an internal topic as it is stored; no value: the key is forgotten."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Computation:
    """Much work, to be done off the event loop; its result comes back as `then(result)`, a command for the same shard.

    `work` and `argument` survive pickling.
    """

    work: Callable[[Any], Any]
    argument: Any
    then: Callable[[Any], Any]


class Outcome:
    """Filled by one decision. Every token is replied to exactly once, in this outcome or in a later one.

    `effects` are what the driver has to do as soon as the records are durable, and not before. `producer` (id, epoch)
    is set when the records are part of that producer's transaction.
    """

    __slots__ = ("computations", "effects", "producer", "records", "replies")

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self.replies: list[tuple[Token, Any]] = []
        self.computations: list[Computation] = []
        self.effects: list[Any] = []
        self.producer: tuple[int, int] | None = None

    def reply(self, token: Token, response: Any) -> None:
        self.replies.append((token, response))
