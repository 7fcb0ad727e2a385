"""Which topics are meant."""

import click
import pytest

from lowwater.cli.topics.choosing import chosen, not_there

NAMES = ["orders", "orders.eu", "orders-us", "clicks"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["clicks", "orders"], ["clicks", "orders"]),
        (["orders*"], ["orders", "orders-us", "orders.eu"]),
        (["orders?us"], ["orders-us"]),
        (["[co]*s"], ["clicks", "orders", "orders-us"]),
        (["^orders[.-](eu|us)"], ["orders-us", "orders.eu"]),
        (["orders", "^orders"], ["orders"]),
    ],
)
def test_names_patterns_and_expressions(wanted, found):
    assert chosen(wanted, NAMES) == (found, [])


def test_a_name_that_is_not_there_is_missing_and_a_pattern_only_where_one_is_needed():
    assert chosen(["order", "x*"], NAMES) == ([], ["order"])
    assert chosen(["order", "x*"], NAMES, at_least_one=True) == ([], ["order", "x*"])


def test_an_expression_that_is_none_is_refused():
    with pytest.raises(click.UsageError, match="is not a regular expression"):
        chosen(["^("], NAMES)


def test_what_sounds_alike_is_offered():
    assert str(not_there(["order"], NAMES)).startswith("no topic is called 'order'; did you mean orders")
    assert "shows what there is: 4 topics" in str(not_there(["zzz"], NAMES))
    kept = ["__consumer_offsets", "__lowwater_offset_changes"]
    assert "shows what there is: 4 topics" in str(not_there(["zzz"], [*NAMES, *kept]))
    assert "'a', 'b', 'c', 'd', 'e' and 2 more" in str(not_there(list("abcdefg"), []))
