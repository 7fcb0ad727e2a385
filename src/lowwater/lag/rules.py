"""How a group does in a partition, by its last commits. Pure.

A commit is late when records were left that it did not cover, as far as that is known. The first rule that applies
decides:

    nothing is known of its lag            unknown
    lag is within what is allowed          OK
    fewer than two commits are known       OK when the next record has just come; STOP when nobody reads and it was
                                           long ago; else unknown
    no commit for longer than they span,
      counted from when the next record
      was there                            STOP
    the next record came after the last
      commit                               OK
    an offset is smaller than that before  REWIND
    late commits are all of one offset     OK when the next record has just come; STALL when it goes on for a while
    lag at some commit is smaller than
      that at the one before               OK
    late commits for a while               WARN; unknown when the lag at them is not known
    some commit was not late               OK
    else                                   unknown
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise

from lowwater.lag.history import COMMITS_KEPT, Commit, Sample

QUIET_MS = 600_000
"""So long after its only known commit a group without members counts as stopped."""
WHILE_MS = 10_000
"""Shorter silences, and shorter troubles, say nothing: clients commit every 5 s when nobody tells them otherwise."""
_GAPS_MIN = 3  # of which a silence has to be longer, however few commits are known
_STEADY = 2
_LOOK_MIN_MS = 500  # what happens in less says nothing of a rate


class Status(Enum):
    """From good to bad. A group is as bad as its worst partition; what is not known is worse than what is well."""

    OK = "OK"
    UNKNOWN = None
    WARN = "WARN"
    REWIND = "REWIND"
    STALL = "STALL"
    STOP = "STOP"

    @property
    def is_trouble(self) -> bool:
        return self not in (Status.OK, Status.UNKNOWN)


_ORDER = list(Status)


def worst(statuses: Iterable[Status]) -> Status:
    """OK when there are none."""
    return max(statuses, key=_ORDER.index, default=Status.OK)


def status_of(
    commits: Sequence[Commit],
    lag: int | None,
    now_ms: int,
    *,
    allowed: int = 0,
    is_read: bool = True,
    arrived_ms: int | None = None,
) -> Status:
    """`commits` are the last ones, the oldest first. `is_read`: the group has members, or may have. `arrived_ms`: when
    the record came that the group reads next, None when that is not known."""
    if lag is None:
        return Status.UNKNOWN
    if lag <= allowed:
        return Status.OK
    if not commits:
        return Status.UNKNOWN
    last = commits[-1]
    was_at_end = arrived_ms is not None and arrived_ms > last.at_ms
    silence_ms = now_ms - (arrived_ms if arrived_ms is not None and was_at_end else last.at_ms)
    if len(commits) < _STEADY:
        return _by_one(silence_ms, was_at_end, is_read)
    if silence_ms > _patience_ms(commits):
        return Status.STOP
    if was_at_end:
        return Status.OK
    if any(after.offset < before.offset for before, after in pairwise(commits)):
        return Status.REWIND
    late = [commit for commit in commits if not _covers_all(commit, last.offset, allowed, arrived_ms)]
    if late and late[0].offset == late[-1].offset:
        if arrived_ms is not None and now_ms - arrived_ms < WHILE_MS:
            return Status.OK
        if _is_a_while(late):
            return Status.STALL
    return _trend(commits, late)


def _by_one(silence_ms: int, was_at_end: bool, is_read: bool) -> Status:
    if silence_ms > QUIET_MS and not is_read:
        return Status.STOP
    return Status.OK if was_at_end and silence_ms <= WHILE_MS else Status.UNKNOWN


def _patience_ms(commits: Sequence[Commit]) -> float:
    span_ms = commits[-1].at_ms - commits[0].at_ms
    return max(span_ms, _GAPS_MIN * span_ms / (len(commits) - 1), WHILE_MS)


def _covers_all(commit: Commit, offset: int, allowed: int, arrived_ms: int | None) -> bool:
    """Nothing, or what is allowed, was left at this commit. `offset` is where the next record stands."""
    if commit.lag is not None and commit.lag <= allowed:
        return True
    return arrived_ms is not None and commit.offset == offset and commit.at_ms < arrived_ms


def _is_a_while(late: Sequence[Commit]) -> bool:
    """Whoever commits often has a window that is short, but full."""
    return len(late) >= COMMITS_KEPT or (len(late) >= _STEADY and late[-1].at_ms - late[0].at_ms >= WHILE_MS)


def _trend(commits: Sequence[Commit], late: Sequence[Commit]) -> Status:
    lags = [commit.lag for commit in commits if commit.lag is not None]
    if any(after < before for before, after in pairwise(lags)):
        return Status.OK
    if _is_a_while(late):
        return Status.WARN if _is_a_while([commit for commit in late if commit.lag is not None]) else Status.UNKNOWN
    return Status.OK if len(late) < len(commits) else Status.UNKNOWN


def rate_in(samples: Sequence[Sample]) -> float | None:
    """Offsets per second at which a partition grows; None before there were two looks at it, some time apart."""
    if len(samples) < _STEADY or samples[-1].at_ms - samples[0].at_ms < _LOOK_MIN_MS:
        return None
    return (samples[-1].end - samples[0].end) * 1000 / (samples[-1].at_ms - samples[0].at_ms)


def rate_out(commits: Sequence[Commit], now_ms: int) -> float | None:
    """Offsets per second at which a group gets on, since it went back last; silence counts when it is unusual."""
    since = max(
        (place for place in range(1, len(commits)) if commits[place].offset < commits[place - 1].offset), default=0
    )
    steps = commits[since:]
    if len(steps) < _STEADY:
        return None
    span_ms, silence_ms = steps[-1].at_ms - steps[0].at_ms, now_ms - steps[-1].at_ms
    usual_ms = span_ms / (len(steps) - 1)
    over_ms = span_ms + (silence_ms if silence_ms > 2 * usual_ms else 0)
    return (steps[-1].offset - steps[0].offset) * 1000 / over_ms if over_ms > 0 else None


def catch_up_ms(lag: int | None, rate_in: float | None, rate_out: float | None) -> int | None:
    """How long it takes at these rates until nothing is left; None when that is not known, or never."""
    if lag == 0:
        return 0
    if lag is None or rate_in is None or rate_out is None or rate_out <= rate_in:
        return None
    return round(lag * 1000 / (rate_out - rate_in))
