"""What a run tells while it runs, and at its end."""

from __future__ import annotations

import json

import pytest

from lowwater.spark.pipeline.failures import Failure
from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.reporting import Reporting, report
from lowwater.spark.pipeline.summary import Outcome, QuerySummary, Summary
from lowwater.types import TopicPartition

MODEL = Pipeline.parse(
    """
    name = "shop"
    checkpoint = "checkpoint"
    kafka.bootstrap.servers = "localhost:9092"
    [source.orders]
    topics = "orders"
    group = "g"
    decode = { format = "json", schema = "id long" }
    on_bad_row = { dead_letter = "dead" }
    [sink.out]
    from = "orders"
    format = "parquet"
    path = "/out"
    """,
).model


def event(batch: int, rows: int, at: int, latest: int) -> dict[str, object]:
    def offset(place: int) -> dict[str, object]:
        return {"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"orders": {"at": {"0": place}}}}

    return {
        "name": "shop.out",
        "timestamp": "2026-03-05T09:00:00.000Z",
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 1000},
        "sources": [{"numInputRows": rows, "endOffset": offset(at), "latestOffset": offset(latest)}],
    }


class Looking:
    """Stands in for looks at the broker: each finds what it was told."""

    def __init__(self, *found: int) -> None:
        self.asked: list[tuple[dict[TopicPartition, int], dict[TopicPartition, int]]] = []
        self.is_closed = False
        self._found = list(found)

    @property
    def oldest_ms(self) -> int | None:
        return self._found[len(self.asked) - 1] if self.asked else None

    def look(self, at: dict[TopicPartition, int], latest: dict[TopicPartition, int]) -> None:
        self.asked.append((at, latest))

    def close(self) -> None:
        self.is_closed = True


def test_every_change_is_told():
    told: list[tuple[str, int]] = []
    reporting = Reporting(lambda course: told.append((course.query, course.rows)))
    reporting.started("out")
    reporting.progressed("out", event(0, 10, 10, 30))
    reporting.progressed("out", event(1, 20, 30, 30))
    reporting.ended("out", None)
    assert told == [("out", 0), ("out", 10), ("out", 30)]


def test_lag_in_seconds_is_the_age_of_the_oldest_unread_record():
    looking = Looking(40_000)
    reporting = Reporting(lambda course: None, lambda query: looking, now_s=lambda: 100.0)
    reporting.started("out")
    reporting.progressed("out", event(0, 10, 10, 30))
    one = TopicPartition("orders", 0)
    assert looking.asked == [({one: 10}, {one: 30})]
    assert reporting.courses["out"].behind_s == 60.0
    reporting.close()
    assert looking.is_closed


def test_nobody_looks_when_everything_is_read():
    looking = Looking()
    reporting = Reporting(lambda course: None, lambda query: looking)
    reporting.started("out")
    reporting.progressed("out", event(0, 30, 30, 30))
    assert looking.asked == []
    assert reporting.courses["out"].behind_s == 0


def test_a_report_has_everything_that_is_known_of_a_run():
    reporting = Reporting(lambda course: None)
    reporting.started("out")
    reporting.progressed("out", event(0, 10, 10, 30))
    done = (QuerySummary("dead-letters/orders"), QuerySummary("out", 1, 10, {"orders": 2}))
    told = report(MODEL, Summary("shop", Outcome.STOPPED, done, 1.5), reporting.courses)
    assert json.loads(json.dumps(told)) == told
    assert (told["pipeline"], told["outcome"], told["exit_code"], told["seconds"]) == ("shop", "stopped", 3, 1.5)
    letters, out = told["queries"]
    assert (letters["output"], letters["groups"], letters["records_behind"]) == ("dead", [], None)
    assert (out["output"], out["groups"], out["error"]) == ("/out", ["g"], None)
    assert (out["rows"], out["bad_rows"], out["rows_per_second"]) == (10, {"orders": 2}, 10)
    assert out["records_behind"] == {"all": 20, "min": 20, "max": 20, "avg": 20}


def test_a_report_of_a_failure_says_what_it_was():
    failed = (QuerySummary("out", failure=Failure("the broker is gone", "and much more")),)
    told = report(MODEL, Summary("shop", Outcome.FAILED, failed, 1.5), {})
    assert (told["exit_code"], told["queries"][0]["error"]) == (1, "the broker is gone")


@pytest.mark.parametrize("query", ["out", "dead-letters/orders"])
def test_figures_for_prometheus_go_by_the_names_of_queries(query):
    reporting = Reporting(lambda course: None)
    reporting.started(query)
    assert f'query="{query}"' in reporting.prometheus()
