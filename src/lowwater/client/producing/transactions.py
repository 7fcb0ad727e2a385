"""The transactions of a producer: which state they are in, what belongs to them, and how they are begun and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from enum import Enum
from typing import Any, NoReturn

from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import GROUP, TRANSACTION, NodeOf
from lowwater.client.coordinator import NOBODY as NO_MEMBER
from lowwater.client.coordinator import Identity as MemberIdentity
from lowwater.client.driver import sleep
from lowwater.client.errors import (
    AbortableError,
    BrokerError,
    ClientError,
    TransactionError,
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
)
from lowwater.client.producing.identity import NOBODY, Identity, identity_in
from lowwater.client.producing.rules import Rules
from lowwater.client.producing.transaction_requests import (
    Offset,
    add_offsets,
    add_partitions,
    added_codes,
    commit_codes,
    commit_offsets,
)
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import InitProducerIdRequest


class State(Enum):
    UNREADY = "transactions are not initialised"
    READY = "no transaction is open"
    OPEN = "a transaction is open"
    COMMITTING = "a transaction is being committed"
    ABORTING = "a transaction is being aborted"
    BROKEN = "something failed in the transaction: it can only be aborted"
    PREPARED = "the transaction is left to be ended elsewhere"
    DEAD = "this producer cannot go on: another has taken over, or it is not allowed"


# What may be asked for in which state. COMMITTING and ABORTING stay when nobody answers in time: then ask again.
FROM: dict[str, tuple[State, ...]] = {
    "init_transactions": (State.UNREADY,),
    "begin_transaction": (State.READY,),
    "send": (State.OPEN,),
    "send_offsets_to_transaction": (State.OPEN,),
    "commit_transaction": (State.OPEN, State.COMMITTING),
    "abort_transaction": (State.OPEN, State.BROKEN, State.ABORTING),
    "prepare_transaction": (State.OPEN,),
}
# Produce adds partitions to the transaction by itself where each transaction has an epoch, from this version on.
PRODUCE_VERSIONS = {False: (3, 11), True: (12, 13)}
_FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class Transactions:
    """A Standing. `on_change` says that more may be sent, or why what waits cannot be."""

    def __init__(self, cluster: Cluster, rules: Rules, on_change: Callable[[ClientError | None], None]) -> None:
        assert rules.transactional_id is not None, "a producer without a transactional id has no transactions"
        self.id = rules.transactional_id
        self.state = State.UNREADY
        self._cluster = cluster
        self._rules = rules
        self._on_change = on_change
        self._coordinator = NodeOf(cluster, self.id, TRANSACTION)
        self._identity = NOBODY
        self._has_epochs = False
        self._error: ClientError | None = None
        self._is_begun = False  # whether the coordinator knows of the transaction, or may
        self._has_gaps = False  # whether sequences were used that may not be written
        self._added: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._adding: Flow[None] | None = None

    # ---- as a Standing

    def current(self) -> Identity | None:
        return self._identity if self.state is State.OPEN else None

    def begin_anew(self, known: Identity) -> bool:
        """Not in the middle of a transaction: some of its rows may be lost."""
        return False

    def admits(self, partition: TopicPartition) -> bool:
        if self._has_epochs:
            self._is_begun = True
            return True
        if partition in self._added:
            return True
        self._wanted.add(partition)
        if self._adding is None or self._adding.done:
            self._adding = Flow(self._add_wanted())
        return partition in self._added

    def failed(self, error: ClientError) -> None:
        if self.state is not State.OPEN:
            return
        self.leave_gaps()
        self.state, self._error = (State.DEAD if _is_fatal(error) else State.BROKEN), error
        self._on_change(self._broken())

    def leave_gaps(self) -> None:
        """Rows that have a sequence may not be written: sequences have to begin anew after the abort."""
        self._has_gaps = True

    @property
    def produce_versions(self) -> tuple[int, int]:
        return PRODUCE_VERSIONS[self._has_epochs]

    # ---- what is allowed

    def require(self, what: str) -> None:
        """TransactionError when the state does not allow this."""
        if self.state in FROM[what]:
            return
        if self._error is not None and self.state in (State.BROKEN, State.DEAD):
            raise self._broken()
        raise TransactionError(f"{what} is not possible now: {self.state.value}")

    def _broken(self) -> ClientError:
        """What whoever goes on is told: a producer that is dead always the same."""
        assert self._error is not None
        if self.state is State.DEAD:
            error = copy(self._error)
            error.__cause__ = self._error.__cause__
            error.advice = "make another producer"
            return error
        abortable = AbortableError(
            f"{State.BROKEN.value}: {self._error.what}",
            topic=self._error.topic,
            partition=self._error.partition,
            advice="abort_transaction",
        )
        abortable.__cause__ = self._error
        return abortable

    # ---- the life of a transaction

    async def init(self, timeout_ms: float | None = None) -> Identity:
        """End what an earlier producer of this id left open, and take its place."""
        self.require("init_transactions")
        await self._identify(timeout_ms)
        await self._look_up_level(timeout_ms)
        self.state = State.READY
        return self._identity

    async def _look_up_level(self, timeout_ms: float | None) -> None:
        node = await self._coordinator.node(timeout_ms)
        self._has_epochs = await has_epoch_per_transaction(self._cluster, node)

    def begin(self) -> None:
        self.require("begin_transaction")
        self.state, self._is_begun, self._error = State.OPEN, False, None
        self._added.clear()
        self._wanted.clear()

    async def commit(self, timeout_ms: float | None = None) -> None:
        """Everything sent is settled before this."""
        self.require("commit_transaction")
        self.state = State.COMMITTING
        await self._end(commit=True, timeout_ms=timeout_ms)

    async def abort(self, timeout_ms: float | None = None) -> None:
        """Nothing waits nor is in flight any more before this."""
        self.require("abort_transaction")
        self.state = State.ABORTING
        if self._adding is not None:
            self._adding.cancel()
        await self._end(commit=False, timeout_ms=timeout_ms)

    def prepare(self) -> Prepared:
        """Leave it open, to be ended by whoever has this."""
        self.require("prepare_transaction")
        self.state = State.PREPARED
        return self._prepared()

    def _prepared(self) -> Prepared:
        return Prepared(self.id, *self._identity)

    async def _end(self, *, commit: bool, timeout_ms: float | None) -> None:
        try:
            if self._is_begun:
                self._identity = await self._ended(commit, timeout_ms)
            if self._has_gaps and not self._has_epochs:
                await self._identify(timeout_ms)
            self._has_gaps = False
        except ClientError as error:
            self._take_failed_end(error)
        self.state = State.READY

    async def _ended(self, commit: bool, timeout_ms: float | None) -> Identity:
        try:
            return await self._end_at(commit, timeout_ms)
        except BrokerError as error:
            if error.code != ErrorCode.UNSUPPORTED_VERSION or not self._has_epochs:
                raise
            # transaction.version may have been lowered since we looked: then all goes on as it was before.
            await self._look_up_level(timeout_ms)
            if self._has_epochs:
                raise
        return await self._end_at(commit, timeout_ms)

    async def _end_at(self, commit: bool, timeout_ms: float | None) -> Identity:
        return await end_at(
            self._coordinator,
            self._prepared(),
            commit=commit,
            epoch_per_transaction=self._has_epochs,
            timeout_ms=timeout_ms,
        )

    def _take_failed_end(self, error: ClientError) -> NoReturn:
        if error.retriable:
            raise error  # nobody knows: the same end has to be asked for again
        if getattr(error, "code", None) == ErrorCode.TRANSACTION_ABORTABLE and self.state is State.COMMITTING:
            self.state, self._error = State.BROKEN, error
        else:
            self.state, self._error = State.DEAD, error
        raise self._broken()

    async def _identify(self, timeout_ms: float | None) -> None:
        known = self._identity

        def request(version: int) -> InitProducerIdRequest:
            # Before v3 it is not told who we were; the epoch moves on all the same.
            was = known if version >= 3 else NOBODY
            return InitProducerIdRequest(
                transactional_id=self.id,
                transaction_timeout_ms=self._rules.transaction_ms,
                producer_id=was.producer_id,
                producer_epoch=was.epoch,
            )

        async def attempt(left_ms: float) -> Identity:
            limit_ms = self._coordinator.limit_ms(left_ms)
            return identity_in(
                await self._coordinator.ask(request, api=InitProducerIdRequest, timeout_ms=limit_ms, lane=COORDINATING)
            )

        self._identity = await self._cluster.retry.run(attempt, timeout_ms)

    # ---- what belongs to it

    async def _add_wanted(self) -> None:
        """Older coordinators are told of a partition before anything is written to it."""
        while self._wanted:
            wanted = sorted(self._wanted)
            self._is_begun = True
            try:
                await self._cluster.retry.run(lambda left_ms: self._add(wanted, left_ms))  # noqa: B023
            except ClientError as error:
                self._wanted.clear()
                self.failed(error)
                return
            self._added.update(wanted)
            self._wanted.difference_update(wanted)
            self._on_change(None)

    async def _add(self, partitions: list[TopicPartition], left_ms: float) -> None:
        for _ in range(ENDING_TRIES):
            response = await self._coordinator.ask(
                add_partitions(self._prepared(), partitions),
                versions=(0, 3),
                timeout_ms=self._coordinator.limit_ms(left_ms),
                lane=COORDINATING,
                code=lambda answer: next(iter(added_codes(answer).values()), 0),
            )
            codes = added_codes(response)
            if ErrorCode.CONCURRENT_TRANSACTIONS not in codes.values():
                break
            await sleep(self._cluster.network.driver, ENDING_MS)
        _raise_worst(codes)

    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, Offset],
        group: str,
        by: MemberIdentity = NO_MEMBER,
        timeout_ms: float | None = None,
    ) -> None:
        """The group's offsets are committed with the transaction, or not at all."""
        self.require("send_offsets_to_transaction")
        coordinator = NodeOf(self._cluster, group, GROUP)
        try:
            if not self._has_epochs:
                await self._cluster.retry.run(lambda left_ms: self._add_group(group, left_ms), timeout_ms)
            await self._cluster.retry.run(
                lambda left_ms: self._commit_offsets(coordinator, offsets, by, left_ms), timeout_ms
            )
        except ClientError as error:
            self.failed(error)
            raise

    async def _add_group(self, group: str, left_ms: float) -> None:
        self._is_begun = True
        response = await self._coordinator.ask(
            add_offsets(self._prepared(), group), timeout_ms=self._coordinator.limit_ms(left_ms), lane=COORDINATING
        )
        if response.error_code:
            raise broker_error(response.error_code, f"group {group!r} cannot be part of the transaction")

    async def _commit_offsets(
        self, coordinator: NodeOf, offsets: Mapping[TopicPartition, Offset], by: MemberIdentity, left_ms: float
    ) -> None:
        self._is_begun = True
        response: Any = await coordinator.ask(
            commit_offsets(self._prepared(), coordinator.key, by, offsets),
            versions=(0, 5) if self._has_epochs else (0, 4),
            timeout_ms=coordinator.limit_ms(left_ms),
            lane=COORDINATING,
            code=lambda answer: next(iter(commit_codes(answer).values()), 0),
        )
        _raise_worst(commit_codes(response))


def _raise_worst(codes: Mapping[TopicPartition, int]) -> None:
    """One that will not pass, if there is one: trying again would be in vain."""
    errors = [
        broker_error(code, topic=one.topic, partition=one.partition)
        for one, code in codes.items()
        if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED
    ]
    if errors:
        raise min(errors, key=lambda error: error.retriable)


def _is_fatal(error: ClientError) -> bool:
    return getattr(error, "code", None) in _FATAL
