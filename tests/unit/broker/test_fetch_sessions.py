import itertools

import pytest

from lowwater.broker.fetch_sessions import EPOCH_MAX, EVICTION_MS, FetchSessions, Wanted
from lowwater.errors import ApiError, ErrorCode


class CountingIds:
    def __init__(self):
        self._next = itertools.count(1)

    def uuid(self):
        return next(self._next).to_bytes(4, "big") + bytes(12)

    def boot_id(self):
        return "boot"


def wanted(topic="t", partition=0, offset=0):
    return Wanted(topic, partition, offset, 1 << 20, -1, -1)


def ask(sessions, session_id, epoch, wants=(), forgotten=(), *, by_id=False, now_ms=0):
    return sessions.plan(session_id, epoch, list(wants), list(forgotten), uses_topic_ids=by_id, now_ms=now_ms)


@pytest.fixture
def sessions():
    return FetchSessions(2, CountingIds())


def test_epoch_minus_one_fetches_without_a_session(sessions):
    plan = ask(sessions, 0, -1, [wanted()])
    assert plan.session_id == 0
    assert len(plan.wanted) == 1
    assert len(sessions) == 0


def test_epoch_zero_opens_a_session_that_remembers_its_partitions(sessions):
    opened = ask(sessions, 0, 0, [wanted(partition=0), wanted(partition=1)])
    again = ask(sessions, opened.session_id, 1)
    assert opened.session_id == again.session_id != 0
    assert [one.partition for one in again.wanted] == [0, 1]
    assert again.incremental
    assert not opened.incremental


def test_changed_partitions_are_updated_added_and_forgotten(sessions):
    session_id = ask(sessions, 0, 0, [wanted(partition=0), wanted(partition=1)]).session_id
    plan = ask(sessions, session_id, 1, [wanted(partition=1, offset=9), wanted(partition=2)], [("t", 0)])
    assert [(one.partition, one.fetch_offset) for one in plan.wanted] == [(1, 9), (2, 0)]


def test_a_partition_that_was_served_goes_to_the_end(sessions):
    opened = ask(sessions, 0, 0, [wanted(partition=0), wanted(partition=1)])
    opened.session.serve_last(opened.wanted[0])
    assert [one.partition for one in ask(sessions, opened.session_id, 1).wanted] == [1, 0]


def test_an_unknown_session_is_refused(sessions):
    with pytest.raises(ApiError) as refused:
        ask(sessions, 77, 1)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_skipped_or_repeated_epoch_is_refused(sessions):
    session_id = ask(sessions, 0, 0, [wanted()]).session_id
    for epoch in (2, 5):
        with pytest.raises(ApiError) as refused:
            ask(sessions, session_id, epoch)
        assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_epoch_wraps_to_one(sessions):
    opened = ask(sessions, 0, 0, [wanted()])
    opened.session.next_epoch = EPOCH_MAX
    ask(sessions, opened.session_id, EPOCH_MAX)
    assert ask(sessions, opened.session_id, 1).session_id == opened.session_id


def test_a_session_that_forgot_everything_is_closed(sessions):
    session_id = ask(sessions, 0, 0, [wanted()]).session_id
    plan = ask(sessions, session_id, 1, (), [("t", 0)])
    assert plan.session_id == 0
    assert len(sessions) == 0


def test_a_session_does_not_change_between_names_and_ids(sessions):
    session_id = ask(sessions, 0, 0, [wanted()]).session_id
    with pytest.raises(ApiError) as refused:
        ask(sessions, session_id, 1, by_id=True)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_cache_serves_without_a_session_until_one_is_idle(sessions):
    first = ask(sessions, 0, 0, [wanted()], now_ms=0).session_id
    ask(sessions, 0, 0, [wanted()], now_ms=EVICTION_MS)
    assert ask(sessions, 0, 0, [wanted()], now_ms=EVICTION_MS).session_id == 0
    assert ask(sessions, 0, 0, [wanted()], now_ms=EVICTION_MS + 1).session_id != 0
    with pytest.raises(ApiError):
        ask(sessions, first, 1)


def test_a_larger_session_replaces_a_smaller_old_one(sessions):
    small = ask(sessions, 0, 0, [wanted()], now_ms=0).session_id
    ask(sessions, 0, 0, [wanted(), wanted(partition=1)], now_ms=0)
    late = EVICTION_MS + 1
    ask(sessions, small, 1, now_ms=late)
    other = ask(sessions, 2, 1, now_ms=late)
    assert other.session_id == 2
    assert ask(sessions, 0, 0, [wanted()], now_ms=late).session_id == 0
    assert ask(sessions, 0, 0, [wanted(), wanted(partition=1)], now_ms=late).session_id != 0
    with pytest.raises(ApiError):
        ask(sessions, small, 2, now_ms=late)


def test_opening_again_with_an_old_id_replaces_that_session(sessions):
    first = ask(sessions, 0, 0, [wanted()]).session_id
    second = ask(sessions, first, 0, [wanted()]).session_id
    assert second != first
    assert len(sessions) == 1
