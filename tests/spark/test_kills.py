"""Drivers and workers killed at named points; `python -m tests.crash.spark_kills` does it for as long as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import require_peer
from tests.crash import spark_faults as points
from tests.crash.spark_kills import AT_COMMIT_LOG, run

# A worker's death does not end the driver, so that the next kill needs no new one.
KILLS = [points.IN_TASKS, points.KILLS_WORKER, points.AFTER_SINK, AT_COMMIT_LOG]
SEED = 5


def test_no_row_is_lost_or_doubled_whatever_is_killed(tmp_path: Path) -> None:
    require_peer("java")
    report = run(KILLS, seed=SEED, folder=tmp_path / "query")
    print(report)
    assert report.is_clean(), str(report)
    assert report.kills.total() == len(KILLS)
    assert report.replays["same"] > 0, "a batch whose rows were written already was run again"
