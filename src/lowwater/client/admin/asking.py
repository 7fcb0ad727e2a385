"""Whom to ask what concerns the whole cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, TypeVar

from lowwater.client.cluster import NO_LEADER, Cluster
from lowwater.client.errors import (
    BrokerError,
    ClientError,
    ConnectError,
    DisconnectedError,
    RequestTimeoutError,
    UnknownTopicError,
    broker_error,
)
from lowwater.errors import ErrorCode
from lowwater.pending import Pending

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


async def ask_controller(cluster: Cluster, request: Any, left_ms: float, api: type[Any] | None = None) -> Any:
    """The answer of the controller. Where brokers pass such requests on, any of them is named as the controller."""
    network = cluster.network
    if cluster.controller not in network.nodes:
        await cluster.brokers(left_ms)
    if cluster.controller == NO_LEADER:
        raise ConnectError("the cluster has no controller at the moment")
    timeout_ms = min(left_ms, network.config.int("request.timeout.ms"))
    try:
        return await network.ask(cluster.controller, request, api=api, timeout_ms=timeout_ms)
    except (ConnectError, DisconnectedError, RequestTimeoutError):
        cluster.controller = NO_LEADER  # perhaps another one is by now
        raise


def forget_controller(cluster: Cluster, errors: Iterable[object]) -> None:
    """Look for the controller again when one of these says that it was not asked."""
    if any(isinstance(error, BrokerError) and error.code == ErrorCode.NOT_CONTROLLER for error in errors):
        cluster.controller = NO_LEADER


async def ask_all(
    cluster: Cluster,
    requests: Mapping[int, Any],
    left_ms: float,
    api: type[Any] | None = None,
    versions: tuple[int, int] | None = None,
) -> dict[int, Any | ClientError]:
    """By broker its answer, or why there is none; all are asked at the same time."""
    network = cluster.network
    if not requests.keys() <= network.nodes.keys():
        await cluster.brokers(left_ms)
    timeout_ms = min(left_ms, network.config.int("request.timeout.ms"))
    pending = {
        node: network.ask(node, request, api=api, versions=versions, timeout_ms=timeout_ms)
        for node, request in requests.items()
    }
    try:
        return {node: await _kept(each) for node, each in pending.items()}
    finally:
        for each in pending.values():
            each.abandon()


async def _kept(answer: Pending[Any]) -> Any | ClientError:
    try:
        return await answer
    except ClientError as error:
        return error


def time_limit_ms(cluster: Cluster, left_ms: float) -> int:
    """How long a broker may work on a request: less than its answer is waited for."""
    return max(int(min(left_ms, cluster.network.config.int("request.timeout.ms")) * 0.9), 1)


def refusal(
    code: int, message: str | None, *, topic: str | None = None, partition: int | None = None, what: str = ""
) -> BrokerError:
    """The error of a code, with what the broker itself says of it."""
    return broker_error(code, what, topic=topic, partition=partition, advice=message or "")


class Doubt:
    """Whether an earlier try may have been served although its answer never came. A later refusal says so then."""

    def __init__(self, perhaps: str) -> None:
        self._perhaps = perhaps
        self._is_in_doubt = False

    async def watch(self, asking: Awaitable[T]) -> T:
        try:
            return await asking
        except (DisconnectedError, RequestTimeoutError):
            self._is_in_doubt = True
            raise

    def mention(self, results: dict[K, V], code: int) -> dict[K, V]:
        """The same, with the doubt told where the refusal is the one that a second try would meet."""
        for error in results.values():
            if isinstance(error, BrokerError) and error.code == code and self._is_in_doubt:
                error.advice = self._perhaps
        return results


class Appearing:
    """A topic that was made just now may not be known to every broker: that it is missing may pass, but soon."""

    def __init__(self, cluster: Cluster) -> None:
        self._now_ms = cluster.network.driver.monotonic_ms
        self._until_ms = self._now_ms() + cluster.network.config.int("topic.metadata.propagation.max.ms")

    def judge(self, results: dict[K, V]) -> dict[K, V]:
        """The same; that a topic is missing is for good when its time is over."""
        if self._now_ms() >= self._until_ms:
            for error in results.values():
                if isinstance(error, UnknownTopicError):
                    error.retriable = False
        return results
