"""Brings a member of a consumer group from what it has to what it shall have.

A partition is given to a member only when nobody else has it, and it counts as had until the member that has it was
told to give it up and reports that it did. So no partition ever has two owners.

    state                 | the member …                                   | leaves the state when
    STABLE                | has what its epoch's target says               | the group has a newer target
    UNREVOKED_PARTITIONS  | was told to give partitions up, keeps its epoch | it reports not to own them any more
    UNRELEASED_PARTITIONS | has the target's epoch, waits for partitions   | their old owners gave them up
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

Partitions: TypeAlias = Mapping[bytes, frozenset[int]]
"""Topic id → partitions."""

Held: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Topic id → partition → the epoch at which the member was given it."""


class MemberState(IntEnum):
    """Numbers as they are stored."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """What a member has: partitions it may read, and partitions it was told to give up but may still read."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    revoking: Held = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    @property
    def held(self) -> Held:
        """All that it may read at the moment."""
        topics = {**self.assigned, **self.revoking}
        return {one: {**self.assigned.get(one, {}), **self.revoking.get(one, {})} for one in topics}

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which the member was given the partition; None when it does not have it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch


@dataclass(frozen=True, slots=True)
class Goal:
    """What the member shall have. Of topics that it does not subscribe to it is given nothing."""

    epoch: int
    target: Partitions
    subscribed: Container[bytes]


Taken: TypeAlias = Callable[[bytes, int], bool]
"""Whether another member has a partition."""


def reconcile(
    current: CurrentAssignment,
    goal: Goal,
    owned: Partitions | None,
    taken: Taken,
    *,
    subscription_changed: bool = False,
) -> CurrentAssignment:
    """The next step of a member. `owned` is what it reports to own, None when it reports nothing."""
    if current.is_reconciled_to(goal.epoch):
        return _without_unsubscribed(current, goal, owned) if subscription_changed else current
    if current.state is MemberState.UNREVOKED_PARTITIONS and _owns_some(owned, current.revoking):
        return _without_unsubscribed(current, goal, owned) if subscription_changed else current
    return _towards(current, goal, owned, taken)


def _towards(current: CurrentAssignment, goal: Goal, owned: Partitions | None, taken: Taken) -> CurrentAssignment:
    kept: dict[bytes, Mapping[int, int]] = {}
    revoking: dict[bytes, Mapping[int, int]] = {}
    for topic_id, held in current.assigned.items():
        wanted = goal.target.get(topic_id) if topic_id in goal.subscribed else None
        _split(topic_id, held, wanted or frozenset(), kept, revoking)
    if revoking and _owns_some(owned, revoking):
        return _told_to_revoke(current, kept, revoking)
    waits = _give(kept, goal, taken)
    return CurrentAssignment(
        epoch=goal.epoch,
        previous_epoch=current.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        assigned=kept,
    )


def _split(
    topic_id: bytes,
    held: Mapping[int, int],
    wanted: frozenset[int],
    kept: dict[bytes, Mapping[int, int]],
    revoking: dict[bytes, Mapping[int, int]],
) -> None:
    if held.keys() <= wanted:
        kept[topic_id] = held
        return
    stays = {partition: epoch for partition, epoch in held.items() if partition in wanted}
    if stays:
        kept[topic_id] = stays
    revoking[topic_id] = {partition: epoch for partition, epoch in held.items() if partition not in wanted}


def _give(kept: dict[bytes, Mapping[int, int]], goal: Goal, taken: Taken) -> bool:
    """Add to `kept` what the target has and nobody else; true when something of the target is still taken."""
    waits = False
    for topic_id, wanted in goal.target.items():
        if topic_id not in goal.subscribed:
            continue
        missing = wanted - kept.get(topic_id, {}).keys()
        given = [partition for partition in missing if not taken(topic_id, partition)]
        waits = waits or len(given) < len(missing)
        if given:
            kept[topic_id] = {**kept.get(topic_id, {}), **dict.fromkeys(sorted(given), goal.epoch)}
    return waits


def _without_unsubscribed(current: CurrentAssignment, goal: Goal, owned: Partitions | None) -> CurrentAssignment:
    """Take topics back at once that the member no longer subscribes to; a new target comes later."""
    dropped = {topic_id: held for topic_id, held in current.assigned.items() if topic_id not in goal.subscribed}
    if not dropped:
        return current
    kept = {topic_id: held for topic_id, held in current.assigned.items() if topic_id not in dropped}
    revoking = {**current.revoking, **{t: {**current.revoking.get(t, {}), **held} for t, held in dropped.items()}}
    if _owns_some(owned, revoking):
        return _told_to_revoke(current, kept, revoking)
    return replace(current, previous_epoch=current.epoch, assigned=kept)


def _told_to_revoke(current: CurrentAssignment, kept: Held, revoking: Held) -> CurrentAssignment:
    """The epoch stays: only a member that gave everything up goes on to the next one."""
    return CurrentAssignment(
        epoch=current.epoch,
        previous_epoch=current.epoch,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=kept,
        revoking=revoking,
    )


def _owns_some(owned: Partitions | None, held: Held) -> bool:
    """A member that does not say what it owns is taken to own it still."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(held.get(topic_id, ())) for topic_id, partitions in owned.items())
