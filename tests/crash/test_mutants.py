"""The mutation check itself: every patch still applies, and the suites catch the quickest of them.

All of them: `make mutants`.
"""

from __future__ import annotations

import pytest
from tests.crash.mutants.catalogue import mutants, parse
from tests.crash.mutants.patches import Mutant, PatchError, Verdict, apply, check_applies, run
from tests.crash.mutants.random_mutants import draw

CATALOGUE = {mutant.name: mutant for mutant in mutants()}
# One of each theme, with a suite that meets it within seconds.
QUICK = {
    "flush-without-fsync": "tests/sim/test_broker_crash.py",
    "reply-before-durable": "tests/sim/test_broker_crash.py",
    "metadata-not-synced": "tests/sim/test_broker_crash.py",
    "ceiling-not-synced": "tests/sim/test_crash_enumeration.py",
    "recovery-without-crc": "tests/unit/log/test_recovery.py",
    "short-write-not-cut": "tests/unit/log",
    "dedupe-skipped": "tests/unit/log/test_producers.py",
    "spark-begin-ignored": "tests/unit/spark/test_offsets.py",
    "spark-limit-one-more": "tests/unit/spark/test_limits.py",
    "spark-order-delay-not-read": "tests/unit/spark/test_slice_extents.py",
    "spark-cut-off-grid": "tests/unit/spark/aligning",
    "once-last-batch-again": "tests/unit/spark/exactly_once",
}


@pytest.mark.parametrize("mutant", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_the_patch_still_applies(mutant: Mutant) -> None:
    check_applies(mutant)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", QUICK)
def test_the_suites_catch_a_broken_rule(name: str) -> None:
    assert run(CATALOGUE[name], [QUICK[name]]).verdict is Verdict.CAUGHT


def test_a_patch_that_no_longer_applies_is_an_error() -> None:
    [mutant] = parse("== gone | log/flush.py | some rule\n-no such line\n+another")
    with pytest.raises(PatchError, match="occurs 0 times"):
        check_applies(mutant)
    with pytest.raises(PatchError, match="occurs 2 times"):
        apply(Mutant("twice", "", "", "a", "b"), "a a")


def test_random_mutants_are_drawn_by_seed_and_change_one_place() -> None:
    drawn = draw(20, seed=3)
    assert [mutant.name for mutant in drawn] == [mutant.name for mutant in draw(20, seed=3)]
    assert all(mutant.old != mutant.new for mutant in drawn)
