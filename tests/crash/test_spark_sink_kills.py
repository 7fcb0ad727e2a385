"""kill -9 of drivers and workers of the exactly-once sink, two drivers at once, failed calls: every row is there once.

By hand, for longer: `python -m tests.crash.spark_sink_kills --kills 100`, also `--against kafka` or `--on-spark`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.under_test import running
from tests.crash.spark_sink_kills import run
from tests.crash.spark_sink_life import Blow, Point

KILLS = 20
BLOWS = [
    *((Blow.KILL, point) for point in (*Point, *Point, *Point)[:KILLS]),
    (Blow.STOP, Point.BEFORE_INTENT),
    (Blow.STOP, Point.BETWEEN_ENDS),
    (Blow.RAISE, Point.BEFORE_INTENT),
    (Blow.RAISE, Point.AFTER_INTENT),
]


@pytest.mark.timeout(400)
def test_twenty_kills_and_two_drivers_at_once_leave_every_row_once(tmp_path: Path) -> None:
    with running("lowwater", apart=True) as broker:
        report = run(broker.bootstrap, tmp_path, BLOWS)
    print(report)
    assert report.surprises == []
    assert (report.lost, report.doubled, report.strange) == (0, 0, 0)
    assert report.kills.total() == KILLS
    assert set(report.kills) == set(Point)
    assert report.refused > 0
    assert report.batches > KILLS / 4
    assert report.written > report.rows, "some rows were written more than once, and aborted"
