"""Rebalances that somebody drags out, and those that stop nobody."""

from __future__ import annotations

import threading

from tests.conformance.groups.kinds import Can, Kind, played_by
from tests.conformance.groups.member import Member, Place
from tests.conformance.groups.raw_member import RawMember
from tests.conformance.groups.stage import Stage

from lowwater.errors import ErrorCode

RECORDS_WHILE_HELD = 20


@played_by(protocol="classic", assignor="range")
def test_a_member_that_never_syncs_is_dropped_at_the_rebalance_timeout(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    how = {"rebalance_timeout_ms": 2500, "session_timeout_ms": 2000}
    member = stage.member(kind, topics=(topic,), **how)
    stage.until_shared(topic, 4, member)
    mute = stage.raw_member([topic], **how)
    assert mute.join().error_code == 0
    stage.until(lambda: len(member.owned) < 4, "the rebalance has begun")
    stage.until_shared(topic, 4, member)
    assert mute.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@played_by(protocol="classic", assignor="range")
def test_a_slow_joiner_is_waited_for(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    slow = stage.raw_member([topic])
    assert slow.join().error_code == 0
    assert slow.sync({slow.member_id: {topic: [0, 1, 2, 3]}}).error_code == 0
    member = stage.member(kind, topics=(topic,))
    wait_for_rebalance(slow)
    for _ in range(3):
        assert slow.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.state() == "PreparingRebalance"
    assert not member.owned
    before = slow.generation
    assert slow.join().error_code == 0
    assert slow.generation == before + 1
    if slow.leads:
        other = next(each.member_id for each in slow.joined.members if each.member_id != slow.member_id)
        slow.sync({slow.member_id: {topic: [0, 1]}, other: {topic: [2, 3]}})
    else:
        slow.sync()
    stage.until(lambda: len(member.owned) == 2, "half of the partitions")


@played_by(Can.READ_WHILE_REBALANCING, assignor="cooperative-sticky")
def test_reading_goes_on_while_a_cooperative_rebalance_is_held_up(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    member = stage.member(kind, topics=(topic,), assignor="cooperative-sticky")
    stage.until_shared(topic, 4, member)
    laggard = stage.raw_member([topic], protocol="cooperative-sticky")
    assert laggard.join().error_code == 0
    assert not laggard.leads
    # The member gives up two partitions and asks for the rebalance that hands them over, at times before the laggard
    # has asked for its share. The laggard does not join again, so that one cannot end.
    assert laggard.sync().error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
    wait_for_rebalance(laggard)
    stage.until(lambda: len(member.owned) == 2, "two partitions are given up")
    kept = set(member.owned)
    stage.fill(topic, 4, each=RECORDS_WHILE_HELD)
    stage.until(lambda: all(read_to(member, place) == RECORDS_WHILE_HELD for place in kept), "reads while held up")
    assert stage.state() == "PreparingRebalance"
    laggard.leave()


@played_by(Can.COOPERATE)
def test_an_incremental_rebalance_never_stops_the_partitions_that_stay(stage: Stage, kind: Kind) -> None:
    topic = stage.topic(partitions=6)
    how = {"topics": (topic,)} | ({"assignor": "cooperative-sticky"} if kind.protocol == "classic" else {})
    with Traffic(stage, topic, 6):
        first = stage.member(kind, **how)
        second = stage.member(kind, **how)
        stage.until_shared(topic, 6, first, second)
        before = {each.name: set(each.owned) for each in (first, second)}
        mark = {each.name: len(each.events) for each in (first, second)}
        third = stage.member(kind, **how)
        stage.until_shared(topic, 6, first, second, third)
        for each in (first, second):
            stayed = before[each.name] & each.owned
            assert len(stayed) == 2
            assert not given_up(each, mark[each.name]) & stayed, each.story()
            read_without_gaps(each, stayed)


class Traffic:
    """A record to every partition over and over, for the length of a `with`."""

    def __init__(self, stage: Stage, topic: str, partitions: int) -> None:
        self.stage, self.topic, self.partitions = stage, topic, partitions
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            self.stage.fill(self.topic, self.partitions, each=1)


def wait_for_rebalance(member: RawMember) -> None:
    """Heartbeat until the coordinator says that a rebalance is under way."""
    while (code := member.heartbeat()) != ErrorCode.REBALANCE_IN_PROGRESS:
        assert code == ErrorCode.NONE, member.joined


def read_to(member: Member, place: Place) -> int:
    return member.read[place][-1] + 1 if member.read[place] else 0


def given_up(member: Member, since: int) -> set[Place]:
    events = [each for each in member.events[since:] if each.what in ("revoked", "lost")]
    return set().union(*(each.places for each in events))


def read_without_gaps(member: Member, places: set[Place]) -> None:
    for place in places:
        offsets = member.read[place]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), (place, member.story())
