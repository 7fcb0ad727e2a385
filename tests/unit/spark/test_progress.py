"""Progress as Spark tells it, over several micro-batches."""

from __future__ import annotations

import json

import pytest

from lowwater.spark.course import METRICS, Course, prometheus
from lowwater.spark.progress import Behind, Progress
from lowwater.types import TopicPartition


def offset(**topics: dict[str, int]) -> dict[str, object]:
    return {"lowwater": 1, "lineage": "5f2c9a1e", "topics": {name: {"at": at} for name, at in topics.items()}}


def event(batch: int = 0, rows: int = 100, **others: object) -> dict[str, object]:
    """As a query with a deduplication writes them, cut to what is read."""
    told = {
        "id": "0b3e",
        "name": "orders.by_hour",
        "timestamp": "2026-03-05T09:00:00.000Z",
        "batchId": batch,
        "numInputRows": rows,
        "processedRowsPerSecond": 50.0,
        "durationMs": {"latestOffset": 12, "triggerExecution": 2000},
        "eventTime": {
            "max": "2026-03-02T20:13:32.694Z",
            "min": "2026-03-02T00:20:51.812Z",
            "watermark": "2026-03-02T18:13:32.694Z",
        },
        "stateOperators": [
            {"operatorName": "dedupe", "numRowsTotal": 600, "numRowsDroppedByWatermark": 2},
            {"operatorName": "stateStoreSave", "numRowsTotal": 87, "numRowsDroppedByWatermark": 1},
        ],
        "sources": [
            {
                "numInputRows": rows,
                "startOffset": offset(orders={"0": 0, "1": 0}),
                "endOffset": offset(orders={"0": 70, "1": 30}),
                "latestOffset": offset(orders={"0": 100, "1": 250}),
            }
        ],
        "sink": {"numOutputRows": -1},
        "observedMetrics": {"decoding_orders": {"rows": rows, "bad": 3}},
    }
    return {**told, **others}


def test_an_event_says_how_far_a_query_is():
    progress = Progress.of(event())
    assert (progress.query, progress.batch_id, progress.rows, progress.batch_ms) == ("orders.by_hour", 0, 100, 2000)
    assert progress.event_time_max_ms == 1772482412694
    assert progress.watermark_ms == 1772475212694
    assert (progress.late_rows, progress.state_rows) == (3, 687)
    assert progress.bad_rows == {"orders": 3}
    assert progress.rows_written is None


def test_lag_is_the_distance_of_the_end_from_the_latest_by_partition():
    assert Progress.of(event()).behind == Behind(records=250, least=30, most=220, mean=125.0)


def test_offsets_of_an_event_may_be_texts():
    sources = [{"endOffset": json.dumps(offset(a={"0": 7})), "latestOffset": json.dumps(offset(a={"0": 9}))}]
    source = Progress.of(event(sources=sources)).sources[0]
    assert source.topics == ("a",)
    assert source.at == {TopicPartition("a", 0): 7}
    assert source.behind == Behind(2, 2, 2, 2.0)


def test_a_partition_that_is_not_read_yet_counts_from_its_beginning():
    sources = [{"endOffset": offset(a={"0": 7}), "latestOffset": offset(a={"0": 7, "1": 5})}]
    assert Progress.of(event(sources=sources)).behind == Behind(5, 0, 5, 2.5)


def test_several_sources_are_behind_together():
    sources = [
        {"endOffset": offset(a={"0": 1}), "latestOffset": offset(a={"0": 4})},
        {"endOffset": offset(b={"0": 2}), "latestOffset": offset(b={"0": 2})},
    ]
    assert Progress.of(event(sources=sources)).behind == Behind(3, 0, 3, 1.5)


@pytest.mark.parametrize("end", [None, {"logOffset": 3}, "4", 17, {"sourceVersion": 1, "files": []}])
def test_sources_of_others_have_no_lag(end):
    progress = Progress.of(event(sources=[{"numInputRows": 5, "endOffset": end, "latestOffset": end}]))
    assert progress.behind is None
    assert progress.sources[0].rows == 5


