"""Topics that are not there."""

from __future__ import annotations

from lowwater.spark.pipeline.model import Source
from lowwater.spark.pipeline.preflight import report_missing
from lowwater.spark.pipeline.problems import Report


def told(source: Source, *known: str) -> list[str]:
    report = Report()
    report_missing(source, known, report)
    return [str(problem) for problem in report.problems]


def test_a_topic_that_is_there_is_not_told():
    assert told(Source("orders", ("orders",)), "orders", "payments") == []


def test_a_topic_that_was_probably_meant_is_named():
    assert told(Source("orders", ("oders",)), "orders") == [
        "source.orders.topics: there is no topic 'oders'; did you mean orders? "
        "Else lowwater topics create oders makes it",
    ]


def test_where_no_name_is_near_it_says_how_to_make_one():
    assert told(Source("orders", partitions={"orders": (0,)}), "payments") == [
        "source.orders.partitions.orders: there is no topic 'orders'; lowwater topics create orders makes it"
    ]
