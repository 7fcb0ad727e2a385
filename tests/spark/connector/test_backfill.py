"""What a watermark drops of the backlog of examples/backfill when Spark's own connector reads it."""

from __future__ import annotations

from tests.conformance.under_test import UnderTest
from tests.spark.backlog import ROWS, Backfill
from tests.spark.reading import Spark


def test_a_limited_backlog_loses_rows_with_the_connector_and_none_with_a_cut(spark: Spark, broker: UnderTest) -> None:
    backfill = Backfill(broker.bootstrap)
    outcomes = {way: backfill.run(spark, way) for way in ("connector", "aligned")}
    print({way: outcome.dropped for way, outcome in outcomes.items()})
    assert [outcome.rows for outcome in outcomes.values()] == [ROWS, ROWS]
    assert outcomes["connector"].dropped > 0
    assert outcomes["aligned"].dropped == 0
