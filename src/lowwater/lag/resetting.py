"""Setting offsets of groups: what would change is planned and shown, then done, with the old offsets kept before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from lowwater.client.admin.group_members import GroupMember, describe_groups
from lowwater.client.admin.group_offsets import alter_group_offsets, delete_group_offsets
from lowwater.client.admin.groups import delete_groups
from lowwater.client.admin.offsets import HIGH_WATERMARK, Bounds, bounds
from lowwater.client.admin.outcomes import Outcomes
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Coordinator
from lowwater.client.errors import BrokerError, ClientError, GroupError
from lowwater.client.group_offsets import Committed
from lowwater.client.offsets import resolve
from lowwater.errors import ConfigError, ErrorCode
from lowwater.lag import journal
from lowwater.lag.changes import DONE, Change, nothing_done
from lowwater.lag.observation import visible
from lowwater.lag.owners import lineages_of
from lowwater.positions.grammar import PositionError, parse_starts
from lowwater.positions.names import check_names
from lowwater.positions.plan import UnresolvedError
from lowwater.positions.position import StartPositions
from lowwater.types import TopicPartition

_SHOWN_MAX = 5
_ID_CHARACTERS = 12
_STORED = re.compile(r"(?:stored|committed)([+-][0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Move:
    """None: no offset is committed. `note` says what else there is to know, such as that it was clamped."""

    partition: TopicPartition
    before: Committed | None
    after: Committed | None
    note: str = ""

    @property
    def is_change(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with one group. `refused` are partitions for which it cannot be done, and why."""

    group: str
    verb: str
    moves: tuple[Move, ...]
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    members: tuple[GroupMember, ...] = ()
    lineages: tuple[str, ...] = ()
    undoes: str | None = None
    is_whole_group: bool = False
    """The group itself is deleted."""

    @property
    def changes(self) -> list[Move]:
        return [move for move in self.moves if move.is_change]


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of a plan; `change` is what `undo` goes by, None when there was nothing to do or it was not kept."""

    change: Change | None
    done: tuple[TopicPartition, ...] = ()
    failed: Mapping[TopicPartition, ClientError] = field(default_factory=dict)


class ActiveGroupError(ClientError):
    """The group has members: they would not look, and commit over what is set."""

    def __init__(self, group: str, members: Sequence[GroupMember]) -> None:
        shown = [visible(f"{one.client_id} at {one.host} ({one.member_id})") for one in members[:_SHOWN_MAX]]
        more = f" and {len(members) - _SHOWN_MAX} more" if len(members) > _SHOWN_MAX else ""
        super().__init__(
            f"group {group!r} is active: {', '.join(shown)}{more}",
            advice="stop its members first, they would commit over what is set",
        )
        self.members = tuple(members)


class NothingToUndoError(ClientError):
    """No change is known, or not the one that was named."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions: topics, each with some partitions or (None) all; `is_all`: those that have offsets."""

    topics: tuple[tuple[str, tuple[int, ...] | None], ...] = ()
    is_all: bool = False

    def has(self, one: TopicPartition) -> bool:
        return self.is_all or any(
            one.topic == name and (some is None or one.partition in some) for name, some in self.topics
        )


