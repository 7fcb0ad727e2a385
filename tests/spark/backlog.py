"""The backlog of examples/backfill in a topic of its own, read in any of the ways."""

from __future__ import annotations

from collections.abc import Mapping

from examples.backfill import sample
from examples.backfill.loading import load, read_times
from examples.backfill.queries import Outcome, run, ways
from tests.fresh import fresh
from tests.spark.reading import Spark

CUT, LIMIT = "1d", 700
ROWS = sum(map(len, sample.times_ms().values()))


class Backfill:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = fresh("backfill")
        load(bootstrap, self.topic, sample.times_ms())
        self.times_ms: Mapping[int, Mapping[int, int]] = read_times(bootstrap, self.topic)

    def run(self, spark: Spark, way: str) -> Outcome:
        return run(
            spark.session,
            ways(CUT)[way],
            self.bootstrap,
            self.topic,
            limit=LIMIT,
            checkpoint=spark.checkpoint(),
            times_ms=self.times_ms,
        )
