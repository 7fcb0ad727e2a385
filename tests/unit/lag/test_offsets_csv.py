"""Offsets as lines of CSV."""

from __future__ import annotations

import pytest

from lowwater.errors import ConfigError
from lowwater.lag.offsets_csv import from_csv, to_csv
from lowwater.types import TopicPartition

ONE, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 12)


def test_one_group_is_without_its_name_and_several_are_with_it() -> None:
    assert to_csv({"g": {OTHER: 7, ONE: 5}}) == "orders,0,5\norders,12,7\n"
    assert to_csv({"g": {ONE: 5}, 'h,"i': {ONE: 6}}) == 'g,orders,0,5\n"h,""i",orders,0,6\n'


def test_what_was_written_is_read() -> None:
    for offsets in ({"g": {ONE: 5, OTHER: 7}}, {"g": {ONE: 5}, 'h,"i\n': {OTHER: 6}}):
        assert from_csv(to_csv(offsets), list(offsets)) == offsets


def test_quoted_cells_and_empty_lines_are_read() -> None:
    assert from_csv('"g","orders","0","5"\r\n\r\n', []) == {"g": {ONE: 5}}


@pytest.mark.parametrize(
    ("text", "groups", "told"),
    [("orders,0,5", [], "line 1 names no group"), ("orders,0,5", ["a", "b"], "line 1 names no group"),
     ("a,orders,0,5", ["b"], "line 1 is about group 'a'"), ("orders,0", ["a"], "line 1: expected"),
     ("orders,0,5\norders,0,6", ["a"], "line 2: orders-0 of group 'a' is there twice"),
     ("orders,0,-5", ["a"], "'-5' is not a number"), ("orders,x,5", ["a"], "'x' is not a number")],
)  # fmt: skip
def test_a_line_that_says_nothing_is_named(text: str, groups: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        from_csv(text, groups)
