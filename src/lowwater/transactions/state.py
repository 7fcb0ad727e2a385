"""Where a transactional id stands: all that is durable of it, one value at a time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lowwater.types import TopicPartition

PRODUCER_EPOCH_MAX = 2**15 - 1


class State(Enum):
    """By the number in the log. An id that is Dead is not there any more: its key was forgotten."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6

    @property
    def label(self) -> str:
        """As tools name it: PrepareCommit."""
        return self.name.title().replace("_", "")


PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id, its producer, and what the transaction wrote to. Times are by the wall clock, -1 for none.

    `previous_producer_id` is the one before the last decision. `next_producer_id` takes over when the epochs of this
    one are used up and the transaction is complete. `client_version` is the `transaction.version` of its client.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State
    partitions: frozenset[TopicPartition]
    started_ms: int
    updated_ms: int
    previous_producer_id: int = -1
    next_producer_id: int = -1
    client_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """The last epoch is kept for the coordinator, which fences with it."""
        return self.producer_epoch >= PRODUCER_EPOCH_MAX - 1
