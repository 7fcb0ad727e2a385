"""Which offsets of a query's last event belong to which source."""

import json

from tests.unit.spark.pipeline.files import model_of, spoilt

from lowwater.spark.pipeline.committing import ends
from lowwater.spark.pipeline.queries import queries

ORDERS = {"lowwater": 1, "topics": {"orders": {"at": {"0": 7}}}}
PAYMENTS = {"lowwater": 1, "topics": {"payments": {"at": {"0": 1}}, "refunds": {"at": {"0": 2}}}}


def told(text, *offsets):
    model = model_of(text)
    event = {"sources": [{"endOffset": offset} for offset in offsets]}
    found = {query.label: list(ends(model, query, event)) for query in queries(model)}
    return {label: [(source.name, end) for source, end in each] for label, each in found.items()}


def test_sources_are_known_by_their_topics_in_any_order():
    both = told(spoilt("limit = 1000", ""), PAYMENTS, ORDERS)
    assert both["again"] == [("payments", PAYMENTS), ("orders", ORDERS)]


def test_only_the_query_that_commits_does():
    assert told(spoilt("limit = 1000", ""), ORDERS)["out"] == []


def test_an_offset_may_come_as_text():
    assert told(spoilt("limit = 1000", ""), json.dumps(ORDERS))["again"] == [("orders", ORDERS)]


def test_a_pattern_takes_its_topics():
    text = spoilt('topics = ["payments", "refunds"]', 'pattern = "pay.*|ref.*"')
    assert told(text, PAYMENTS)["again"] == [("payments", PAYMENTS)]


def test_offsets_of_others_are_left_alone():
    other = {"lowwater": 1, "topics": {"other": {"at": {"0": 1}}}}
    assert told(spoilt("limit = 1000", ""), other, None, {"rate": 3}, "5")["again"] == []


TWICE = """\
name = "shop"
checkpoint = "run"
kafka.bootstrap.servers = "x:1"
[source.orders]
topics = "orders"
group = "a"
[source.again]
{again}
group = "b"
[[step]]
name = "both"
sql = "SELECT * FROM orders o JOIN again a ON o.key = a.key"
[sink.again]
from = "both"
format = "noop"
"""


def test_offsets_that_may_be_of_two_sources_are_left_to_them():
    """Each has committed itself; to commit one's for the other would take a group elsewhere."""
    assert told(TWICE.format(again='topics = "orders"'), ORDERS, ORDERS)["again"] == []
    assert told(TWICE.format(again='pattern = "ord.*"'), ORDERS)["again"] == []


def test_sources_of_other_partitions_are_told_apart():
    text = TWICE.format(again="partitions = { orders = [0] }")
    text = spoilt('topics = "orders"', "partitions = { orders = [1, 2] }", text)
    second = {"lowwater": 1, "topics": {"orders": {"at": {"1": 7, "2": 0}}}}
    assert told(text, ORDERS, second)["again"] == [("again", ORDERS), ("orders", second)]
