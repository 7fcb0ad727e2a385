"""kill -9 during rebalances and commits: no committed offset goes back, no generation is used twice, all go on.

By hand, for longer: `python -m tests.crash.group_kill --kills 500`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.group_kill import run

KILLS = 50


@pytest.mark.timeout(400)
def test_fifty_kills_during_rebalances_and_commits_lose_no_group(tmp_path: Path) -> None:
    report = run(KILLS, seed=1, data_dir=tmp_path / "data")
    print(report)
    assert report.anomalies == []
    assert report.errors == []
    assert report.kills == KILLS
    assert report.counts["commits"] > 20 * KILLS
    assert report.counts["rebalances"] > 10 * KILLS
