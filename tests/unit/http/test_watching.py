"""What is remembered of groups between looks."""

from __future__ import annotations

from lowwater.client.admin.group_members import GroupMember
from lowwater.http.courses import POINTS, Courses
from lowwater.http.paging import page
from lowwater.http.watching import changed
from lowwater.lag.observation import Fault, GroupSeen
from lowwater.lag.report import GroupLag, PartitionLag, Report
from lowwater.lag.rules import Status
from lowwater.types import TopicPartition


def member(name: str, *partitions: int) -> GroupMember:
    return GroupMember(name, "client", "/host", partitions=tuple(TopicPartition("t", one) for one in partitions))


def seen(*members: GroupMember, state: str = "Stable") -> GroupSeen:
    return GroupSeen("g", state, "classic", members)


def test_a_rebalance_is_told_by_what_it_did() -> None:
    two = seen(member("a", 0), member("b", 1))
    assert changed(two, seen(member("a", 0), member("b", 1))) == ""
    assert changed(two, seen(member("a", 0, 1))) == "1 left, partitions moved"
    assert changed(two, seen(member("a", 0), member("b"), member("c", 1))) == "1 joined, partitions moved"
    assert changed(two, seen(member("a", 0), member("b", 1), state="PreparingRebalance")) == "was Stable"


def report(at_ms: int, **lags: int | None) -> Report:
    groups = {
        name: GroupLag(name, "Stable", None, Status.OK, lag, None, (PartitionLag("t", 0, lag=lag, time_lag_ms=5),))
        for name, lag in lags.items()
    }
    return Report(at_ms, groups)


def test_courses_have_a_value_for_every_time_or_none() -> None:
    courses = Courses()
    courses.take(report(1, a=7))
    courses.take(report(2, a=None))
    assert courses.trend("a") == [7, None]
    assert courses.of("a") == {
        "times": [1, 2],
        "partitions": [{"topic": "t", "partition": 0, "lag": [7, None], "time_lag_ms": [5, 5]}],
    }


def test_courses_forget_groups_that_are_gone_and_points_that_are_old() -> None:
    courses = Courses()
    for at_ms in range(POINTS + 5):
        courses.take(report(at_ms, a=at_ms, b=1))
    courses.take(report(POINTS + 5, a=0))
    assert courses.of("b") == {"times": [], "partitions": []}
    assert len(courses.of("a")["times"]) == POINTS
    assert courses.of("a")["times"][-1] == POINTS + 5


def test_pages_follow_each_other_without_gap_or_overlap() -> None:
    names = [f"g{one:03}" for one in range(25)]
    found, after = [], None
    while True:
        shown, after = page(names, 10, after)
        found += shown
        if after is None:
            break
    assert found == names
    assert page(names, 25, None) == (names, None)
    assert page(names, 10, "g0045") == (names[5:15], "g014")


def test_courses_keep_groups_whose_broker_does_not_answer() -> None:
    courses = Courses()
    courses.take(report(1, a=7, b=3))
    courses.take(Report(2, report(2, a=8).groups, (Fault("broker 2", "is gone"),)))
    assert courses.trend("b") == [3]
    courses.take(report(3, a=9))
    assert courses.trend("b") == []


def test_nobody_fills_memory_by_asking_for_groups_that_are_not_there() -> None:
    courses = Courses()
    courses.take(report(1, a=7))
    for name in ("a", "x", "y"):
        courses.of(name)
    assert courses._wanted == {"a"}
