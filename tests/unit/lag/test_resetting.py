"""Where a reset leads, and what becomes of it; on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.virtual import Asked
from tests.unit.lag.test_collecting import Cluster

from lowwater.client.admin.group_members import GroupMember
from lowwater.client.errors import AuthorizationError
from lowwater.client.group_offsets import Committed
from lowwater.errors import ConfigError, ErrorCode
from lowwater.lag import journal
from lowwater.lag.changes import DONE, Change, nothing_done
from lowwater.lag.resetting import (
    ALL,
    ActiveGroupError,
    Carried,
    Move,
    NothingToUndoError,
    Plan,
    Selection,
    Target,
    carry_out,
    plan_reset,
    plan_undo,
    read_target,
)
from lowwater.positions.grammar import parse_starts
from lowwater.types import TopicPartition
from lowwater.wire.messages import OffsetCommitResponse, OffsetDeleteResponse
from lowwater.wire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = (Move(ONE, Committed(7), Committed(3)), Move(OTHER, Committed(7), None))


@pytest.mark.parametrize(
    ("text", "target"),
    [("stored+5", Target(shift=5)), (" committed-10 ", Target(shift=-10)),
     ("stored", Target(to=parse_starts("stored"))), ("-5", Target(to=parse_starts("-5"))),
     ("t=stored|earliest", Target(to=parse_starts("t=stored|earliest")))],
)  # fmt: skip
def test_a_target_is_a_start_position_or_so_far_from_where_the_group_is(text: str, target: Target) -> None:
    assert read_target(text) == target


@pytest.mark.parametrize("text", ["", "stored+", "stored+1x", "yesterday-ish", "stored+" + "9" * 5000])
def test_what_is_no_target_is_the_mistake_of_who_asks(text: str) -> None:
    with pytest.raises(ConfigError, match="A start position is one of"):
        read_target(text)


def test_a_reset_to_what_is_not_stored_is_the_mistake_of_who_asks() -> None:
    cluster = Cluster()
    cluster.committed["g"] = {0: 7}
    there = Selection((("t", None),))
    with pytest.raises(ConfigError, match=r"no committed offset for t-1: .*stored\|earliest"):
        cluster.world.do(plan_reset(cluster.world.cluster, "g", read_target("stored"), there))
    plan = cluster.world.do(plan_reset(cluster.world.cluster, "g", read_target("stored+2"), ALL))
    assert [(move.before.offset, move.after.offset) for move in plan.moves] == [(7, 9)]


def committing(asked: Asked) -> Any:
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name,
            partitions=[OffsetCommitResponsePartition(partition_index=one.partition_index) for one in topic.partitions],
        )
        for topic in asked.request.topics
    ]
    return OffsetCommitResponse(topics=topics)


def carried(*moves: Move) -> Carried:
    """By a cluster that commits, and does not delete."""
    cluster = Cluster()
    cluster.world.answers["OffsetCommit"] = committing
    cluster.world.answers["OffsetDelete"] = lambda _: OffsetDeleteResponse(
        error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, topics=[]
    )
    found = cluster.world.do(carry_out(cluster.world.cluster, Plan("g", "undo", moves), who="ann", is_kept=False))
    assert isinstance(found, Carried)
    return found


def test_what_was_done_before_something_failed_is_told() -> None:
    found = carried(*BOTH)
    assert found.done == (ONE,)
    assert list(found.failed) == [OTHER]
    assert isinstance(found.failed[OTHER], AuthorizationError)


def test_where_nothing_was_done_all_has_failed() -> None:
    with pytest.raises(AuthorizationError):
        carried(BOTH[1])


def change(name: str, outcome: str = DONE) -> Change:
    return Change(name, "g", 1, "ann", "reset", {ONE: Committed(1)}, {ONE: Committed(7)}, outcome=outcome)


@pytest.fixture
def undone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str | None]:
    """Which of these changes would be undone, the newest first."""

    def undo(*known: Change, change_id: str | None = None) -> str | None:
        async def changes(*_: object) -> list[Change]:
            return list(known)

        monkeypatch.setattr(journal, "changes", changes)
        cluster = Cluster()
        plan = cluster.world.do(plan_undo(cluster.world.cluster, "g", change_id))
        assert isinstance(plan, Plan)
        return plan.undoes

    return undo


def test_the_last_change_that_was_made_is_undone(undone: Callable[..., str | None]) -> None:
    refused = change("c3", nothing_done("no"))
    assert undone(refused, change("c2"), change("c1")) == "c2"
    assert undone(change("c4", ""), refused, change("c2")) == "c4", "nobody knows whether it was made"
    assert undone(change("c5", "1 of 2 partitions failed: no"), change("c2")) == "c5"
    with pytest.raises(NothingToUndoError, match="nothing was changed"):
        undone(refused)


def test_a_change_is_named_by_as_much_of_its_id_as_tells_it_from_others(undone: Callable[..., str | None]) -> None:
    known = [change("ab12"), change("ab34"), change("ab"), change("cd56")]
    assert undone(*known, change_id="c") == "cd56"
    assert undone(*known, change_id="ab3") == "ab34"
    assert undone(*known, change_id="ab") == "ab", "all of it"
    with pytest.raises(ConfigError, match="could be any of the changes ab12, ab34, ab: say more"):
        undone(*known, change_id="a")
    with pytest.raises(NothingToUndoError, match="no change 'x'"):
        undone(*known, change_id="x")


def test_members_are_named_without_what_a_terminal_would_obey() -> None:
    member = GroupMember("m\x1b[2J", "app\n: all is well", "/10.0.0.1\u202e")
    told = str(ActiveGroupError("g", [member]))
    assert told.isprintable()
    assert r"app\n: all is well at /10.0.0.1\u202e (m\x1b[2J)" in told
