"""What one reads does not depend on whether the format is `kafka` or `lowwater`."""

from __future__ import annotations

import json
import re

import pytest
from tests.spark.connector.both import FORMATS, KAFKA, LOWWATER, Both
from tests.spark.matrix import Case, Expectations, choices, cover
from tests.spark.prepared import COMMITTED, Prepared
from tests.spark.reading import Spark
from tests.spark.test_replay import forget_from
from tests.spark.writing import Topics


def is_shared(case: Case) -> bool:
    """Whether the connector has all of it too."""
    return "grammar" not in (case.start, case.end) and case.split != "maxPartitions"


def test_columns_types_and_nullability_are_the_same(both: Both, prepared: Prepared) -> None:
    for headers in ("false", "true"):
        options = {"subscribe": prepared.mixed, "includeHeaders": headers}
        batch, stream = ([read(form, options).schema.json() for form in FORMATS] for read in (both.read, both.stream))
        assert batch[0] == batch[1] == stream[0] == stream[1]


def test_rows_are_the_same_for_every_choice_of_options(both: Both, prepared: Prepared, against: str) -> None:
    """In streams, which take long, only some of them unless it is the oracle's turn."""
    expectations = Expectations(prepared)
    cases = [case for case in cover(choices) if is_shared(case)]
    streams = [case for case in cases if not case.is_batch]
    for case in [case for case in cases if case.is_batch] + streams[:: 1 if against == "kafka" else 4]:
        query = expectations.of(case)
        if query.rows is None:
            assert all("greater than" in both.failure(form, query.options) for form in FORMATS), str(case)
        elif case.is_batch:
            ours = both.rows(LOWWATER, query.options)
            assert ours == both.rows(KAFKA, query.options), str(case)
            assert [row for row, _ in ours] == query.rows, str(case)
        else:
            # The same micro-batches too: limits are shared out among partitions in the same way.
            assert both.drained(LOWWATER, query.options) == both.drained(KAFKA, query.options), str(case)


def test_tasks_are_as_many(both: Both, prepared: Prepared) -> None:
    everything = {"subscribe": ",".join(prepared.names)}
    for split in ({}, {"minPartitions": "9"}, {"minPartitions": "30"}):
        counts = [both.read(form, everything | split).rdd.getNumPartitions() for form in FORMATS]
        assert counts[0] == counts[1], split


@pytest.mark.parametrize("loses", ["false", "true"])
def test_what_was_deleted_is_missed_by_both_or_skipped_by_both(
    both: Both, spark: Spark, topics: Topics, loses: str
) -> None:
    topic = topics.create(1)
    topics.fill(topic, 1, 10)
    starts = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 1}}), "failOnDataLoss": loses}
    topics.delete_before(topic, 6)
    if loses == "true":
        for is_stream in (False, True):
            assert "failOnDataLoss" in both.failure(KAFKA, starts, is_stream=is_stream)
            ours = both.failure(LOWWATER, starts, is_stream=is_stream)
            assert re.search(rf"{topic}.*\[1, 6\).*failOnDataLoss", ours, re.DOTALL), ours
        return
    assert both.rows(LOWWATER, starts) == both.rows(KAFKA, starts)
    assert both.drained(LOWWATER, starts) == both.drained(KAFKA, starts)


def test_a_query_of_the_connector_goes_on_when_one_word_is_changed(both: Both, spark: Spark, topics: Topics) -> None:
    topic, checkpoint = topics.create(3), spark.checkpoint()
    topics.fill(topic, 3, 10)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
    before = both.drained(KAFKA, options, checkpoint)
    topics.fill(topic, 3, 5)
    after = both.drained(LOWWATER, options, checkpoint)
    topics.fill(topic, 3, 2)
    last = both.drained(LOWWATER, options, checkpoint)
    assert len(before) >= 3
    assert sorted(row for batch in before + after + last for row, _ in batch) == topics.read(topic)


def test_a_batch_that_the_connector_planned_and_did_not_finish_is_read_as_it_planned_it(
    both: Both, spark: Spark, topics: Topics
) -> None:
    topic, checkpoint = topics.create(2), spark.checkpoint()
    topics.fill(topic, 2, 9)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 6}
    planned = both.drained(KAFKA, options, checkpoint)
    forget_from(checkpoint, commits=len(planned) - 1, offsets=len(planned))
    again = both.drained(LOWWATER, {**options, "maxOffsetsPerTrigger": 2}, checkpoint)
    # Spark may run a batch of nothing behind it.
    assert [batch for batch in again if batch] == planned[-1:]


def test_committed_rows_are_the_same_while_a_transaction_is_open(both: Both, prepared: Prepared) -> None:
    options = {"subscribe": prepared.open, "kafka.isolation.level": COMMITTED, "startingOffsets": "earliest"}
    ours = both.rows(LOWWATER, options)
    assert ours == both.rows(KAFKA, options)
    assert len(ours) == 12
