"""Drives a shard of groups: what befalls many groups at once, and transactions that committed offsets and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

from lowwater.broker.coordinator_rounds import Ticket
from lowwater.broker.coordinator_shard import ShardDriver, State
from lowwater.broker.partition import Partition
from lowwater.broker.topic import OFFSETS_TOPIC
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.groups.shard import GroupShard
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.pending import Pending

OFFSETS_PER_TURN = 5000  # and groups

WriteMarker: TypeAlias = Callable[[Partition], int]
"""Returns the log end behind it."""


class GroupDriver(ShardDriver[GroupShard]):
    """One partition of `__consumer_offsets`."""

    @property
    def groups(self) -> dict[str, Any]:
        return self._shard.groups

    def _contents(self) -> str:
        return f"{len(self.groups)} groups"

    # -- transactions

    def _replaying(self, producer: tuple[int, int] | None) -> Callable[[StateRecord], None]:
        return self._shard.replay if producer is None else partial(self._shard.replay, producer=producer)

    def replay_end(self, producer: tuple[int, int], commit: bool) -> None:
        self._shard.end_transaction(producer[0], commit)

    def end_transaction(self, producer_id: int, commit: bool, write_marker: WriteMarker) -> Pending[None]:
        """Write the end of a transaction behind what was decided before; settled when it is durable.

        ApiError when the marker is refused, or groups cannot be written.
        """
        self.check_active()
        self._write()
        self.check_active()
        partition = self._coordinator.partition(self._index)
        if partition is None:
            # The first offsets may be waiting for their topic: the end must not overtake them.
            waits = bool(self._rounds.pending)
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE if waits else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise ApiError(code, f"there is no {OFFSETS_TOPIC}")
        try:
            end = write_marker(partition)
            self._shard.end_transaction(producer_id, commit)
        except StorageError as error:
            self._go_down(error)
            self.check_active()
        ticket, written = Ticket(), self._rounds.changed(None)
        self._rounds.open = None
        self._take_replies([(ticket, None)], written)
        self._await_flush(written, partition.log, end)
        return ticket

    def topic_deleted(self, name: str) -> None:
        """Also while loading nothing is missed: what is loaded is compared with the topics of that moment."""
        if self._state is State.ACTIVE:
            shard = self._shard
            group_ids = shard.offsets.groups_of(name)
            self._in_portions(shard, iter(group_ids), lambda _, some: shard.topic_deleted(name, some))

    def expire_offsets(self) -> None:
        if self._state is State.ACTIVE:
            self._in_portions(self._shard, iter(list(self.groups)), self._shard.expire_offsets)

    def _in_portions(
        self, shard: GroupShard, group_ids: Iterator[str], decide: Callable[[Now, list[str]], Outcome]
    ) -> None:
        """Some groups now and the others in later turns: together they may have a million offsets."""
        if self._stopped or self._shard is not shard or self._state is not State.ACTIVE:
            return
        some, size = [], 0
        for group_id in group_ids:
            some.append(group_id)
            size += 1 + shard.offsets.count(group_id)
            if size >= OFFSETS_PER_TURN:
                break
        if some:
            self._run(lambda now: decide(now, some))
            self._broker.scheduler.call_soon(lambda: self._in_portions(shard, group_ids, decide))
