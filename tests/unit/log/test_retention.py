"""Segments roll, grow old and go; the log start only ever rises."""

from __future__ import annotations

import pytest
from tests.unit.log.support import HOUR_MS, NOW, Home, values

from lowwater.errors import ApiError, ErrorCode
from lowwater.log.config import DAY_MS, LogConfig

KILOBYTE = b"x" * 1000


def home_with(count: int = 5, **settings: int | bool) -> Home:
    """One record of a kilobyte per segment, an hour apart, the first at NOW."""
    home = Home(config=LogConfig(segment_bytes=1200, **settings))  # type: ignore[arg-type]
    for number in range(count):
        home.now_ms = NOW + number * HOUR_MS
        home.append(KILOBYTE, times=[home.now_ms])
    return home


def test_a_segment_rolls_when_the_next_batch_does_not_fit() -> None:
    home = home_with()
    assert [segment.base_offset for segment in home.log().segments] == [0, 1, 2, 3, 4]


def test_a_batch_above_the_segment_size_gets_a_segment_of_its_own() -> None:
    home = home_with(1)
    home.append(b"y" * 5000)
    home.append(b"z")
    assert [segment.base_offset for segment in home.log().segments] == [0, 1, 2]
    assert values(home.log()) == [KILOBYTE, b"y" * 5000, b"z"]


def test_a_segment_rolls_when_its_records_span_segment_ms() -> None:
    home = Home(config=LogConfig(segment_ms=HOUR_MS))
    home.append(b"a", times=[NOW])
    home.append(b"b", times=[NOW + HOUR_MS])
    assert len(home.log().segments) == 1
    home.now_ms += HOUR_MS
    home.append(b"c", times=[NOW + HOUR_MS + 1])
    assert [segment.base_offset for segment in home.log().segments] == [0, 2]


def test_an_idle_segment_is_sealed_when_it_is_due() -> None:
    home = Home(config=LogConfig(segment_ms=HOUR_MS))
    home.append(b"a")
    assert not home.log().roll_if_due(NOW + HOUR_MS)
    assert home.log().roll_if_due(NOW + HOUR_MS + 1)
    assert not home.log().roll_if_due(NOW + HOUR_MS + 2)
    home.append(b"b")
    assert [segment.base_offset for segment in home.log().segments] == [0, 1]


def test_a_sealed_last_segment_stays_sealed_after_a_clean_stop() -> None:
    home = Home(config=LogConfig(segment_ms=HOUR_MS))
    home.append(b"a")
    home.log().roll_if_due(NOW + 2 * HOUR_MS)
    home.restart()
    home.append(b"b")
    assert [segment.base_offset for segment in home.log().segments] == [0, 1]


def test_a_segment_goes_when_its_latest_record_is_too_old() -> None:
    home = home_with(retention_ms=DAY_MS)
    assert home.log().apply_retention(NOW + DAY_MS) == []
    assert home.log().apply_retention(NOW + DAY_MS + HOUR_MS + 1) == [0, 1]
    assert (home.log().log_start, home.log().log_end) == (2, 5)
    assert len(values(home.log())) == 3


def test_a_young_record_protects_its_older_neighbours_and_all_that_follow() -> None:
    home = Home(config=LogConfig(segment_bytes=2300, retention_ms=HOUR_MS))
    for time in (NOW - DAY_MS, NOW, NOW - DAY_MS, NOW - DAY_MS):
        home.append(KILOBYTE, times=[time])
    assert len(home.log().segments) == 2
    assert home.log().apply_retention(NOW + 1) == []


def test_records_without_timestamps_age_by_the_time_of_the_file() -> None:
    home = Home(config=LogConfig(retention_ms=HOUR_MS))
    home.append(b"a", times=[-1])
    assert home.log().apply_retention(NOW + HOUR_MS) == []
    assert home.log().apply_retention(NOW + HOUR_MS + 1) == [0]


def test_the_active_segment_goes_too_when_everything_is_too_old() -> None:
    home = home_with(3, retention_ms=HOUR_MS)
    assert home.log().apply_retention(NOW + DAY_MS) == [0, 1, 2]
    assert (home.log().log_start, home.log().log_end) == (3, 3)
    assert home.append(b"next").base_offset == 3


