"""ListTransactions v0-2: all transactional ids that pass the filters; v1 adds one by duration, v2 one by pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.pending import Pending
from lowwater.transactions.commands import ListTransactions, TransactionList
from lowwater.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(ListTransactionsRequest, pipelines=True)
def list_transactions(broker: Broker, request: ListTransactionsRequest, context: RequestContext) -> Any:
    command = ListTransactions(
        tuple(request.state_filters),
        tuple(request.producer_id_filters),
        request.duration_filter,
        request.transactional_id_pattern,
    )
    return Pending.gather(broker.transactions.ask_each(command), _together)


def _together(answers: list[TransactionList]) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        unknown_state_filters=list(answers[0].unknown_states),
        transaction_states=[
            TransactionState(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state.label,
            )
            for answer in answers
            for one in answer.transactions
        ],
    )
