"""DescribeTransactions v0: where transactional ids stand, each by itself."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending
from lowwater.transactions.commands import DescribeTransaction
from lowwater.transactions.state import Transaction
from lowwater.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DescribeTransactionsRequest, pipelines=True)
def describe_transactions(broker: Broker, request: DescribeTransactionsRequest, context: RequestContext) -> Any:
    answers = [_describe(broker, one) for one in request.transactional_ids]
    return Pending.gather(answers, lambda states: DescribeTransactionsResponse(transaction_states=states))


def _describe(broker: Broker, transactional_id: str) -> Any:
    def refused(error: ApiError) -> TransactionState:
        return _state(transactional_id, error.code)

    if not transactional_id:
        return _state("", ErrorCode.INVALID_REQUEST)
    answer = broker.transactions.ask_or(transactional_id, DescribeTransaction(transactional_id), refused)
    return answer.map(_described) if isinstance(answer, Pending) else _described(answer)


def _described(answer: Transaction | TransactionState) -> TransactionState:
    if isinstance(answer, TransactionState):
        return answer
    state = _state(answer.transactional_id, ErrorCode.NONE)
    state.transaction_state = answer.state.label
    state.transaction_timeout_ms = answer.timeout_ms
    state.transaction_start_time_ms = answer.started_ms
    state.producer_id, state.producer_epoch = answer.producer_id, answer.producer_epoch
    state.topics = [
        TopicData(topic=topic, partitions=[one.partition for one in places])
        for topic, places in groupby(sorted(answer.partitions), lambda one: one.topic)
    ]
    return state


def _state(transactional_id: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )
