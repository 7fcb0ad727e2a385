"""A hostile crowd at a real broker, a good client beside it. Longer: `python -m tests.fuzz.broker --minutes 10`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.fuzz.broker import run

SEED = int(os.environ.get("LOWWATER_FUZZ_SEED", "20"))
SECONDS = 20


@pytest.mark.peer("confluent")
@pytest.mark.timeout(300)
def test_a_hostile_crowd_neither_crashes_nor_fills_the_broker_nor_harms_a_good_client(tmp_path: Path) -> None:
    report = run(SECONDS, seed=SEED, data_dir=tmp_path / "data")
    print(report)
    assert not report.problems, str(report)
    assert report.damage["attacks"] > 50, f"too few attacks to prove anything: {report}"
