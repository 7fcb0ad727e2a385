"""The rules one by one, at their edges."""

from __future__ import annotations

import pytest

from lowwater.lag.history import Commit, Sample
from lowwater.lag.rules import QUIET_MS, WHILE_MS, Status, catch_up_ms, rate_in, rate_out, status_of, worst

S = 1000
MOVING = [Commit(0, 10, 100), Commit(10 * S, 20, 100), Commit(20 * S, 30, 100)]
IDLE = [Commit(5 * S * place, 7) for place in range(10)]
LAST_MS = IDLE[-1].at_ms


@pytest.mark.parametrize(("lag", "allowed", "status"), [(0, 0, "OK"), (5, 5, "OK"), (6, 5, "STOP"), (None, 5, None)])
def test_a_lag_within_what_is_allowed_is_well(lag: int | None, allowed: int, status: str | None) -> None:
    assert status_of(MOVING, lag, 1000 * S, allowed=allowed).value == status


@pytest.mark.parametrize(("now_ms", "status"), [(20 * S, "OK"), (50 * S, "OK"), (50 * S + 1, "STOP")])
def test_silence_counts_when_it_is_longer_than_three_commits_take(now_ms: int, status: str) -> None:
    assert status_of(MOVING, 70, now_ms).value == status


@pytest.mark.parametrize(("silence_ms", "status"), [(45 * S, "STALL"), (45 * S + 1, "STOP")])
def test_silence_counts_when_it_is_longer_than_the_commits_span(silence_ms: int, status: str) -> None:
    assert status_of(IDLE, 1, LAST_MS + silence_ms).value == status


@pytest.mark.parametrize(("silence_ms", "status"), [(1 * S, None), (WHILE_MS, None), (WHILE_MS + 1, "STOP")])
def test_commits_at_once_do_not_make_the_next_one_late(silence_ms: int, status: str | None) -> None:
    assert status_of([Commit(0, 7), Commit(3, 8)], 1, 3 + silence_ms).value == status


@pytest.mark.parametrize(
    ("since_ms", "waits_ms", "status"),
    [(3600 * S, 1 * S, "OK"), (3600 * S, 45 * S, "OK"), (3600 * S, 45 * S + 1, "STOP"), (1, 1, "OK")],
)
def test_silence_counts_from_when_there_was_something_to_read(since_ms: int, waits_ms: int, status: str) -> None:
    arrived_ms = LAST_MS + since_ms
    assert status_of(IDLE, 1, arrived_ms + waits_ms, arrived_ms=arrived_ms).value == status


def test_commits_of_the_end_are_no_stall() -> None:
    for arrived_ms, status in ((LAST_MS + 1, "OK"), (LAST_MS - S, "OK"), (LAST_MS - 6 * S, "OK"), (0, "STALL")):
        assert status_of(IDLE, 1, LAST_MS + 2 * S, arrived_ms=arrived_ms).value == status, arrived_ms
    seen = [commit._replace(end=7) for commit in IDLE[:-2]] + [commit._replace(end=8) for commit in IDLE[-2:]]
    assert status_of(seen, 1, LAST_MS + S) is Status.OK


def test_whoever_commits_often_has_a_while_for_a_record() -> None:
    often = [Commit(100 * place, 7) for place in range(10)]
    assert status_of(often, 1, 950, arrived_ms=-S) is Status.OK
    assert status_of(often, 1, 950, arrived_ms=950 - WHILE_MS) is Status.STALL
    assert status_of(often[:2], 1, 150, arrived_ms=150 - WHILE_MS) is Status.UNKNOWN


def test_a_step_back_is_a_rewind_even_when_it_went_on_since() -> None:
    commits = [Commit(0, 50, 100), Commit(10 * S, 49, 100), Commit(20 * S, 90, 100)]
    assert status_of(commits, 10, 25 * S) is Status.REWIND


