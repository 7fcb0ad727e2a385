"""Suite 4: kill -9 and SIGSTOP under load from three client libraries; nothing acked is lost, doubled or mixed up.

By hand, for longer: `python -m tests.crash.kill --kills 1000`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.kill import run

KILLS = 50


@pytest.mark.timeout(400)
def test_fifty_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    report = run(KILLS, seed=1, data_dir=tmp_path / "data")
    print(report)
    assert report.anomalies == []
    assert report.errors == []
    assert report.kills == KILLS
    assert report.stops > 0
    assert report.acked > 50 * KILLS