ALL = Selection(is_all=True)
NONE = Selection()


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: a start position, so many offsets on or back from where the group is, or offsets one by one."""

    to: StartPositions | None = None
    shift: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None


def read_target(text: str, zone: tzinfo | None = None, zone_option: str = "") -> Target:
    """A start position, or `stored+5`. ConfigError shows which part is wrong, and what could stand there."""
    if found := _STORED.fullmatch(text.strip()):
        return Target(shift=int(found[1]))
    try:
        return Target(to=parse_starts(text, zone, zone_option))
    except PositionError as error:
        raise ConfigError(str(error)) from None


def check_target(target: Target, plans: Collection[Plan]) -> None:
    """ConfigError when it names a topic that none of the plans is about; one of many groups may not read it."""
    if target.to is not None:
        topics = {one.topic for plan in plans for one in (*(move.partition for move in plan.moves), *plan.refused)}
        check_names(target.to, topics, "the position")


async def plan_reset(
    cluster: Cluster, group: str, target: Target, selection: Selection = NONE, verb: str = "reset"
) -> Plan:
    """Old and new offsets, clamped to what is in the log. Nothing is changed yet.

    ConfigError when the target does not say where to go in some partition.
    """
    committed = await _committed(cluster, group)
    partitions = await _chosen(cluster, selection, committed, target)
    found = await bounds(cluster, partitions)
    refused = {one: str(error) for one, error in found.failed.items()}
    wanted, missing = await _wanted(cluster, group, target, [one for one in partitions if one in found], committed)
    moves = tuple(_move(one, committed.get(one), wanted[one], found[one]) for one in sorted(wanted))
    members = await members_of(cluster, group)
    return Plan(group, verb, moves, refused | missing, members, lineages_of(committed))


def _move(one: TopicPartition, before: Committed | None, wanted: int, within: Bounds) -> Move:
    offset = min(max(wanted, within.start), within.end)
    note = "" if offset == wanted else f"{wanted} is not within [{within.start}, {within.end}]"
    if before is not None and before.offset == offset:
        return Move(one, before, before, note)  # its note and epoch stay
    return Move(one, before, Committed(offset), note)


async def _chosen(
    cluster: Cluster, selection: Selection, committed: Mapping[TopicPartition, Committed], target: Target
) -> list[TopicPartition]:
    chosen = set(committed) if selection.is_all else set()
    if target.offsets is not None:
        chosen |= target.offsets.keys()
    known = await cluster.topics([name for name, _ in selection.topics]) if selection.topics else {}
    for name, wanted in selection.topics:
        chosen |= {TopicPartition(name, each) for each in (known[name].partitions if wanted is None else wanted)}
    return sorted(chosen)


async def _wanted(
    cluster: Cluster,
    group: str,
    target: Target,
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, Committed],
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """New offsets, and why some have none."""
    if target.offsets is not None:
        return {one: target.offsets[one] for one in partitions if one in target.offsets}, {}
    if target.shift is not None:
        shifted = {one: committed[one].offset + target.shift for one in partitions if one in committed}
        return shifted, {one: "there is no committed offset to shift" for one in partitions if one not in committed}
    assert target.to is not None
    wishes = {}
    for one in partitions:
        wish = target.to.of(one)
        if wish is None:
            raise ConfigError(f"{str(target.to)!r} does not say where to go in {one.topic!r}")
        wishes[one] = wish

    async def stored(wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {one: committed[one].offset if one in committed else None for one in wanted}

    now_ms = cluster.network.driver.now_ms()
    try:
        found = await resolve(cluster, wishes, now_ms=now_ms, isolation=HIGH_WATERMARK, committed=stored)
    except UnresolvedError as error:
        raise ConfigError(str(error)) from None
    return found.starts, {}


async def plan_delete(cluster: Cluster, group: str) -> Plan:
    """The group with all it has committed."""
    committed = await _committed(cluster, group)
    moves = tuple(Move(one, each, None) for one, each in sorted(committed.items()))
    members = await members_of(cluster, group, must_exist=not committed)
    return Plan(group, "delete", moves, {}, members, lineages_of(committed), is_whole_group=True)


async def plan_delete_offsets(cluster: Cluster, group: str, selection: Selection) -> Plan:
    """Some of what it has committed. The members of the group may go on with other topics."""
    committed = await _committed(cluster, group)
    moves = [Move(one, each, None) for one, each in sorted(committed.items()) if selection.has(one)]
    return Plan(group, "delete-offsets", tuple(moves), {}, (), lineages_of(committed))


async def plan_undo(cluster: Cluster, group: str, change_id: str | None = None) -> Plan:
    """Back to what was before the last change that was made, or before a named one, of which the beginning of its id is
    enough. An undo is a change, too, and can be undone."""
    change = _to_undo(group, await journal.changes(cluster, [group]), change_id)
    committed = await _committed(cluster, group)
    moves = tuple(Move(one, committed.get(one), before) for one, before in sorted(change.before.items()))
    members = await members_of(cluster, group)
    return Plan(group, "undo", moves, {}, members, lineages_of(committed), undoes=change.id)


def _to_undo(group: str, known: Sequence[Change], change_id: str | None) -> Change:
    """`known` has the newest first."""
    if change_id is None:
        found = [each for each in known if each.may_be_made][:1]
    else:
        exact = [each for each in known if each.id == change_id]
        found = exact or [each for each in known if each.id.startswith(change_id)]
    if not found:
        which = "nothing was changed that could be undone" if change_id is None else f"there is no change {change_id!r}"
        raise NothingToUndoError(f"group {group!r}: {which}", advice="`lowwater groups history` shows what there is")
    if len(found) > 1:
        names = ", ".join(each.id for each in found[:_SHOWN_MAX])
        more = f" and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
        raise ConfigError(f"group {group!r}: {change_id!r} could be any of the changes {names}{more}: say more of it")
    return found[0]


async def carry_out(cluster: Cluster, plan: Plan, *, who: str, is_kept: bool = True) -> Carried:
    """Do it. What is committed now is kept in the journal first; ActiveGroupError when the group has members."""
    if plan.members:
        raise ActiveGroupError(plan.group, plan.members)
    moves = plan.changes
    if not moves and not plan.is_whole_group:
        return Carried(None)
    change = await _kept(cluster, plan, moves, who) if is_kept and moves else None
    try:
        carried = await _done(cluster, plan, moves)
    except ClientError as error:
        if change is not None:
            await journal.finish(cluster, change, nothing_done(error) if _is_refusal(error) else str(error))
        if isinstance(error, GroupError) and (members := await members_of(cluster, plan.group)):
            raise ActiveGroupError(plan.group, members) from error
        raise
    if change is not None:
        await journal.finish(cluster, change, _outcome(carried))
    return Carried(change, carried.done, carried.failed)


async def _kept(cluster: Cluster, plan: Plan, moves: Sequence[Move], who: str) -> Change:
    now = await _committed(cluster, plan.group)  # it may have been planned a while ago
    driver = cluster.network.driver
    change = Change(
        driver.ids.uuid().hex()[:_ID_CHARACTERS],
        plan.group,
        driver.now_ms(),
        who,
        plan.verb,
        {move.partition: now.get(move.partition) for move in moves},
        {move.partition: move.after for move in moves},
        plan.undoes,
    )
    await journal.keep(cluster, change)
    return change


async def _done(cluster: Cluster, plan: Plan, moves: Sequence[Move]) -> Carried:
    if plan.is_whole_group:
        (await delete_groups(cluster, [plan.group])).checked()
        return Carried(None, tuple(move.partition for move in moves))
    commits = {move.partition: move.after for move in moves if move.after is not None}
    removals = [move.partition for move in moves if move.after is None]
    made = await alter_group_offsets(cluster, plan.group, commits) if commits else Outcomes({}, {})
    removed = await _removed(cluster, plan.group, removals, is_first=not commits)
    return Carried(None, tuple(sorted([*made, *removed])), {**made.failed, **removed.failed})


async def _removed(
    cluster: Cluster, group: str, removals: Sequence[TopicPartition], *, is_first: bool
) -> Outcomes[TopicPartition, None]:
    """What goes wrong after other offsets were set is told beside them."""
    try:
        return await delete_group_offsets(cluster, group, removals)
    except ClientError as error:
        if is_first:
            raise
        return Outcomes({}, dict.fromkeys(removals, error))


def _outcome(carried: Carried) -> str:
    if not carried.failed:
        return DONE
    first = next(iter(carried.failed.values()))
    told = f"{len(carried.failed)} of {len(carried.failed) + len(carried.done)} partitions failed: {first}"
    is_refused = not carried.done and all(map(_is_refusal, carried.failed.values()))
    return nothing_done(told) if is_refused else told


def _is_refusal(error: ClientError) -> bool:
    """Without an answer, or after several tries, nobody knows what was done."""
    return isinstance(error, BrokerError) and error.tries == 1


async def members_of(cluster: Cluster, group: str, *, must_exist: bool = False) -> tuple[GroupMember, ...]:
    """None in a group that is not there, unless it must be."""
    try:
        return (await describe_groups(cluster, [group])).checked()[group].members
    except BrokerError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND or must_exist:
            raise
        return ()


async def _committed(cluster: Cluster, group: str) -> dict[TopicPartition, Committed]:
    return await Coordinator(cluster, group).committed_in_full(require_stable=False)
