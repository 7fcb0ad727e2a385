"""Who writes in a transaction, and what it is told when it may not, in the words that its version of an API knows."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition

Refusals: TypeAlias = dict[TopicPartition, ErrorCode]
"""Partitions that may not be written to, and why."""

NOT_NOW = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Writer(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int


def fenced_since(known_since: int, version: int, code: ErrorCode) -> ErrorCode:
    """Before it knew PRODUCER_FENCED a client was told the same in another word."""
    if code is ErrorCode.PRODUCER_FENCED and version < known_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def told_to_writer(code: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    """To whoever writes records or offsets: it has never known PRODUCER_FENCED there."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


def told_to_produce(code: ErrorCode, *, knows_abortable: bool, adds: bool) -> ErrorCode:
    """A Produce is tried again after NOT_ENOUGH_REPLICAS, also by clients that expect no word of a coordinator."""
    if code in NOT_NOW or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return told_to_writer(code, knows_abortable=knows_abortable)
