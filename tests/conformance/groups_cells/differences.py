"""Where ours answers otherwise than Apache Kafka, on purpose: docs/differences.md says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Told = dict[str, Any]

REFUSED = {
    "generation_id": -1,
    "protocol_type": None,
    "leader": "",
    "skip_assignment": False,
    "members": [],
}
NULL_NAME_SINCE = 7


@dataclass(frozen=True)
class Difference:
    """Of some cells, by their titles: what ours says, made of what Kafka says. Parts left out are not compared."""

    what: str
    titles: frozenset[str]
    ours: Callable[[Told, int], Told]


def _also_answered(label: str, member: str) -> Callable[[Told, int], Told]:
    """Kafka never answers a Join whose member has sent another one since."""

    def ours(told: Told, version: int) -> Told:
        answer = {"error_code": "REBALANCE_IN_PROGRESS", "member_id": member, "protocol_name": None, **REFUSED}
        return {**told, label: answer}

    return ours


def _unknown_member(told: Told, version: int) -> Told:
    [group] = told["answer"]["groups"]
    return {"answer": {**told["answer"], "groups": [{**group, "error_code": "UNKNOWN_MEMBER_ID"}]}}


def _only_the_answer(told: Told, version: int) -> Told:
    return {"answer": told["answer"]}


def _unreadable(told: Told, version: int) -> Told:
    """Kafka fails on a subscription that it cannot read, once the member has an id."""
    if told["answer"]["error_code"] != "UNKNOWN_SERVER_ERROR":
        return told
    return {"answer": {**told["answer"], "error_code": "INCONSISTENT_GROUP_PROTOCOL"}}


def _one_epoch_more(told: Told, version: int) -> Told:
    """A member that changes its protocol counts as a change of the group, though it wants the same as before."""
    return {"answer": {**told["answer"], "member_epoch": told["answer"]["member_epoch"] + 1}}


def _told_who_asked(told: Told, version: int) -> Told:
    answer = {**told["answer"], "error_code": "INCONSISTENT_GROUP_PROTOCOL", "member_id": "B"}
    return {"answer": answer}


def _described_with_what_it_has(told: Told, version: int) -> Told:
    """B was to have a partition, and had not been given it yet."""
    [described] = [title for title in told if "Describe of" in title]
    [group] = told[described]["groups"]
    [member] = group["members"]
    has = {**group, "members": [{**member, "member_assignment": "nothing"}]}
    return {**told, described: {"groups": [has]}}


LIVE = (
    "Consumer, one member",
    "Consumer, a second member waits",
    "Consumer, the first has to give up",
    "Consumer, two members",
    "Consumer, a static member",
)

DIFFERENCES = (
    Difference(
        "A Join that is overtaken by another one of the same member is answered",
        frozenset({"Preparing: Join again of who has left or leads"}),
        _also_answered("answer: Join of A (9)", "A"),
    ),
    Difference(
        "The same, of a static member",
        frozenset(
            {
                "Preparing, the static member waiting: Join of the instance with its id",
                "Preparing, the static member waiting: Join of the instance's id without the instance",
            }
        ),
        _also_answered("answer: Join of S (8)", "S"),
    ),
    Difference(
        "An epoch without a member id is an unknown member, not an error of the server",
        frozenset(
            {
                "Consumer, one member: Fetch of an epoch without an id",
                "Consumer, all have left, with an offset: Fetch of an epoch without an id",
            }
        ),
        _unknown_member,
    ),
    Difference(
        "A Join that waits is not disturbed when a member of the newer protocol is refused",
        frozenset({"Preparing: A new member of the newer protocol"}),
        _only_the_answer,
    ),
    Difference(
        "A subscription that cannot be read is no error of the server",
        frozenset(f"{state}: Join with metadata nobody can read" for state in LIVE),
        _unreadable,
    ),
    Difference(
        "A member that comes by the newer protocol begins a new epoch",
        frozenset(
            {
                "Classic, two readers: A member comes by the newer protocol",
                "Classic, a static reader: A member comes by the newer protocol",
                "Classic, a static reader: The instance comes by the newer protocol",
                "Classic, readers coming together: A member comes by the newer protocol",
            }
        ),
        _one_epoch_more,
    ),
    Difference(
        "A Join that is refused tells the member id that it came with",
        frozenset(
            {
                "Mixed, one of the newer among two: Join again with another protocol",
                "Mixed, a classic one beside one of the newer: Join again with another protocol",
                "Mixed, one of the newer among two: Join again with metadata nobody can read",
                "Mixed, a classic one beside one of the newer: Join again with metadata nobody can read",
            }
        ),
        _told_who_asked,
    ),
    Difference(
        "A member of a group that becomes classic again has what it had, not what it was to have",
        frozenset({"Mixed, a classic one beside one of the newer: The last of the newer leaves"}),
        _described_with_what_it_has,
    ),
)


def difference_of(title: str) -> Difference | None:
    return next((each for each in DIFFERENCES if title in each.titles), None)
