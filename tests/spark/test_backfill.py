"""The experiment of examples/backfill: what a watermark drops of a backlog that is uneven in time."""

from __future__ import annotations

import pytest
from tests.conformance.under_test import UnderTest
from tests.spark.backlog import LIMIT, ROWS, Backfill
from tests.spark.reading import Spark


@pytest.fixture(scope="module")
def backfill(broker: UnderTest) -> Backfill:
    return Backfill(broker.bootstrap)


def test_batches_that_end_at_one_moment_lose_nothing(spark: Spark, backfill: Backfill) -> None:
    outcome = backfill.run(spark, "aligned")
    assert (outcome.rows, outcome.dropped) == (ROWS, 0)
    for batch in outcome.batches:
        assert batch.rows <= LIMIT
        assert batch.asked <= 14
    reads = [batch for batch in outcome.batches if batch.rows]
    assert all(each < batch.cut_ms for batch in reads for each in batch.reached_ms.values())


def test_batches_by_shares_lose_rows(spark: Spark, backfill: Backfill) -> None:
    """So that the experiment shows what it is to show."""
    outcome = backfill.run(spark, "plain")
    assert outcome.rows == ROWS
    assert outcome.dropped > 0
