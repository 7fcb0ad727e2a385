"""From what was observed to a report: lag, time lag, status and what to do. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lowwater.client.admin.group_members import GroupMember
from lowwater.client.group_offsets import Committed
from lowwater.client.stamps import Place, Stamp
from lowwater.client.topic_ids import is_another
from lowwater.lag import advice
from lowwater.lag.advice import NOTHING, Recommendation
from lowwater.lag.history import History
from lowwater.lag.observation import GroupSeen, Observation, Standing, visible
from lowwater.lag.owners import lineages_of
from lowwater.lag.report import GroupLag, PartitionLag, Problem, Report
from lowwater.lag.rules import Status, catch_up_ms, rate_in, rate_out, status_of, worst
from lowwater.types import TopicPartition

_NOBODY_KNOWS = Standing(fault="nobody looked")
_AHEAD_MAX_MS = 60_000  # clocks that are further ahead tell nothing


class _Behind(NamedTuple):
    """How far a group is behind in a partition."""

    lag: int | None = None
    time_lag_ms: int | None = None
    problem: Problem | None = None
    detail: str | None = None
    lost: int = 0
    arrived_ms: int | None = None
    """When the record came that is read next."""


def judge(observation: Observation, history: History, *, allowed: int = 0) -> Report:
    """`history` has taken the observation, or earlier ones. A lag of up to `allowed` is well, whatever its course."""
    groups = {
        name: _Judging(observation, history, group, allowed).group()
        for name, group in sorted(observation.groups.items())
    }
    return Report(observation.at_ms, groups, observation.faults)


class _Judging:
    """One group."""

    def __init__(self, observation: Observation, history: History, group: GroupSeen, allowed: int) -> None:
        self._now_ms = observation.at_ms
        self._told_ms = min(observation.at_ms, history.told_ms)
        self._observation = observation
        self._history = history
        self._group = group
        self._allowed = allowed
        self._lineages = lineages_of(group.committed)
        self._reader = {one: member for member in group.members for one in member.partitions or ()}

    def group(self) -> GroupLag:
        seen = self._group
        partitions = tuple(self._partition(one) for one in seen.partitions)
        counted = [one for one in partitions if one.problem is not Problem.TOPIC_GONE]
        known = [one.lag for one in counted if one.lag is not None]
        status = Status.UNKNOWN if seen.fault is not None else worst(one.status for one in counted)
        return GroupLag(
            seen.group,
            seen.state,
            seen.kind,
            status,
            sum(known) if known or not (counted or seen.fault) else None,
            max((one.time_lag_ms for one in counted if one.time_lag_ms is not None), default=None),
            partitions,
            _sum(one.rate_in for one in counted),
            _sum(one.rate_out for one in counted),
            _longest(one.catch_up_ms for one in counted),
            None if seen.state is None else len(seen.members),
            len(counted) - len(known),
            self._lineages,
            recommend(seen, counted, status),
            seen.fault,
        )

    def _partition(self, one: TopicPartition) -> PartitionLag:
        standing = self._observation.partitions.get(one, _NOBODY_KNOWS)
        committed = self._group.committed.get(one)
        found = self._behind(one, committed, standing)
        commits = self._history.commits(self._group.group, one)
        into, out_of = rate_in(self._history.samples(one)), rate_out(commits, self._told_ms)
        status = status_of(
            commits,
            found.lag,
            self._told_ms,
            allowed=self._allowed,
            is_read=self._is_read,
            arrived_ms=found.arrived_ms,
        )
        member = self._reader.get(one)
        return PartitionLag(
            one.topic,
            one.partition,
            None if committed is None else committed.offset,
            standing.end,
            found.lag,
            found.time_lag_ms,
            status,
            standing.start,
            into,
            out_of,
            catch_up_ms(found.lag, into, out_of),
            commits[-1].at_ms if commits else None,
            None if member is None else member.member_id,
            None if member is None else member.client_id,
            None if member is None else member.host,
            found.problem,
            found.detail,
            found.lost,
        )

    @property
    def _is_read(self) -> bool:
        """Spark jobs commit to groups without being members of them."""
        return self._group.state is None or bool(self._group.members) or bool(self._lineages)

    def _behind(self, one: TopicPartition, committed: Committed | None, standing: Standing) -> _Behind:
        """How far, and what is the matter with that."""
        if standing.is_gone:
            return _Behind(problem=Problem.TOPIC_GONE, detail="the topic is not there any more")
        if standing.start is None or standing.end is None:
            return _Behind(problem=Problem.UNREACHABLE, detail=standing.fault)
        if committed is None:
            return _never_committed(standing.start, standing.end)
        if self._is_recreated(one, committed, standing):
            detail = f"the topic was deleted and made anew: offset {committed.offset} is one of the old topic"
            return _Behind(problem=Problem.RECREATED, detail=detail)
        if committed.offset > standing.end:
            detail = f"the partition ends at {standing.end}: it was truncated, or the topic was made anew"
            return _Behind(problem=Problem.BEYOND_END, detail=detail)
        return self._measured(one, committed.offset, standing.start, standing.end)

    def _is_recreated(self, one: TopicPartition, committed: Committed, standing: Standing) -> bool:
        if is_another(self._history.topic_id(self._group.group, one), standing.topic_id):
            return True
        return committed.leader_epoch > standing.epoch >= 0  # epochs of a partition only grow

    def _measured(self, one: TopicPartition, offset: int, start: int, end: int) -> _Behind:
        lost, reads_next = max(start - offset, 0), max(offset, start)
        place, known = Place(one, reads_next), self._observation.next_records
        stamp = known.get(place)
        # Behind it there may be only markers of transactions, and what was aborted or compacted away.
        is_all_read = reads_next >= end or (stamp is None and place in known)
        lag = 0 if is_all_read else end - reads_next
        time_lag_ms = 0 if is_all_read else self._age_ms(stamp)
        if lost:
            records = "1 record was" if lost == 1 else f"{lost} records were"
            detail = f"{records} deleted before the group read them: the log begins at {start}"
            return _Behind(lag, time_lag_ms, Problem.AGED_OUT, detail, lost)
        arrived_ms = self._arrived_ms(one, offset, stamp) if lag else None
        if stamp is not None and stamp.is_open:
            detail = "the next record belongs to a transaction that is still open"
            return _Behind(lag, time_lag_ms, Problem.OPEN_TRANSACTION, detail, arrived_ms=arrived_ms)
        return _Behind(lag, time_lag_ms, arrived_ms=arrived_ms)

    def _arrived_ms(self, one: TopicPartition, offset: int, stamp: Stamp | None) -> int | None:
        """By its timestamp, where that is one, and not before a look that did not find it, nor after one that did."""
        samples = self._history.samples(one)
        where = offset if stamp is None else stamp.offset  # behind markers of transactions, for instance
        seen = bisect_right(samples, where, key=lambda sample: sample.end)
        missed_ms = samples[seen - 1].at_ms if seen else None
        if stamp is None or not 0 <= stamp.timestamp_ms <= self._now_ms + _AHEAD_MAX_MS:
            return missed_ms
        found_ms = samples[seen].at_ms if seen < len(samples) else self._now_ms
        told_ms = min(stamp.timestamp_ms, found_ms)
        return told_ms if missed_ms is None else max(told_ms, missed_ms)

    def _age_ms(self, stamp: Stamp | None) -> int | None:
        if stamp is None or stamp.timestamp_ms < 0:
            return None
        return max(self._now_ms - stamp.timestamp_ms, 0)


def _never_committed(start: int, end: int) -> _Behind:
    """Where nothing was ever written nothing is left."""
    nothing = 0 if start == end else None
    return _Behind(nothing, nothing, Problem.NEVER_COMMITTED, "the group has never committed an offset here")


def _sum(rates: Iterable[float | None]) -> float | None:
    """None unless all are known."""
    known = list(rates)
    return sum(one for one in known if one is not None) if known and None not in known else None


def _longest(times_ms: Iterable[int | None]) -> int | None:
    """None unless all are known: whoever never catches up is not the first to do so."""
    known = list(times_ms)
    return max((one for one in known if one is not None), default=None) if None not in known else None


def recommend(group: GroupSeen, partitions: Sequence[PartitionLag], status: Status) -> Recommendation:
    """What to do first."""
    lost = next((one for one in partitions if one.problem in _NO_PLACE), None)
    if lost is not None:
        return advice.reset(f"reset {lost.where}: {lost.detail}")
    if status is Status.OK:
        return NOTHING
    if status is Status.UNKNOWN:
        return advice.nothing(_unknown(group, partitions))
    if group.state in advice.REBALANCING:
        return advice.rebalancing(group.state)
    worst_one = next(one for one in partitions if one.status is status)
    return _by_status(group, partitions, worst_one)


_NO_PLACE = (Problem.RECREATED, Problem.BEYOND_END, Problem.AGED_OUT)


def _by_status(group: GroupSeen, partitions: Sequence[PartitionLag], one: PartitionLag) -> Recommendation:
    if one.problem is Problem.OPEN_TRANSACTION and one.status is not Status.WARN:
        return advice.nothing(f"{one.where} waits: {one.detail}, and readers of committed records stop before it")
    if one.status is Status.REWIND:
        return advice.nothing(f"{one.where} was set back and is read again; `lowwater groups undo` takes a reset back")
    if one.status is Status.STALL:
        assert one.committed is not None
        return advice.stuck(str(one.where), one.committed)
    if one.status is Status.STOP:
        if lineages := lineages_of(group.committed):
            return advice.nothing(
                f"the Spark job with lineage {lineages[0]} has stopped committing: see whether it runs"
            )
        if one.client_id is None:
            return advice.nobody_reads(sum(each.lag or 0 for each in partitions))
        return advice.silent(str(one.where), f"{visible(one.client_id)} at {visible(one.host or '')}")
    behind = [each for each in partitions if each.status is Status.WARN]
    return advice.falling_behind(
        max(_readers(group.members), 1),
        len(partitions),
        _sum(each.rate_in for each in behind),
        _sum(each.rate_out for each in behind),
    )


def _readers(members: Sequence[GroupMember]) -> int:
    return sum(1 for member in members if member.partitions)


def _unknown(group: GroupSeen, partitions: Sequence[PartitionLag]) -> str:
    if group.fault is not None:
        return "not known: the group's coordinator does not answer"
    unknown = next((one for one in partitions if one.status is Status.UNKNOWN), None)
    if unknown is None or unknown.lag is not None:
        return "not known yet: too few commits were seen; watch it for longer"
    return f"not known: {unknown.where}: {unknown.detail}"
