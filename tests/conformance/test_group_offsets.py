"""Committed offsets as every client library uses them: where a restarted member goes on, and where it may not."""

from __future__ import annotations

import pytest
from tests.conformance.groups.kinds import Can, Kind, played_by
from tests.conformance.groups.stage import Stage

from lowwater.errors import ErrorCode


@played_by(Can.COMMIT)
def test_a_restarted_member_goes_on_after_what_was_committed(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=2)
    stage.fill(topic, 2, each=10)
    first = stage.member(kind, topics=(topic,))
    stage.until_read(topic, 2, 10)
    first.commit((topic, 0, 4), (topic, 1, 10))
    assert first.committed((topic, 0), (topic, 1)) == [4, 10]
    first.close()
    second = stage.member(kind, topics=(topic,))
    stage.until(lambda: second.read[(topic, 0)] == list(range(4, 10)), "goes on at 4")
    stage.fill(topic, 2, each=1)
    stage.until(lambda: second.read[(topic, 1)] == [10], "goes on at 10")
    stage.until(lambda: second.read[(topic, 0)] == list(range(4, 11)), "every record once")


@played_by(Can.COMMIT)
def test_positions_are_committed_and_partitions_without_any_have_none(stage: Stage, kind: Kind) -> None:
    topic, other = stage.topic(partitions=1), stage.topic(partitions=1)
    stage.fill(topic, 1, each=7)
    member = stage.member(kind, topics=(topic, other))
    stage.until_read(topic, 1, 7)
    stage.until(lambda: member.owned == {(topic, 0), (other, 0)}, "both topics")
    member.commit()
    assert member.committed((topic, 0)) == [7]
    assert stage.committed(topic) == 7
    assert stage.committed(other) in (-1, 0)
    assert stage.committed(topic, group=f"{stage.group}-other") == -1


@played_by()
def test_positions_are_committed_by_themselves(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=1)
    stage.fill(topic, 1, each=5)
    member = stage.member(kind, topics=(topic,), auto_commit_ms=100)
    stage.until_committed(topic, 0, 5)
    stage.fill(topic, 1, each=4)
    stage.until_committed(topic, 0, 9)
    member.close()
    again = stage.member(kind, topics=(topic,), auto_commit_ms=100)
    stage.until_shared(topic, 1, again)
    stage.fill(topic, 1, each=1)
    stage.until(lambda: again.read[(topic, 0)] == [9], "nothing is read twice")


@played_by(Can.COMMIT)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_the_reset_policy_is_for_partitions_without_a_committed_offset(stage: Stage, kind: Kind, reset: str) -> None:
    topic = stage.topic(partitions=2)
    stage.fill(topic, 2, each=6)
    stage.commit(topic, 0, 2)
    member = stage.member(kind, topics=(topic,), reset=reset)
    stage.until(lambda: member.read[(topic, 0)] == [2, 3, 4, 5], "the committed offset wins")
    stage.until_shared(topic, 2, member)
    if reset == "earliest":
        stage.until(lambda: member.read[(topic, 1)] == list(range(6)), "from the start")
        return
    # `latest` is looked up some time after the assignment: write until a record is seen.
    stage.until_with(
        lambda: stage.fill(topic, 2, each=1), lambda: bool(member.read[(topic, 1)]), "what comes after the start"
    )
    assert member.read[(topic, 1)][0] >= 6


@played_by(Can.RESET_NONE)
def test_without_a_committed_offset_and_a_policy_reading_fails(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=1)
    stage.fill(topic, 1, each=3)
    member = stage.member(kind, topics=(topic,), reset="none")
    stage.until(lambda: bool(member.seen("failed")), "no offset, no policy")
    stage.commit(topic, 0, 1, group=f"{stage.group}-2")
    committed = stage.member(kind, topics=(topic,), reset="none", group=f"{stage.group}-2")
    stage.until(lambda: committed.read[(topic, 0)] == [1, 2], "a committed offset needs no policy")


@played_by(Can.COMMIT)
def test_a_committed_offset_below_the_log_start_is_reset(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=1)
    stage.fill(topic, 1, each=10)
    stage.commit(topic, 0, 2)
    stage.delete_records(topic, 0, before=6)
    member = stage.member(kind, topics=(topic,), reset="earliest")
    stage.until(lambda: member.read[(topic, 0)] == [6, 7, 8, 9], "from the log start")


@played_by(Can.COMMIT)
def test_seeking_back_reads_again_and_changes_nothing_committed(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=1)
    stage.fill(topic, 1, each=5)
    member = stage.member(kind, topics=(topic,))
    stage.until_read(topic, 1, 5)
    member.commit()
    member.seek(topic, 0, 3)
    stage.until(lambda: member.read[(topic, 0)] == [0, 1, 2, 3, 4, 3, 4], "the last two again")
    assert stage.committed(topic) == 5


@played_by(Can.COMMIT)
def test_nobody_commits_for_a_group_that_has_members(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=1)
    stage.fill(topic, 1, each=5)
    member = stage.member(kind, topics=(topic,))
    stage.until_read(topic, 1, 5)
    member.commit((topic, 0, 5))
    assert stage.committed(topic) == 5
    stage.commit_refused(topic, 0, 1, expected=ErrorCode.UNKNOWN_MEMBER_ID)
    assert stage.committed(topic) == 5
