"""Late rows are told, and go on."""

from __future__ import annotations

import logging

import pyarrow as pa

from lowwater.spark.lateness import telling


def batch(*times_ms):
    return pa.record_batch({"timestamp": pa.array([each * 1000 for each in times_ms], pa.timestamp("us", tz="UTC"))})


def test_late_rows_are_counted_over_all_batches_and_handed_on(caplog):
    given = [batch(5, 10, 9), batch(), batch(3, 11)]
    assert list(telling(iter(given), 10)) == given
    assert [record.getMessage().split(" rows")[0] for record in caplog.records] == ["3"]


def test_nothing_is_told_where_no_row_is_late(caplog):
    caplog.set_level(logging.DEBUG)
    list(telling(iter([batch(10, 11)]), 10))
    assert not caplog.records


def test_rows_that_nobody_wants_to_the_end_are_told_as_far_as_they_were_read(caplog):
    rows = telling(iter([batch(1), batch(2)]), 10)
    next(rows)
    rows.close()
    assert caplog.records[0].getMessage().startswith("1 rows")
