"""The one face that the transaction suites see of every client library: a transactional producer, and a reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

Place = tuple[str, int]
TIMEOUT_S = 30
TIMEOUT_MS = TIMEOUT_S * 1000
TRANSACTION_TIMEOUT_MS = 60_000


class Can(Enum):
    """What a library may or may not be able to do with transactions."""

    NAME_ITS_MEMBER = auto()  # offsets go with a member id and a generation
    # A record that the broker refuses ends the transaction, not the producer: others then lose count of sequences, or
    # take the next transaction's first record for one of the last.
    GO_ON_AFTER_REFUSAL = auto()


@dataclass(frozen=True, slots=True)
class MemberOf:
    """Who commits offsets in a transaction; without a member id anybody may.

    `own` is what a consumer of the same library says of itself: confluent-kafka takes nothing else.
    """

    group: str
    member_id: str = ""
    generation: int = -1
    own: Any = None


class Transactor(ABC):
    """One transactional producer. Refusals of the broker are raised as ClientError, by whichever call tells them."""

    name: ClassVar[str]
    peer: ClassVar[str]
    can: ClassVar[frozenset[Can]]

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> None:
        self.bootstrap = bootstrap
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms

    @abstractmethod
    def init(self) -> None:
        """Become the producer of the transactional id; older ones are fenced."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> list[int]:
        """Send in the open transaction; the offsets, when all are acknowledged."""

    @abstractmethod
    def send_offsets(self, member: MemberOf, offsets: Mapping[Place, int]) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Go away without a word more than the library must say."""


class Reader(ABC):
    """Reads whole partitions as the library's consumer sees them."""

    name: ClassVar[str]
    peer: ClassVar[str]

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def read(self, place: Place, *, committed: bool, start: int = 0) -> list[tuple[int, bytes]]:
        """(offset, value) from `start` to what the library takes for the end: of all, or of what is committed."""
