"""Drivers and workers killed at named points; `python -m tests.crash.spark_kills` does it for as long as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import require_peer
from tests.crash import spark_faults as points
from tests.crash.spark_kills import AT_COMMIT_LOG, Report, run

# A worker's death does not end the driver, so that the next kill needs no new one.
KILLS = [
    points.IN_TASKS,
    points.KILLS_WORKER,
    points.BEFORE_OFFSET_LOG,
    AT_COMMIT_LOG,
    points.BEFORE_GROUP_COMMIT,
    points.AFTER_SINK,
]
KILLS_IN_TIME = [points.AFTER_OFFSET_LOG, points.KILLS_WORKER, points.AFTER_SINK]
SEED = 5


def check(report: Report, kills: list[str]) -> None:
    print(report)
    assert report.is_clean(), str(report)
    assert report.kills.total() == len(kills)


def test_no_row_is_lost_or_doubled_whatever_is_killed(tmp_path: Path) -> None:
    require_peer("java")
    report = run(KILLS, seed=SEED, folder=tmp_path / "query")
    check(report, KILLS)
    assert report.replays["same"] > 0, "a batch whose rows were written already was run again"
    assert report.partitions_added > 0
    assert report.aged_out > 0


def test_rows_in_order_up_to_cuts_stay_so_whatever_is_killed(tmp_path: Path) -> None:
    """Batches of four slices and more, with rows of 2099, and moments that are too large for one."""
    require_peer("java")
    report = run(KILLS_IN_TIME, seed=SEED, folder=tmp_path / "query", in_time=True)
    check(report, KILLS_IN_TIME)
    assert report.replays["same"] > 0, "a batch whose rows were written already was run again"
    assert report.sliced > report.batches // 2
    assert report.split > 0
    assert report.far > 0
