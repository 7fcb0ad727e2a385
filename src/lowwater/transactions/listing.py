"""Which transactional ids a ListTransactions asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lowwater.errors import ApiError, ErrorCode
from lowwater.transactions.commands import ListTransactions, TransactionList
from lowwater.transactions.state import State, Transaction

# Kafka knows this state by name, though no transaction is ever seen in it.
NAMES = frozenset({*(state.label for state in State), "PrepareEpochFence"})


def listed(command: ListTransactions, transactions: Iterable[Transaction], now_ms: int) -> TransactionList:
    """A state that nobody knows passes nothing. INVALID_REGULAR_EXPRESSION."""
    pattern = _compiled(command.pattern) if command.pattern else None
    passed = (one for one in transactions if _passes(command, one, now_ms))
    return TransactionList(
        transactions=tuple(one for one in passed if pattern is None or pattern.fullmatch(one.transactional_id)),
        unknown_states=tuple(name for name in dict.fromkeys(command.states) if name not in NAMES),
    )


def _passes(command: ListTransactions, transaction: Transaction, now_ms: int) -> bool:
    if command.producer_ids and transaction.producer_id not in command.producer_ids:
        return False
    if command.states and transaction.state.label not in command.states:
        return False
    return command.longer_than_ms < 0 or now_ms - transaction.started_ms > command.longer_than_ms


def _compiled(pattern: str) -> Any:
    """By RE2, so that no expression can hang the broker."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r} is not a regular expression") from None
