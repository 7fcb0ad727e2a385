"""Coordinators: which broker keeps a group or a transaction, asking it, and the offsets that a group has committed.

offsets = await Coordinator(cluster, "orders-app").committed(partitions)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lowwater.client.cluster import Cluster
from lowwater.client.errors import (
    BrokerError,
    ClientError,
    CommitError,
    ConnectError,
    DisconnectedError,
    GroupError,
    RequestTimeoutError,
    UnsupportedError,
    broker_error,
)
from lowwater.client.flow import Flow
from lowwater.client.group_offsets import (
    COMMIT_VERSIONS,
    FETCH_VERSIONS,
    NOBODY,
    Committed,
    Identity,
    commit_codes,
    commit_request,
    fetch_code,
    fetch_request,
    fetched_offsets,
)
from lowwater.client.network import USUAL
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest

__all__ = ["GROUP", "NOBODY", "TRANSACTION", "Committed", "Coordinator", "Identity", "NodeOf", "coordinators"]

GROUP, TRANSACTION = 0, 1
"""What is coordinated, as the wire has it."""

MANY_KEYS_SINCE = 4
VERSION_MAX = 6
# The broker is not, or not yet, or not any more the one to ask.
_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_LATER = _ELSEWHERE | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class NodeOf:
    """The broker that coordinates one key. It is looked up when needed, and again when it is not the one any more."""

    def __init__(self, cluster: Cluster, key: str, kind: int = GROUP) -> None:
        self.cluster = cluster
        self.key = key
        self.kind = kind
        self._node: int | None = None
        self._finding: Flow[int] | None = None

    async def node(self, timeout_ms: float | None = None) -> int:
        """Its id, asked for unless known."""
        return await self.cluster.retry.run(self._found, timeout_ms)

    def forget(self, node: int | None = None) -> None:
        """Look it up again before it is asked; not when another than `node` is known by now."""
        if node is None or node == self._node:
            self._node = None

    async def ask(
        self,
        request: Any,
        *,
        api: type[Any] | None = None,
        versions: tuple[int, int] | None = None,
        timeout_ms: float | None = None,
        lane: str = USUAL,
        code: Callable[[Any], int] = lambda response: int(response.error_code),
    ) -> Any:
        """One try. That the coordinator is elsewhere, or not ready, is raised; other codes stay in the response."""
        limit_ms = self.cluster.network.config.int("request.timeout.ms") if timeout_ms is None else timeout_ms
        node = await self._found(limit_ms)
        network = self.cluster.network
        try:
            response = await network.ask(node, request, api=api, versions=versions, timeout_ms=limit_ms, lane=lane)
        except (ConnectError, DisconnectedError, RequestTimeoutError):
            self.forget(node)
            raise
        found = code(response)
        if found in _ELSEWHERE:
            self.forget(node)
        if found in _LATER:
            raise broker_error(found, f"the coordinator of {self.key!r} cannot be asked")
        return response

    async def insist(
        self,
        request: Any,
        *,
        api: type[Any] | None = None,
        versions: tuple[int, int] | None = None,
        timeout_ms: float | None = None,
        lane: str = USUAL,
        code: Callable[[Any], int] = lambda response: int(response.error_code),
    ) -> Any:
        """The same, tried until a coordinator answers for itself or the time (default.api.timeout.ms) is over."""

        async def attempt(left_ms: float) -> Any:
            return await self.ask(
                request, api=api, versions=versions, timeout_ms=self.limit_ms(left_ms), lane=lane, code=code
            )

        return await self.cluster.retry.run(attempt, timeout_ms)

    def limit_ms(self, left_ms: float) -> float:
        """For one request, when so much time is left for all."""
        return min(left_ms, self.cluster.network.config.int("request.timeout.ms"))

    async def _found(self, timeout_ms: float) -> int:
        if self._node is not None:
            return self._node
        if self._finding is None:
            finding = self._finding = Flow(self._find(self.limit_ms(timeout_ms)))
            finding.on_done(lambda _: self._let_go(finding))
        # Not the flow itself: one who gives up must not take the answer from the others.
        return await self._finding.then(lambda done: done.result())

    def _let_go(self, finding: Flow[int]) -> None:
        if self._finding is finding:
            self._finding = None

    async def _find(self, timeout_ms: float) -> int:
        found = (await _lookup(self.cluster, [self.key], self.kind, (0, VERSION_MAX), timeout_ms))[self.key]
        if isinstance(found, ClientError):
            raise found
        if found not in self.cluster.network.nodes:
            await self.cluster.brokers(timeout_ms)
        self._node = found
        return found


class Coordinator(NodeOf):
    """That of a group, and the offsets which the group has committed."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        super().__init__(cluster, group, GROUP)

    @property
    def group(self) -> str:
        return self.key

    async def committed(
        self,
        partitions: Iterable[TopicPartition],
        *,
        require_stable: bool | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, int | None]:
        """The next offset to read of each, None where nothing was committed. One request."""
        wanted = list(partitions)
        found = await self.committed_in_full(wanted, require_stable=require_stable, timeout_ms=timeout_ms)
        return {one: found[one].offset if one in found else None for one in wanted}

    async def committed_in_full(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, Committed]:
        """What was committed for these partitions, or for all; those without are left out.

        `require_stable` waits for transactions that still decide about an offset; isolation.level says unless given.
        """
        if require_stable is None:
            require_stable = self.cluster.network.config.str("isolation.level") == "read_committed"
        wanted = None if partitions is None else list(partitions)
        if wanted == []:
            return {}
        request = fetch_request(self.group, wanted, require_stable)

        async def attempt(left_ms: float) -> dict[TopicPartition, Committed]:
            response = await self.ask(
                request,
                api=OffsetFetchRequest,
                versions=FETCH_VERSIONS,
                timeout_ms=self.limit_ms(left_ms),
                code=fetch_code,
            )
            return fetched_offsets(response, self.group)

        return await self.cluster.retry.run(attempt, timeout_ms)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | Committed],
        by: Identity = NOBODY,
        *,
        timeout_ms: float | None = None,
        is_retried: bool = True,
    ) -> None:
        """Durable when it returns. GroupError when the group refuses `by`; CommitError names partitions that failed."""
        if not offsets:
            return
        commit = _Commit(self, offsets, by)
        if is_retried:
            await self.cluster.retry.run(commit.attempt, timeout_ms)
        else:
            await commit.attempt(self.limit_ms(float("inf") if timeout_ms is None else timeout_ms))
        commit.require_all()


