"""Suite 3: a power cut or a kill after any disk operation loses nothing that was promised.

Here a sample, seeded and always the same; `python -m tests.sim.enumeration` tries every state.
"""

from __future__ import annotations

import pytest
from tests.sim.enumeration import Effort, enumerate_script
from tests.sim.scripts import SCRIPTS

SAMPLE = Effort(subsets=8, extra=4, again=0.04)


@pytest.mark.parametrize("script", SCRIPTS)
def test_nothing_promised_is_lost_in_a_crash(script: str) -> None:
    outcome = enumerate_script(script, SAMPLE)
    assert outcome.states > 100
    assert outcome.violations == []
