"""A crash of the whole broker: what had been answered, whatever it was, is known to the next one.

More seeds by hand: `python -m tests.sim.broker_crash --seeds 200`.
"""

from __future__ import annotations

import pytest
from tests.sim.broker_crash import run_fault, run_seed

from lowwater.testing.faults_disk import Fault, FaultKind


@pytest.mark.parametrize("seed", range(12))
def test_everything_answered_survives_a_crash(seed: int) -> None:
    acked, states, violations = run_seed(seed)
    assert acked > 0
    assert states > 20
    assert violations == []


@pytest.mark.parametrize("kind", [FaultKind.EIO, FaultKind.SYNC, FaultKind.ENOSPC, FaultKind.SHORT_WRITE])
def test_no_answer_is_wrong_because_the_disk_failed(kind: FaultKind) -> None:
    hits = 0
    for nth in range(20, 260, 15):
        struck, violations = run_fault(nth % 7, Fault(kind, nth, lasting=nth % 2 == 0))
        hits += struck
        assert violations == []
    assert hits > 3
