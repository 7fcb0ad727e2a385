"""The life of a transactional id as a table, and what an EndTxn is answered in each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from lowwater.errors import ErrorCode
from lowwater.transactions.state import State

EMPTY, ONGOING, DEAD = State.EMPTY, State.ONGOING, State.DEAD
PREPARE_COMMIT, PREPARE_ABORT = State.PREPARE_COMMIT, State.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = State.COMPLETE_COMMIT, State.COMPLETE_ABORT

INIT, ADD, COMMIT, ABORT, FENCE, WRITTEN, EXPIRE = "init", "add", "commit", "abort", "fence", "written", "expire"
"""Events: InitProducerId, partitions added, EndTxn either way, the coordinator's own abort, markers written, expiry."""

NEXT: Mapping[tuple[State, str], State] = {
    (EMPTY, INIT): EMPTY,
    (EMPTY, ADD): ONGOING,
    (EMPTY, ABORT): PREPARE_ABORT,
    (EMPTY, EXPIRE): DEAD,
    (ONGOING, ADD): ONGOING,
    (ONGOING, COMMIT): PREPARE_COMMIT,
    (ONGOING, ABORT): PREPARE_ABORT,
    (ONGOING, FENCE): PREPARE_ABORT,
    (PREPARE_COMMIT, WRITTEN): COMPLETE_COMMIT,
    (PREPARE_ABORT, WRITTEN): COMPLETE_ABORT,
    (COMPLETE_COMMIT, INIT): EMPTY,
    (COMPLETE_COMMIT, ADD): ONGOING,
    (COMPLETE_COMMIT, ABORT): PREPARE_ABORT,
    (COMPLETE_COMMIT, EXPIRE): DEAD,
    (COMPLETE_ABORT, INIT): EMPTY,
    (COMPLETE_ABORT, ADD): ONGOING,
    (COMPLETE_ABORT, ABORT): PREPARE_ABORT,
    (COMPLETE_ABORT, EXPIRE): DEAD,
}
"""What is not here never happens. An abort of nothing is possible only where it moves the producer to a new epoch."""

EndAnswer: TypeAlias = Mapping[tuple[State, str], ErrorCode | None]
"""None: the transaction ends now, as `NEXT` says. NONE: it ended so before. Any other code refuses."""

_REFUSED, _BUSY = ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS

END_KEEPING_EPOCH: EndAnswer = {
    (EMPTY, COMMIT): _REFUSED,
    (EMPTY, ABORT): _REFUSED,
    (ONGOING, COMMIT): None,
    (ONGOING, ABORT): None,
    (PREPARE_COMMIT, COMMIT): _BUSY,
    (PREPARE_COMMIT, ABORT): _BUSY,
    (PREPARE_ABORT, COMMIT): _BUSY,
    (PREPARE_ABORT, ABORT): _BUSY,
    (COMPLETE_COMMIT, COMMIT): ErrorCode.NONE,
    (COMPLETE_COMMIT, ABORT): _REFUSED,
    (COMPLETE_ABORT, COMMIT): _REFUSED,
    (COMPLETE_ABORT, ABORT): ErrorCode.NONE,
}
"""`transaction.version` below 2, by the producer's own epoch. A repetition cannot be told from a new request."""

END_MOVING_ON: EndAnswer = {
    (EMPTY, COMMIT): _REFUSED,
    (EMPTY, ABORT): None,
    (ONGOING, COMMIT): None,
    (ONGOING, ABORT): None,
    (COMPLETE_COMMIT, COMMIT): _REFUSED,
    (COMPLETE_COMMIT, ABORT): None,
    (COMPLETE_ABORT, COMMIT): _REFUSED,
    (COMPLETE_ABORT, ABORT): None,
}
"""`transaction.version` 2, by the producer's own epoch. While an end is being written everybody waits for it first."""

END_REPEATED: EndAnswer = {
    (EMPTY, COMMIT): ErrorCode.PRODUCER_FENCED,
    (EMPTY, ABORT): ErrorCode.PRODUCER_FENCED,
    (ONGOING, COMMIT): ErrorCode.PRODUCER_FENCED,
    (ONGOING, ABORT): ErrorCode.PRODUCER_FENCED,
    (COMPLETE_COMMIT, COMMIT): ErrorCode.NONE,
    (COMPLETE_COMMIT, ABORT): _REFUSED,
    (COMPLETE_ABORT, COMMIT): _REFUSED,
    (COMPLETE_ABORT, ABORT): ErrorCode.NONE,
}
"""`transaction.version` 2, by the epoch before the producer's: its end was decided and the answer was lost."""
