"""With what identity a producer begins: each InitProducerId fences those before it."""

from __future__ import annotations

from lowwater.errors import ApiError, ErrorCode
from lowwater.transactions.commands import NO_PRODUCER_ID, EndTransaction, InitProducer, ProducerIdentity
from lowwater.transactions.state import PREPARED, PRODUCER_EPOCH_MAX, Transaction


def check_settled(known: Transaction) -> None:
    """While an end is being written everybody waits for it: who goes on after it, and as whom, shows then."""
    if known.state in PREPARED:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, f"{known.transactional_id!r} is {known.state.label}")


def check_producer(known: Transaction, command: InitProducer) -> None:
    """A producer that says who it is has to be the one of this transactional id.

    It may also be the one before: its epochs were used up, and the answer that said so was lost.
    """
    if command.producer_id in (NO_PRODUCER_ID, known.producer_id):
        return
    if command.producer_id != known.previous_producer_id or command.producer_epoch < PRODUCER_EPOCH_MAX - 1:
        raise ApiError(ErrorCode.PRODUCER_FENCED, f"{known.transactional_id!r} has another producer id")


def next_identity(known: Transaction, command: InitProducer, last_epoch: int) -> ProducerIdentity:
    """Between transactions. `last_epoch` is the one before the current one, -1 when nobody may ask by it."""
    begins_anew = command.producer_id == NO_PRODUCER_ID
    repeats = not begins_anew and command.producer_epoch == last_epoch
    if not begins_anew and not repeats and command.producer_epoch != known.producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED, f"{known.transactional_id!r} is at epoch {known.producer_epoch}")
    if known.is_exhausted:
        return ProducerIdentity(spare_producer_id(command), 0)
    return ProducerIdentity(known.producer_id, known.producer_epoch + (0 if repeats else 1))


def spare_producer_id(command: InitProducer | EndTransaction) -> int:
    """Without one the client tries again: nothing was said about it when the driver asked whether one is needed."""
    if command.spare_producer_id is None:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "a new producer id is needed")
    return command.spare_producer_id
