"""What to do about a group that is behind, in a sentence and as a word for programs. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


class Action(Enum):
    NOTHING = "nothing"
    SCALE = "scale"
    ADD_PARTITIONS = "add_partitions"
    RAISE_TIMEOUT = "raise_timeout"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """`count` is that of members or partitions there should be, where the action is about them."""

    action: Action
    text: str
    count: int | None = None

    def document(self) -> dict[str, Any]:
        return {"action": self.action.value, "count": self.count, "text": self.text}


NOTHING = Recommendation(Action.NOTHING, "nothing to do")


def reset(text: str) -> Recommendation:
    return Recommendation(Action.RESET, text)


def nothing(text: str) -> Recommendation:
    return Recommendation(Action.NOTHING, text)


def nobody_reads(lag: int) -> Recommendation:
    records = "1 record waits" if lag == 1 else f"{lag} records wait"
    return Recommendation(Action.SCALE, f"scale to 1 member: nobody reads, and {records}", 1)


def silent(where: str, member: str) -> Recommendation:
    return Recommendation(
        Action.RAISE_TIMEOUT,
        f"{member} has stopped committing {where}: look at it; if its work takes long, raise max.poll.interval.ms",
    )


def stuck(where: str, offset: int) -> Recommendation:
    return Recommendation(
        Action.RAISE_TIMEOUT,
        f"{where} is committed again and again at offset {offset}: if a record takes long there, raise "
        f"max.poll.interval.ms; if it cannot be processed, skip it with a reset to {offset + 1}",
    )


def rebalancing(state: str) -> Recommendation:
    return Recommendation(
        Action.RAISE_TIMEOUT,
        f"the group is being rebalanced ({state}): when that happens often, raise session.timeout.ms or "
        "max.poll.interval.ms",
    )


def falling_behind(members: int, partitions: int, rate_in: float | None, rate_out: float | None) -> Recommendation:
    """More members as long as each still gets a partition; then more partitions."""
    needed = _needed(members, rate_in, rate_out)
    if members >= partitions:
        which = "its only partition has" if partitions == 1 else f"all {partitions} partitions have"
        return Recommendation(
            Action.ADD_PARTITIONS,
            f"add partitions, up to {needed}, and as many members: {which} a reader, and lag grows",
            needed,
        )
    if needed > partitions:
        return Recommendation(
            Action.SCALE,
            f"scale to {partitions} members, and add partitions: at these rates {needed} readers are needed",
            partitions,
        )
    return Recommendation(Action.SCALE, f"scale to {needed} members: lag grows with {members}", needed)


def _needed(members: int, rate_in: float | None, rate_out: float | None) -> int:
    if rate_in is None or rate_out is None or rate_out <= 0 or members == 0:
        return members + 1
    return max(math.ceil(members * rate_in / rate_out), members + 1)