def test_a_connectors_offsets_have_a_lag_too():
    sources = [{"endOffset": {"a": {"0": 1}}, "latestOffset": {"a": {"0": 4}}}]
    assert Progress.of(event(sources=sources)).behind == Behind(3, 3, 3, 3.0)


def test_an_event_without_rows_and_without_times():
    progress = Progress.of({"id": "0b3e", "batchId": 4, "timestamp": "2026-03-05T09:00:00.000Z"})
    assert (progress.query, progress.rows, progress.sources) == ("0b3e", 0, ())
    assert progress.event_time_max_ms is progress.watermark_ms is progress.behind is None


def test_a_watermark_of_1970_is_none_yet():
    assert Progress.of(event(eventTime={"watermark": "1970-01-01T00:00:00.000Z"})).watermark_ms is None


# ---- several micro-batches


def course(*events: dict[str, object]) -> Course:
    made = Course("by_hour")
    for each in events:
        made.add(Progress.of(each))
    return made


def test_a_course_sums_up_what_its_batches_did():
    made = course(event(0, 100), event(1, 300), event(2, 0))
    assert (made.batches, made.rows, made.late_rows, made.busy_ms) == (3, 400, 9, 6000)
    assert made.bad_rows == {"orders": 9}


def test_a_batch_that_is_told_twice_is_one_batch():
    assert course(event(0, 100), event(0, 0)).batches == 1


def test_rows_written_are_known_when_the_sink_counts_them():
    assert course(event(sink={"numOutputRows": 4}), event(1, sink={"numOutputRows": 5})).rows_written == 9


def test_time_left_follows_the_speed_of_late():
    made = course(event(0, 100))
    assert made.rows_s == 50
    assert made.time_left_s == 5
    made.add(Progress.of(event(1, 1000)))
    assert made.rows_s == pytest.approx(50 + 0.4 * 450)
    assert made.time_left_s == pytest.approx(250 / 230)


def test_empty_batches_do_not_change_the_speed():
    assert course(event(0, 100), event(1, 0)).rows_s == 50


def test_time_left_is_unknown_before_there_is_a_speed():
    assert course(event(0, 0)).time_left_s is None
    assert Course("by_hour").time_left_s is None


def test_a_query_that_has_read_everything_is_no_second_behind():
    done = [{"endOffset": offset(a={"0": 4}), "latestOffset": offset(a={"0": 4})}]
    assert course(event()).behind_s is None
    assert course(event(), event(1, sources=done)).behind_s == 0


def test_the_latest_event_time_stays():
    early = {"max": "2026-03-01T00:00:00.000Z", "watermark": "2026-03-02T18:13:32.694Z"}
    assert course(event(), event(1, eventTime=early)).event_time_max_ms == 1772482412694


# ---- Prometheus


def test_prometheus_gets_every_figure_that_is_known():
    made = course(event())
    made.behind_s = 12.5
    text = prometheus([made])
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples['lowwater_spark_rows_total{query="by_hour"}'] == "100"
    assert samples['lowwater_spark_records_behind_max{query="by_hour"}'] == "220"
    assert samples['lowwater_spark_seconds_behind{query="by_hour"}'] == "12.5"
    assert samples['lowwater_spark_bad_rows_total{query="by_hour",source="orders"}'] == "3"
    assert {name.partition("{")[0] for name in samples} == set(METRICS)
    assert text.count("# TYPE") == text.count("# HELP") == len(METRICS)


def test_prometheus_gets_nothing_that_is_not_known():
    text = prometheus([Course("new")])
    assert 'lowwater_spark_rows_total{query="new"} 0' in text
    assert "behind" not in text
    assert "None" not in text


def test_names_cannot_break_the_text_for_prometheus():
    assert 'query="a\\"b\\\\c\\n"' in prometheus([Course('a"b\\c\n')])
