"""How a transaction ends at its coordinator, by the producer that wrote it or by whoever knows its identity."""

from __future__ import annotations

from typing import NamedTuple

from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import TRANSACTION, NodeOf
from lowwater.client.errors import BrokerError, ClientError, TransactionError, UnsupportedError, broker_error
from lowwater.client.login import SOFTWARE
from lowwater.client.network import COORDINATING
from lowwater.client.producing.identity import Identity
from lowwater.errors import ErrorCode
from lowwater.wire.messages import ApiVersionsRequest, EndTxnRequest

FEATURE = "transaction.version"
# With it each transaction has an epoch of its own, and writing to a partition makes it part of the transaction.
EPOCH_PER_TRANSACTION = 2
END_VERSIONS = {False: (0, 4), True: (5, 5)}


# The transaction before is being finished, which seldom takes longer than that.
ENDING_MS = 20
ENDING_TRIES = 10


class Prepared(NamedTuple):
    """A transaction whose rows are all written, left open to be ended from anywhere."""

    transactional_id: str
    producer_id: int
    epoch: int


def is_ending(error: ClientError) -> bool:
    """Whether it says that the transaction before has not quite ended."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.CONCURRENT_TRANSACTIONS


async def has_epoch_per_transaction(cluster: Cluster, node: int) -> bool:
    """Whether the cluster of this broker has agreed on it."""
    request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version="1")
    try:
        answer = await cluster.network.ask(node, request, versions=(3, 4), lane=COORDINATING)
    except UnsupportedError:
        return False
    levels: dict[str, int] = {each.name: each.max_version_level for each in answer.finalized_features}
    return levels.get(FEATURE, 0) >= EPOCH_PER_TRANSACTION


async def end_at(
    coordinator: NodeOf,
    prepared: Prepared,
    *,
    commit: bool,
    epoch_per_transaction: bool,
    timeout_ms: float | None = None,
) -> Identity:
    """Commit or abort; whose epoch the next transaction has. Asking again for the same end is no error."""
    request = EndTxnRequest(
        transactional_id=prepared.transactional_id,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.epoch,
        committed=commit,
    )

    async def attempt(left_ms: float) -> Identity:
        response = await coordinator.ask(
            request,
            versions=END_VERSIONS[epoch_per_transaction],
            timeout_ms=coordinator.limit_ms(left_ms),
            lane=COORDINATING,
        )
        if response.error_code == ErrorCode.INVALID_TXN_STATE:
            raise _not_open(prepared, commit) from broker_error(response.error_code)
        if response.error_code:
            raise broker_error(response.error_code, f"transaction {prepared.transactional_id!r} was not ended")
        if not epoch_per_transaction:
            return Identity(prepared.producer_id, prepared.epoch)
        return Identity(response.producer_id, response.producer_epoch)

    return await coordinator.cluster.retry.run(attempt, timeout_ms)


async def end_prepared(cluster: Cluster, prepared: Prepared, *, commit: bool, timeout_ms: float | None = None) -> None:
    """FencedError when a later producer or the transaction's timeout came first; TransactionError when it is over."""
    coordinator = NodeOf(cluster, prepared.transactional_id, TRANSACTION)
    node = await coordinator.node(timeout_ms)
    per_transaction = await has_epoch_per_transaction(cluster, node)
    await end_at(coordinator, prepared, commit=commit, epoch_per_transaction=per_transaction, timeout_ms=timeout_ms)


def _not_open(prepared: Prepared, commit: bool) -> TransactionError:
    wanted = "committed" if commit else "aborted"
    return TransactionError(
        f"transaction {prepared.transactional_id!r} of producer {prepared.producer_id} at epoch {prepared.epoch} "
        f"cannot be {wanted}: it is not open, or has ended the other way"
    )
