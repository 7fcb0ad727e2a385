"""A crash of the whole broker: what had been answered, whatever it was, is known to the next one.

More seeds by hand: `python -m tests.sim.broker_crash --seeds 200`.
"""

from __future__ import annotations

import pytest
from tests.sim.broker_crash import run_seed


@pytest.mark.parametrize("seed", range(12))
def test_everything_answered_survives_a_crash(seed: int) -> None:
    acked, states, violations = run_seed(seed)
    assert acked > 0
    assert states > 20
    assert violations == []
