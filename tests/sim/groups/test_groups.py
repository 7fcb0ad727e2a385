"""Consumer groups live through a failing network, crashes and changing topics; the judges find nothing.

More by hand: `python -m tests.sim.groups --seeds 10000`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.sim.groups.broker_world import run as run_broker
from tests.sim.groups.coverage import ALL_CELLS, NOT_DEMANDED
from tests.sim.groups.runs import Totals, run, run_every_append, run_seeds

SEEDS, CHUNK = 500, 50
RUNS_OF_CELLS = 100


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What the broker says of thousands of crashes is not worth keeping."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_groups_stay_right_and_come_to_work_whatever_fails(first: int) -> None:
    totals = run_seeds(range(first, first + CHUNK))
    assert not totals.violations, "\n".join(totals.violations[:10])
    _assert_busy(totals)


def _assert_busy(totals: Totals) -> None:
    """A simulation in which nothing happens finds nothing."""
    assert totals.crashes > CHUNK
    assert totals.power_cuts > CHUNK
    assert totals.reloads > CHUNK
    assert totals.acked > 100 * CHUNK
    assert totals.generations > 2 * CHUNK
    assert totals.assignments > 3 * CHUNK


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [4, 7])
def test_a_crash_at_any_append_changes_nothing(seed: int) -> None:
    totals = run_every_append([seed])
    assert not totals.violations, "\n".join(totals.violations[:10])
    assert totals.runs > 20


@pytest.mark.timeout(300)
def test_the_runs_meet_every_cell_of_the_classic_table() -> None:
    met = run_seeds(range(RUNS_OF_CELLS)).cells
    assert not ALL_CELLS - NOT_DEMANDED - met


@pytest.mark.parametrize("seed", range(20))
def test_a_whole_broker_keeps_its_groups_right_too(seed: int) -> None:
    report = run_broker(seed)
    assert not report.problems, str(report)
    assert report.answered > 50


def test_the_same_seed_gives_the_same_run() -> None:
    assert run(7) == run(7)
