"""What is remembered of commits and of how partitions grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lowwater.client.group_offsets import Committed
from lowwater.lag.history import COMMITS_KEPT, SAMPLES_KEPT, Commit, History, Sample
from lowwater.lag.observation import GroupSeen, LoggedCommit, Observation, Standing
from lowwater.types import TopicPartition

ONE = TopicPartition("orders", 0)


def look(at_ms: int, end: int, offset: int | None, *logged: tuple[int, int | None]) -> Observation:
    committed: Mapping[TopicPartition, Committed] = {} if offset is None else {ONE: Committed(offset)}
    commits = tuple(LoggedCommit("g", ONE, at, to) for at, to in logged)
    return Observation(at_ms, {"g": GroupSeen("g", "Empty", committed=committed)}, {ONE: Standing(0, end)}, {}, commits)


def after(*looks: Observation) -> History:
    history = History()
    for each in looks:
        history.take(each)
    return history


def test_the_last_ten_commits_are_kept() -> None:
    history = after(look(100, 100, 11, *((place, place) for place in range(12))))
    assert [commit.offset for commit in history.commits("g", ONE)] == list(range(12))[-COMMITS_KEPT:]


def test_a_commit_of_the_log_has_the_end_that_the_partition_had_then() -> None:
    history = after(look(1000, 100, 5), look(2000, 200, 50, (500, 5), (1250, 30), (2000, 50), (2400, 50)))
    assert history.commits("g", ONE) == (
        Commit(500, 5, None),
        Commit(1250, 30, 125),
        Commit(2000, 50, 200),
        Commit(2400, 50, 200),
    )


def test_without_the_log_a_change_is_a_commit_and_no_change_is_none() -> None:
    history = after(look(1000, 100, 5), look(2000, 110, 5), look(3000, 120, 9))
    assert history.commits("g", ONE) == (Commit(1000, 5, 100), Commit(3000, 9, 120))


def test_the_log_is_believed_more_than_what_was_seen() -> None:
    history = after(look(1000, 100, 5), look(2000, 110, 5, (400, 4), (900, 5)))
    assert [commit.offset for commit in history.commits("g", ONE)] == [4, 5]
    history.take(look(3000, 110, 5, (2500, 6)))  # the commit came between the two questions
    assert [commit.offset for commit in history.commits("g", ONE)] == [4, 5, 6]


def test_commits_that_are_read_twice_count_once() -> None:
    history = after(look(1000, 100, 5, (400, 4), (900, 5)), look(2000, 100, 6, (400, 4), (1500, 6)))
    assert [commit.offset for commit in history.commits("g", ONE)] == [4, 5, 6]


def test_a_commit_that_is_read_ten_times_counts_once() -> None:
    history = after(*(look(1000 + each, 100, 5, (400, 4), (900, 5)) for each in range(10)))
    assert [commit.offset for commit in history.commits("g", ONE)] == [4, 5]


def test_when_the_log_cannot_be_read_any_more_what_is_seen_counts() -> None:
    history = after(look(1000, 100, 5, (400, 4), (900, 5)), look(2000, 100, 7), look(3000, 110, 9))
    assert history.commits("g", ONE) == (
        Commit(400, 4, None), Commit(900, 5, None), Commit(2000, 7, 100), Commit(3000, 9, 110),
    )  # fmt: skip
    history.take(look(4000, 110, 9, (1900, 7), (2900, 9)))
    assert [(commit.at_ms, commit.offset) for commit in history.commits("g", ONE)] == [
        (400, 4), (900, 5), (1900, 7), (2900, 9),
    ]  # fmt: skip


def test_groups_that_are_gone_are_forgotten_when_all_were_looked_at() -> None:
    history = after(look(1000, 100, 5))
    history.take(Observation(2000, {"h": GroupSeen("h")}))
    assert history.commits("g", ONE) == (Commit(1000, 5, 100),), "only some were looked at"
    assert history.samples(ONE) == (Sample(1000, 100),)
    history.take(Observation(3000, {"g": GroupSeen("g", fault="gone for a moment")}, is_all=True))
    assert history.samples(ONE) == (Sample(1000, 100),)
    history.take(Observation(4000, {"h": GroupSeen("h")}, is_all=True))
    assert history.commits("g", ONE) == ()
    assert history.samples(ONE) == ()
    assert (history._tracks, history._samples) == ({}, {})


def test_whoever_reads_while_an_observation_is_taken_sees_what_was_before() -> None:
    history = after(look(1000, 100, 5, (900, 5)))
    seen = []

    class Watched(dict[TopicPartition, Standing]):
        def items(self) -> Any:
            seen.append((history.told_ms, history.commits("g", ONE), history.samples(ONE)))
            return super().items()

    following = look(2000, 110, 7, (1900, 7))
    history.take(replace(following, partitions=Watched(following.partitions)))
    assert seen == [(1000, (Commit(900, 5, None),), (Sample(1000, 100),))]
    assert history.told_ms == 2000
    assert len(history.commits("g", ONE)) == len(history.samples(ONE)) == 2


def test_offsets_that_were_deleted_are_forgotten() -> None:
    assert after(look(1000, 100, 5, (400, 4)), look(2000, 100, None)).commits("g", ONE) == ()
    assert after(look(1000, 100, 5, (400, 4), (500, None), (600, 5))).commits("g", ONE) == (Commit(600, 5, None),)


def test_a_group_that_does_not_answer_is_not_forgotten() -> None:
    history = after(look(1000, 100, 5))
    history.take(Observation(2000, {"g": GroupSeen("g", fault="gone for a moment")}))
    assert history.commits("g", ONE) == (Commit(1000, 5, 100),)


def test_samples_are_bounded_and_begin_anew_when_a_log_is_shorter() -> None:
    history = after(*(look(1000 * place, place, 0) for place in range(SAMPLES_KEPT + 5)))
    assert len(history.samples(ONE)) == SAMPLES_KEPT
    history.take(look(90_000, 3, 0))
    assert history.samples(ONE) == (Sample(90_000, 3),)
