"""Suite 5: the Nth disk operation fails, for N = 1, 2, … until none is left to fail.

After EIO or a failed sync a log stays down until a restart; after a full disk or a short write it goes on as soon as
there is room. Neither loses anything that was promised: what is judged is the disk after a kill and after a power cut.
"""

from __future__ import annotations

import pytest
from tests.sim.fault_world import run_faults
from tests.sim.scripts import SCRIPTS

from lowwater.testing.faults_disk import FaultKind

# Long scripts have hundreds of operations: every so many of them will do here, `python -m tests.crash.faults` has all.
EVERY = {
    "compactions": 11,
    "compacted_transactions": 13,
    "deletions": 5,
    "producers": 5,
    "transactions": 7,
    "restarts": 4,
    "rolls": 3,
    "ceilings": 4,
    "all_expired": 3,
}
# A compaction that cannot read just gives up.
READING = sorted(SCRIPTS.keys() - {"compactions", "compacted_transactions"})


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("kind", [FaultKind.EIO, FaultKind.SYNC])
def test_an_error_of_the_disk_stops_the_log_and_loses_nothing(script: str, kind: FaultKind) -> None:
    report = run_faults(script, kind, every=EVERY.get(script, 1))
    assert report.violations == []
    assert report.stopped > 0
    assert report.resumed == 0


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("kind", [FaultKind.ENOSPC, FaultKind.SHORT_WRITE])
def test_a_full_disk_is_survived_and_service_goes_on(script: str, kind: FaultKind) -> None:
    report = run_faults(script, kind, lasting=True, every=EVERY.get(script, 1))
    assert report.violations == []
    assert report.stopped == 0
    assert report.resumed > 0


@pytest.mark.parametrize("script", READING)
@pytest.mark.parametrize("lasting", [False, True])
def test_an_unreadable_sector_destroys_nothing(script: str, lasting: bool) -> None:
    report = run_faults(script, FaultKind.READ, lasting=lasting, every=1 + EVERY.get(script, 1) // 4)
    assert report.violations == []