def test_offsets_that_do_not_move_are_a_stall() -> None:
    assert status_of([Commit(0, 7), Commit(10 * S, 7), Commit(20 * S, 7)], 1, 25 * S) is Status.STALL
    assert status_of([Commit(0, 7), Commit(10 * S, 7), Commit(20 * S, 8)], 1, 25 * S) is Status.UNKNOWN


@pytest.mark.parametrize(
    ("lags", "status"),
    [((10, 10), "WARN"), ((10, 11, 12), "WARN"), ((10, 9, 30), "OK"), ((10, 30, 29), "OK"), ((None, 5), None),
     ((None, None), None), ((None, 4, 5), "WARN"), ((9, None, 5), "OK"), ((0, 0, 0), "OK"), ((0, 3, 0, 3), "OK"),
     ((0, 0, 2), "OK"), ((0, 2, 3), "WARN")],
)  # fmt: skip
def test_lag_that_never_shrinks_is_a_warning(lags: tuple[int | None, ...], status: str | None) -> None:
    commits = [
        Commit(10 * S * place, place + 1, None if lag is None else place + 1 + lag) for place, lag in enumerate(lags)
    ]
    assert status_of(commits, 5, (10 * len(lags) - 5) * S).value == status


def test_lag_that_has_not_shrunk_for_a_moment_is_none() -> None:
    assert status_of([Commit(0, 7, 17), Commit(3, 8, 18)], 10, 5) is Status.UNKNOWN


@pytest.mark.parametrize(
    ("commits", "since_ms", "is_read", "status"),
    [([], 0, False, None), ([Commit(0, 1)], QUIET_MS, False, None), ([Commit(0, 1)], QUIET_MS + 1, False, "STOP"),
     ([Commit(0, 1)], QUIET_MS + 1, True, None)],
)  # fmt: skip
def test_one_commit_says_little(commits: list[Commit], since_ms: int, is_read: bool, status: str | None) -> None:
    assert status_of(commits, 1, since_ms, is_read=is_read).value == status


def test_one_commit_that_was_at_the_end_is_well_for_a_while() -> None:
    for waits_ms, status in ((WHILE_MS, "OK"), (WHILE_MS + 1, None), (QUIET_MS + 1, "STOP")):
        assert status_of([Commit(0, 1)], 1, 9 * S + waits_ms, is_read=False, arrived_ms=9 * S).value == status


def test_a_group_is_as_bad_as_its_worst_partition() -> None:
    assert worst([]) is Status.OK
    assert worst([Status.OK, Status.UNKNOWN]) is Status.UNKNOWN
    assert worst([Status.WARN, Status.UNKNOWN, Status.OK]) is Status.WARN
    assert worst([Status.REWIND, Status.STALL, Status.WARN]) is Status.STALL
    assert worst([Status.STALL, Status.STOP]) is Status.STOP


def test_a_rate_needs_two_looks_some_time_apart() -> None:
    assert rate_in([Sample(0, 10)]) is None
    assert rate_in([Sample(0, 10), Sample(499, 20)]) is None
    assert rate_in([Sample(0, 10), Sample(500, 20)]) == 20.0


def test_the_rate_of_a_group_counts_since_it_went_back_last() -> None:
    assert rate_out([Commit(0, 90), Commit(1000, 10)], 1000) is None
    assert rate_out([Commit(0, 90), Commit(1000, 10), Commit(2000, 40)], 2000) == 30.0


def test_unusual_silence_lowers_the_rate() -> None:
    commits = [Commit(0, 0), Commit(1000, 100)]
    assert rate_out(commits, 3000) == 100.0
    assert rate_out(commits, 4000) == 25.0


@pytest.mark.parametrize(
    ("lag", "into", "out_of", "ms"),
    [(0, None, None, 0), (100, 10.0, 60.0, 2000), (100, 60.0, 60.0, None), (100, 70.0, 60.0, None),
     (None, 1.0, 2.0, None), (100, None, 60.0, None)],
)  # fmt: skip
def test_when_it_will_have_caught_up(lag: int | None, into: float | None, out_of: float | None, ms: int | None) -> None:
    assert catch_up_ms(lag, into, out_of) == ms
