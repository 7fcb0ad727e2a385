"""Transactions live through a failing network, rival instances and crashes; the judge finds nothing.

More by hand: `python -m tests.sim.transactions --seeds 10000`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.sim.transactions.broker_world import BrokerWorld
from tests.sim.transactions.runs import Totals, run, run_every_append, run_seeds

SEEDS, CHUNK = 500, 50


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What the broker says of thousands of crashes is not worth keeping."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_transactions_are_whole_or_not_at_all_and_all_of_them_end(first: int) -> None:
    totals = run_seeds(range(first, first + CHUNK))
    assert not totals.violations, "\n".join(totals.violations[:10])
    _assert_busy(totals)


def _assert_busy(totals: Totals) -> None:
    """A simulation in which nothing happens finds nothing."""
    assert totals.crashes > CHUNK
    assert totals.power_cuts > CHUNK
    assert totals.committed > 20 * CHUNK
    assert totals.read > 50 * CHUNK
    assert totals.fenced > 3 * CHUNK


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [7, 9])
def test_a_crash_at_any_append_tears_no_transaction(seed: int) -> None:
    totals = run_every_append([seed])
    assert not totals.violations, "\n".join(totals.violations[:10])
    assert totals.runs > 50


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(40))
def test_a_whole_broker_keeps_its_transactions_too(seed: int) -> None:
    report = run(seed, kind=BrokerWorld)
    assert not report.problems, "\n".join(report.problems)
    assert report.committed > 5


def test_the_same_seed_gives_the_same_run() -> None:
    assert run(7) == run(7)


def test_the_same_seed_gives_the_same_run_of_a_broker() -> None:
    assert run(7, kind=BrokerWorld) == run(7, kind=BrokerWorld)
