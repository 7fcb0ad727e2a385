"""Which cells of the classic table a run meets: every step in the table is wrapped by one that notes itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from lowwater.groups.classic_table import TABLE

# An Empty group has no members, so only requests that come very late meet it.
NOT_DEMANDED = {
    f"{request} / Empty"
    for request in ("Heartbeat", "Join, known id", "Leave", "OffsetCommit, member", "Sync", "TxnOffsetCommit, member")
}
ALL_CELLS = {f"{request} / {state}" for request, row in TABLE.items() for state in row}
met: set[str] = set()


def watch() -> None:
    """From now on `met` grows. Calling it again changes nothing."""
    for request, row in TABLE.items():
        # The rows are read-only by their type alone.
        steps = cast(dict[str, Callable[..., None]], row)
        for state, step in steps.items():
            if not hasattr(step, "__wrapped__"):
                steps[state] = _noting(f"{request} / {state}", step)


def _noting(cell: str, step: Callable[..., None]) -> Callable[..., None]:
    @wraps(step)
    def noted(*arguments: Any) -> None:
        met.add(cell)
        step(*arguments)

    return noted
