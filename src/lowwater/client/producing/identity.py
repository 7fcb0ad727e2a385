"""Who an idempotent producer is to its brokers: an id, and an epoch that grows when sequences begin anew."""

from __future__ import annotations

from typing import NamedTuple

from lowwater.client.cluster import Cluster
from lowwater.client.errors import broker_error
from lowwater.wire.messages import InitProducerIdRequest, InitProducerIdResponse
from lowwater.wire.records import NO_PRODUCER_ID

EPOCH_MAX = 2**15 - 1


class Identity(NamedTuple):
    producer_id: int
    epoch: int

    def next_epoch(self) -> Identity | None:
        """None when there is none: another producer id is needed."""
        return Identity(self.producer_id, self.epoch + 1) if self.epoch < EPOCH_MAX else None


NOBODY = Identity(NO_PRODUCER_ID, -1)


async def ask_identity(cluster: Cluster, timeout_ms: float) -> Identity:
    """A new one, of any broker."""

    async def attempt(left_ms: float) -> Identity:
        request = InitProducerIdRequest(transaction_timeout_ms=0)
        limit_ms = min(left_ms, cluster.network.config.int("request.timeout.ms"))
        return identity_in(await cluster.network.ask_any(request, timeout_ms=limit_ms))

    return await cluster.retry.run(attempt, timeout_ms)


def identity_in(response: InitProducerIdResponse) -> Identity:
    if response.error_code:
        raise broker_error(response.error_code, "no producer id can be had")
    return Identity(response.producer_id, response.producer_epoch)
