"""What an EndTxn is answered: whether it ends the transaction, repeats what was decided, or comes from someone else."""

from __future__ import annotations

from lowwater.errors import ApiError, ErrorCode
from lowwater.transactions import table
from lowwater.transactions.beginning import check_settled
from lowwater.transactions.commands import EndTransaction
from lowwater.transactions.state import PRODUCER_EPOCH_MAX, Transaction
from lowwater.transactions.transitions import MOVES_ON


def ends_now(known: Transaction, command: EndTransaction) -> bool:
    """False when the same end was decided before. Everything else raises."""
    event = table.COMMIT if command.commit else table.ABORT
    answer = _answers(known, command)[known.state, event]
    if answer is ErrorCode.NONE and known.producer_epoch == PRODUCER_EPOCH_MAX:
        # The coordinator fenced with its last epoch, and nobody goes on with that one.
        answer = ErrorCode.PRODUCER_FENCED
    if answer is None or answer is ErrorCode.NONE:
        return answer is None
    raise ApiError(answer, f"{event} of {known.transactional_id!r}, which is {known.state.label}")


def _answers(known: Transaction, command: EndTransaction) -> table.EndAnswer:
    """Those for whoever has this epoch; without an answer the producer is fenced, or is another one."""
    moves_on = command.transaction_version >= MOVES_ON
    if moves_on:
        check_settled(known)
    if moves_on and _was_rotated(known, command):
        return table.END_REPEATED
    if moves_on and (known.producer_id, known.producer_epoch) == (command.producer_id, command.producer_epoch + 1):
        return table.END_REPEATED
    check_current(known, command.producer_id, command.producer_epoch)
    return table.END_MOVING_ON if moves_on else table.END_KEEPING_EPOCH


def check_current(known: Transaction, producer_id: int, producer_epoch: int) -> None:
    """This is the producer of the transactional id, and no newer instance of it has begun."""
    if known.producer_id != producer_id:
        said = f"{known.transactional_id!r} has producer id {known.producer_id}"
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, said)
    if known.producer_epoch != producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED, f"{known.transactional_id!r} is at epoch {known.producer_epoch}")


def _was_rotated(known: Transaction, command: EndTransaction) -> bool:
    """It was the last epoch of the producer id before this one."""
    return (
        known.producer_epoch == 0
        and known.previous_producer_id == command.producer_id
        and command.producer_epoch == PRODUCER_EPOCH_MAX - 1
    )
