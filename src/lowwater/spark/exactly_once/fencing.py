"""Taking a sink, and ending transactions, at their coordinators."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lowwater.client.admin.asking import ask_all
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import TRANSACTION, NodeOf
from lowwater.client.driver import sleep
from lowwater.client.errors import (
    BrokerError,
    ClientError,
    FencedError,
    TransactionError,
    UnsupportedError,
    broker_error,
)
from lowwater.client.flow import Flow
from lowwater.client.network import COORDINATING
from lowwater.client.producing.ending import (
    ENDING_MS,
    ENDING_TRIES,
    Prepared,
    end_at,
    has_epoch_per_transaction,
    is_ending,
)
from lowwater.client.producing.identity import NOBODY, identity_in
from lowwater.errors import ErrorCode
from lowwater.spark.exactly_once.errors import ExactlyOnceError, SinkTakenError
from lowwater.spark.exactly_once.state import Fence, Transaction
from lowwater.wire.messages import InitProducerIdRequest, ListTransactionsRequest

T = TypeVar("T")
ONGOING = "Ongoing"
# Since then a broker is told who we think we are, and refuses when somebody else came after.
_TELLS_WHO_SINCE = 3
_log = logging.getLogger("lowwater.spark")


async def take(cluster: Cluster, sink: str, expected: Fence | None, timeout_ms: int) -> Fence:
    """SinkTakenError unless `expected`, where there is one, was the last to take it."""
    known = NOBODY if expected is None else expected
    request = InitProducerIdRequest(
        transactional_id=sink,
        transaction_timeout_ms=timeout_ms,
        producer_id=known[0],
        producer_epoch=known[1],
    )
    versions = (0 if expected is None else _TELLS_WHO_SINCE, 6)
    coordinator = NodeOf(cluster, sink, TRANSACTION)

    async def attempt(left_ms: float) -> Fence:
        limit_ms = coordinator.limit_ms(left_ms)
        answer = await coordinator.ask(request, versions=versions, timeout_ms=limit_ms, lane=COORDINATING)
        return Fence(*identity_in(answer))

    try:
        return await cluster.retry.run(lambda left_ms: patiently(cluster, lambda: attempt(left_ms)))
    except FencedError as error:
        raise SinkTakenError(sink, error) from error
    except BrokerError as error:
        if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise ExactlyOnceError(f"kafka.transaction.timeout.ms={timeout_ms} is longer than brokers allow") from error
        raise


async def patiently(cluster: Cluster, attempt: Callable[[], Awaitable[T]]) -> T:
    """Tried again soon while the transaction before has not quite ended."""
    for _ in range(ENDING_TRIES):
        try:
            return await attempt()
        except ClientError as error:
            if not is_ending(error):
                raise
        await sleep(cluster.network.driver, ENDING_MS)
    return await attempt()


class Levels:
    """Whether the cluster of a broker has an epoch for each transaction: asked once of each broker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[int, bool] = {}

    async def of(self, node: int) -> bool:
        if node not in self._known:
            self._known[node] = await has_epoch_per_transaction(self._cluster, node)
        return self._known[node]


async def end_one(cluster: Cluster, levels: Levels, transaction: Transaction, *, commit: bool) -> Fence:
    """The epoch that its producer has next."""
    coordinator = NodeOf(cluster, transaction.id, TRANSACTION)
    per_transaction = await levels.of(await coordinator.node())
    prepared = Prepared(*transaction)
    return Fence(*await end_at(coordinator, prepared, commit=commit, epoch_per_transaction=per_transaction))


async def end_all(
    cluster: Cluster, levels: Levels, transactions: Sequence[Transaction], *, commit: bool
) -> list[Transaction]:
    """All at once; those that are over already, and not in this way."""
    ending = {each: Flow(end_one(cluster, levels, each, commit=commit)) for each in transactions}
    over: list[Transaction] = []
    try:
        for transaction, flow in ending.items():
            try:
                await flow
            except (FencedError, TransactionError):
                over.append(transaction)
    finally:
        for flow in ending.values():
            flow.cancel()
    return over


async def open_transactions(cluster: Cluster) -> list[str]:
    """Ids of all that are open, on brokers that tell; of others it is told that they do not."""
    request = ListTransactionsRequest(state_filters=[ONGOING], producer_id_filters=[])
    nodes = await cluster.brokers()
    answers = await ask_all(cluster, dict.fromkeys(nodes, request), cluster.network.config.int("request.timeout.ms"))
    found: list[str] = []
    for node, answer in answers.items():
        if isinstance(answer, UnsupportedError):
            continue  # it would be told with every batch
        if not isinstance(answer, ClientError) and not answer.error_code:
            found.extend(each.transactional_id for each in answer.transaction_states)
            continue
        error = answer if isinstance(answer, ClientError) else broker_error(answer.error_code)
        _log.warning("broker %d does not tell its open transactions, which end by their timeout: %s", node, error)
    return found


async def abort_all(cluster: Cluster, ids: Sequence[str], timeout_ms: int) -> dict[str, ClientError | ExactlyOnceError]:
    """All at once; by id, why it could not be."""
    aborting = {each: Flow(abort_by_id(cluster, each, timeout_ms)) for each in ids}
    failed: dict[str, ClientError | ExactlyOnceError] = {}
    try:
        for each, flow in aborting.items():
            try:
                await flow
            except (ClientError, ExactlyOnceError) as error:
                failed[each] = error
    finally:
        for flow in aborting.values():
            flow.cancel()
    return failed


async def abort_by_id(cluster: Cluster, transactional_id: str, timeout_ms: int) -> None:
    """Whoever has it open cannot write nor end it any more."""
    await take(cluster, transactional_id, None, timeout_ms)
