"""Clients live through kills, power cuts and restarts of the whole broker; the checker finds nothing lost or doubled.

More by hand: `python -m tests.sim.whole_broker --seeds 1000`.
"""

from __future__ import annotations

import pytest
from tests.sim.whole_broker import run


@pytest.mark.parametrize("seed", range(20))
def test_nothing_acked_is_lost_doubled_or_mixed_up_and_nobody_waits_for_ever(seed: int) -> None:
    report = run(seed)
    assert not report.problems, str(report)
    assert report.acked > 100
    assert report.polled > 100
    assert report.kills + report.power_cuts > 0


def test_the_same_seed_gives_the_same_run() -> None:
    assert run(5, 400) == run(5, 400)
