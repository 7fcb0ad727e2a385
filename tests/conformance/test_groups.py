"""Groups of every client library: members come, go, crash, and the partitions are always with somebody."""

from __future__ import annotations

from tests.conformance.groups.fixtures import CONSUMER_SESSION_TIMEOUT_MS
from tests.conformance.groups.kinds import Can, Kind, played_by
from tests.conformance.groups.member import Member
from tests.conformance.groups.stage import Stage, eventually

SHORT_SESSION_MS = 2000


@played_by()
def test_members_share_the_partitions_as_they_join_and_leave(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=6)
    stage.fill(topic, 6, each=3)
    first = stage.member(kind, topics=(topic,))
    stage.until_shared(topic, 6, first)
    stage.until_read(topic, 6, 3)
    second = stage.member(kind, topics=(topic,))
    stage.until_shared(topic, 6, first, second)
    third = stage.member(kind, topics=(topic,))
    stage.until_shared(topic, 6, first, second, third)
    first.close()
    stage.until_shared(topic, 6, second, third)
    third.close()
    stage.until_shared(topic, 6, second)
    stage.fill(topic, 6, each=2)
    stage.until_read(topic, 6, 5)


@played_by()
def test_the_partitions_of_a_killed_member_move_when_its_session_ends(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    how = {"topics": (topic,), "session_timeout_ms": SHORT_SESSION_MS}
    doomed = stage.member(kind, alone=True, **how)
    heir = stage.member(kind, **how)
    stage.until_shared(topic, 4, doomed, heir)
    doomed.kill()
    stage.until_shared(topic, 4, heir)
    stage.fill(topic, 4, each=1)
    stage.until(lambda: len(read_places(heir)) == 4, "the heir reads everything")


@played_by()
def test_more_members_than_partitions_leave_some_idle_and_ready(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=2)
    members = [stage.member(kind, topics=(topic,)) for _ in range(3)]
    at_work: list[Member] = []

    def is_settled() -> bool:
        at_work[:] = [each for each in members if each.owned]
        idle = [each for each in members if not each.owned]
        # Before the third one is in, the other two look just the same.
        return len(idle) == 1 and stage.member_count(kind) == 3 and stage.state() == "Stable"

    eventually(is_settled, "two at work, one idle, Stable")
    at_work[0].close()
    stage.until_shared(topic, 2, *(each for each in members if each is not at_work[0]))


@played_by(Can.SEE_NEW_PARTITIONS)
def test_partitions_that_a_topic_gains_are_shared_out(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=2)
    members = [stage.member(kind, topics=(topic,)) for _ in range(2)]
    stage.until_shared(topic, 2, *members)
    stage.grow(topic, 6)
    stage.until_shared(topic, 6, *members)
    stage.fill(topic, 6, each=1)
    stage.until_read(topic, 6, 1)


@played_by(Can.FOLLOW_PATTERN)
def test_a_pattern_follows_topics_that_appear_later(stage: Stage, kind: Kind) -> None:
    label = f"pattern-{kind.name}-{stage.group}"
    before = stage.topic(partitions=2, name=f"{label}-before")
    stage.topic(partitions=2, name=f"other-{label}")
    member = stage.member(kind, pattern=f"^{label}-.*")
    stage.until(lambda: member.owned == {(before, 0), (before, 1)}, "the topic that was there")
    after = stage.topic(partitions=1, name=f"{label}-after")
    stage.until(lambda: member.owned == {(before, 0), (before, 1), (after, 0)}, "the topic that came later")


@played_by(Can.HOLD)
def test_a_member_that_stops_polling_loses_its_partitions_and_comes_back(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    how = {"topics": (topic,), "rebalance_timeout_ms": 4000, "session_timeout_ms": SHORT_SESSION_MS}
    busy = stage.member(kind, **how)
    other = stage.member(kind, **how)
    stage.until_shared(topic, 4, busy, other)
    busy.hold()
    stage.until(lambda: len(other.owned) == 4, "the other has everything")
    busy.go_on()
    stage.until_shared(topic, 4, busy, other)


def read_places(member: Member) -> set[tuple[str, int]]:
    return {place for place, offsets in member.read.items() if offsets}


def session_timeout_ms(kind: Kind) -> int:
    return CONSUMER_SESSION_TIMEOUT_MS if kind.protocol == "consumer" else SHORT_SESSION_MS
