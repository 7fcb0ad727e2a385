"""Drives a shard of groups: what befalls many groups at once, and transactions that end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lowwater.broker.coordinator_shard import ShardDriver, State
from lowwater.groups.shard import GroupShard
from lowwater.outcome import Now, Outcome

OFFSETS_PER_TURN = 5000  # and groups


class GroupDriver(ShardDriver[GroupShard]):
    """One partition of `__consumer_offsets`."""

    @property
    def groups(self) -> dict[str, Any]:
        return self._shard.groups

    def _contents(self) -> str:
        return f"{len(self.groups)} groups"

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
