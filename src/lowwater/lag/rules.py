"""How a group does in a partition, by its last commits. Pure.

The first rule that applies decides:

    nothing is known of its lag            unknown
    lag is within what is allowed          OK
    fewer than two commits are known       unknown; STOP when nobody reads and it was long ago
    no commit for longer than they span    STOP
    an offset is smaller than that before  REWIND
    all offsets are the same               STALL
    lag at no commit is smaller than that
      at the one before                    WARN; unknown when the lag at commits is not known
    else                                   OK
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise

from lowwater.lag.history import Commit, Sample

QUIET_MS = 600_000
"""So long after its only known commit a group without members counts as stopped."""
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
    commits: Sequence[Commit], lag: int | None, now_ms: int, *, allowed: int = 0, is_read: bool = True
) -> Status:
    """`commits` are the last ones, the oldest first. `is_read`: the group has members, or may have."""
    if lag is None:
        return Status.UNKNOWN
    if lag <= allowed:
        return Status.OK
    if len(commits) < _STEADY:
        is_quiet = bool(commits) and now_ms - commits[-1].at_ms > QUIET_MS
        return Status.STOP if is_quiet and not is_read else Status.UNKNOWN
    if now_ms - commits[-1].at_ms > commits[-1].at_ms - commits[0].at_ms:
        return Status.STOP
    if any(after.offset < before.offset for before, after in pairwise(commits)):
        return Status.REWIND
    if commits[0].offset == commits[-1].offset:
        return Status.STALL
    return _trend([commit.lag for commit in commits if commit.lag is not None])


def _trend(lags: Sequence[int]) -> Status:
    if len(lags) < _STEADY:
        return Status.UNKNOWN
    return Status.OK if any(after < before for before, after in pairwise(lags)) else Status.WARN


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