@pytest.mark.parametrize("how", ["restart", "kill", "power_cut"])
def test_offsets_go_on_after_everything_was_deleted(how: str) -> None:
    home = home_with(3, retention_ms=HOUR_MS)
    home.log().flush()
    home.log().apply_retention(NOW + DAY_MS)
    log = getattr(home, how)()
    assert (log.log_start, log.log_end) == (3, 3)
    assert home.append(b"next").base_offset >= 3


def test_the_oldest_segments_go_when_the_log_is_too_large() -> None:
    home = home_with(retention_bytes=3 * 1100, retention_ms=-1)
    sizes = [segment.size for segment in home.log().segments]
    home.log().update_config(LogConfig(segment_bytes=1200, retention_bytes=sum(sizes[2:]), retention_ms=-1))
    assert home.log().apply_retention(NOW) == [0, 1]
    assert home.log().apply_retention(NOW) == []


def test_retention_by_size_leaves_at_least_what_is_to_be_kept() -> None:
    home = home_with(retention_ms=-1)
    sizes = [segment.size for segment in home.log().segments]
    home.log().update_config(LogConfig(segment_bytes=1200, retention_bytes=sum(sizes[2:]) + 1, retention_ms=-1))
    assert home.log().apply_retention(NOW) == [0]


def test_retention_by_size_never_takes_the_active_segment() -> None:
    home = home_with(retention_bytes=0, retention_ms=-1)
    assert home.log().apply_retention(NOW) == [0, 1, 2, 3]
    assert len(values(home.log())) == 1


def test_no_limit_keeps_everything() -> None:
    home = home_with(retention_ms=-1)
    assert home.log().apply_retention(NOW + 10_000 * DAY_MS) == []


def test_a_compacted_topic_does_not_delete_unless_it_says_so() -> None:
    home = home_with(compact=True, delete=False, retention_ms=HOUR_MS, retention_bytes=0)
    assert home.log().apply_retention(NOW + DAY_MS) == []
    home.log().update_config(LogConfig(compact=True, delete=True, retention_ms=HOUR_MS))
    assert len(home.log().apply_retention(NOW + DAY_MS)) == 5


def test_files_of_deleted_segments_are_gone() -> None:
    home = home_with(retention_ms=DAY_MS)
    home.log().apply_retention(NOW + DAY_MS + HOUR_MS + 1)
    assert {name[:20] for name in home.names()} == {f"{offset:020d}" for offset in (2, 3, 4)}


def test_retention_does_not_load_a_log_that_has_nothing_to_lose() -> None:
    home = home_with(retention_ms=DAY_MS)
    log = home.restart()
    assert log.apply_retention(NOW + HOUR_MS) == []
    assert not log.is_loaded
    assert log.apply_retention(NOW + DAY_MS + 1) == [0]


# -- DeleteRecords


def test_deleting_moves_the_log_start_within_a_segment() -> None:
    home = Home()
    home.append(b"a", b"b", b"c")
    assert home.log().delete_before(2) == 2
    assert values(home.log()) == [b"c"]
    assert home.log().delete_before(1) == 2


def test_deleting_removes_whole_segments() -> None:
    home = home_with()
    assert home.log().delete_before(3) == 3
    assert [segment.base_offset for segment in home.log().segments] == [3, 4]


def test_deleting_up_to_the_end() -> None:
    home = home_with()
    assert home.log().delete_before(-1) == 5
    assert (home.log().log_start, home.log().log_end, home.log().size_bytes) == (5, 5, 0)
    assert home.append(b"next").base_offset == 5


@pytest.mark.parametrize("offset", [-2, 6])
def test_deleting_outside_the_log_is_refused(offset: int) -> None:
    with pytest.raises(ApiError) as caught:
        home_with().log().delete_before(offset)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("how", ["restart", "kill", "power_cut"])
@pytest.mark.parametrize("offset", [1, 4, 5])
def test_the_log_start_never_goes_back(how: str, offset: int) -> None:
    home = home_with()
    home.log().flush()
    home.log().delete_before(offset)
    log = getattr(home, how)()
    assert log.log_start == offset
    assert len(values(log)) == 5 - offset


def test_a_log_can_begin_anywhere() -> None:
    home = Home()
    home.log().start_at(700_000)
    assert (home.log().log_start, home.log().log_end) == (700_000, 700_000)
    assert home.append(b"a").base_offset == 700_000
    assert values(home.restart()) == [b"a"]