class _Commit:
    """One commit on its way: what is left to try, and what failed for good."""

    def __init__(
        self, coordinator: Coordinator, offsets: Mapping[TopicPartition, int | Committed], by: Identity
    ) -> None:
        self._coordinator = coordinator
        self._by = by
        self._left = {one: each if isinstance(each, Committed) else Committed(each) for one, each in offsets.items()}
        self._failed: dict[TopicPartition, ClientError] = {}
        self._done: set[TopicPartition] = set()
        network = coordinator.cluster.network
        self._now_ms = network.driver.monotonic_ms
        self._appears_by_ms = self._now_ms() + network.config.int("topic.metadata.propagation.max.ms")

    async def attempt(self, left_ms: float) -> None:
        """Commit what is left; raises as long as something is left that may be tried again."""
        coordinator = self._coordinator
        response = await coordinator.ask(
            commit_request(coordinator.group, self._left, self._by),
            api=OffsetCommitRequest,
            versions=COMMIT_VERSIONS,
            timeout_ms=coordinator.limit_ms(left_ms),
            code=lambda response: next((code for _, code in commit_codes(response) if code in _LATER), 0),
        )
        answers = list(commit_codes(response))
        again = {one: error for one, code in answers if (error := self._took(one, code)) is not None}
        if again:
            incomplete = CommitError({**again, **self._failed}, self._done)
            incomplete.retriable = True
            raise incomplete

    def _took(self, one: TopicPartition, code: int) -> BrokerError | None:
        """Why this one has to be tried again, if so."""
        if not code:
            del self._left[one]
            self._done.add(one)
            return None
        error = broker_error(code, topic=one.topic, partition=one.partition)
        if isinstance(error, GroupError) or code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise broker_error(code, f"group {self._coordinator.group!r} refuses the commit")
        # A topic that was just made may not be known to the coordinator yet; later it is not there.
        is_missing = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._now_ms() >= self._appears_by_ms
        if error.retriable and not is_missing:
            return error
        error.retriable = False
        self._failed[one] = error
        del self._left[one]
        return None

    def require_all(self) -> None:
        if self._failed:
            raise CommitError(self._failed, self._done)


async def coordinators(
    cluster: Cluster, keys: Iterable[str], kind: int = GROUP, timeout_ms: float | None = None
) -> dict[str, int | ClientError]:
    """The coordinators of many keys, or why there is none: in one request where brokers know how."""
    wanted = sorted(set(keys))
    many, single = (MANY_KEYS_SINCE, VERSION_MAX), (0, MANY_KEYS_SINCE - 1)

    async def attempt(left_ms: float) -> dict[str, int | ClientError]:
        try:
            return await _lookup(cluster, wanted, kind, many, left_ms)
        except UnsupportedError:
            answers = [await _lookup(cluster, [key], kind, single, left_ms) for key in wanted]
            return {key: found for answer in answers for key, found in answer.items()}

    found = await cluster.retry.run(attempt, timeout_ms) if wanted else {}
    if any(node not in cluster.network.nodes for node in found.values() if isinstance(node, int)):
        await cluster.brokers(timeout_ms)
    return found


async def _lookup(
    cluster: Cluster, keys: list[str], kind: int, versions: tuple[int, int], timeout_ms: float
) -> dict[str, int | ClientError]:
    def request(version: int) -> FindCoordinatorRequest:
        if version >= MANY_KEYS_SINCE:
            return FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
        return FindCoordinatorRequest(key=keys[0], key_type=kind)

    response = await cluster.network.ask_any(
        request, api=FindCoordinatorRequest, versions=versions, timeout_ms=timeout_ms
    )
    if response.coordinators:
        return {each.key: _node_or_error(each.key, each.error_code, each.node_id) for each in response.coordinators}
    return {keys[0]: _node_or_error(keys[0], response.error_code, response.node_id)}


def _node_or_error(key: str, code: int, node: int) -> int | ClientError:
    return broker_error(code, f"the coordinator of {key!r} cannot be had") if code else node
