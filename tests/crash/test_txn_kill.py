"""kill -9 during consume, transform, produce: every input is in the output once, no transaction is torn.

By hand, for longer: `python -m tests.crash.txn_kill --kills 500`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.txn_kill import run
from tests.crash.txn_worker import LIBRARIES

KILLS = 30


@pytest.mark.timeout(400)
def test_thirty_kills_of_broker_and_workers_leave_every_input_in_the_output_once(tmp_path: Path) -> None:
    report = run(KILLS, seed=1, data_dir=tmp_path / "data")
    print(report)
    assert report.anomalies == []
    assert report.breaches == []
    assert report.errors == []
    assert report.kills == KILLS
    assert report.zombies > 0
    assert report.counts["transactions"] > 5 * KILLS
    assert all(report.done[library] > 5 * KILLS for library in LIBRARIES)
