"""Tests of pipelines: what stands in their files, and how rows are compared."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from lowwater.errors import ConfigError
from lowwater.spark.pipeline.fixtures import compare, load_fixtures, parse_fixtures, result_of
from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.problems import PipelineError
from lowwater.spark.pipeline.row_values import misfits

MODEL = Pipeline.parse(
    """
    name = "shop"
    checkpoint = "run"
    kafka.bootstrap.servers = "localhost:9092"
    source.orders.topics = "orders"
    step = [{ name = "big", sql = "SELECT * FROM orders" }]
    sink.out = { from = "big", format = "console" }
    """
).model


def problems(text):
    with pytest.raises(PipelineError) as caught:
        parse_fixtures(text, MODEL, where="t.toml")
    return str(caught.value)


def test_a_case_has_rows_for_sources_and_for_results():
    (case,) = parse_fixtures(
        """
        [[case]]
        name = "one"
        given.orders = [{ key = "a" }, { key = "b" }]
        expect.big = []
        """,
        MODEL,
    ).cases
    assert (case.name, case.given, case.expect) == ("one", {"orders": [{"key": "a"}, {"key": "b"}]}, {"big": []})


def test_a_case_without_a_name_has_a_number():
    assert parse_fixtures("case = [{ expect.big = [] }]", MODEL).cases[0].name == "case 1"


def test_a_sink_stands_for_what_it_writes():
    assert parse_fixtures("case = [{ expect.out = [] }]", MODEL).cases[0].expect == {"out": []}
    assert (result_of(MODEL, "out"), result_of(MODEL, "orders")) == ("big", "orders")


WRONG = {
    "an unknown source": ("[[case]]\ngiven.order = []\nexpect.big = []", "t.toml:2:7: case[0].given.order", "orders?"),
    "a step is given": ("[[case]]\ngiven.big = []\nexpect.big = []", "t.toml:2:7", "there are orders"),
    "an unknown step": ("[[case]]\nexpect.bgi = []", "t.toml:2:8", "did you mean big?"),
    "an unknown key": ("[[case]]\nexpected.big = []\nexpect.big = []", "t.toml:2:1", "there are name, given, expect"),
    "no list": ("[[case]]\nexpect.big = 1", "t.toml:2:14", "a list of rows"),
    "no rows in it": ("[[case]]\nexpect.big = [1]", "t.toml:2:14", "a list of rows"),
    "no expectation": ("[[case]]\ngiven.orders = []", "t.toml:1:1", "expect is missing"),
    "rows of two kinds": ("[[case]]\nexpect.big = [{ a = 1 }, { b = 1 }]", "t.toml:2:14", "the same columns"),
    "no test": ("", "t.toml", "there is no test"),
    "something else": ("tests = 1\ncase = [{ expect.big = [] }]", "t.toml:1:1", "[[case]]"),
}


@pytest.mark.parametrize(("text", "place", "what"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_with_its_place(text, place, what):
    told = problems(text)
    assert told.startswith(place), told
    assert what in told


def test_everything_that_is_wrong_is_told_at_once():
    assert len(problems("[[case]]\ngiven.x = []\nexpect.y = []\nz = 1").splitlines()) == 3


def test_a_file_that_is_not_there_or_no_toml_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml"):
        load_fixtures(str(tmp_path / "none.toml"), MODEL)
    with pytest.raises(ConfigError, match="not TOML"):
        parse_fixtures("[[case", MODEL)


# ---- comparing


def test_rows_are_the_same_in_any_order():
    assert compare("c", "s", [{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}]) is None


def test_a_row_counts_as_often_as_it_is_there():
    difference = compare("c", "s", [{"a": 1}], [{"a": 1}, {"a": 1}])
    assert (difference.missing, difference.unexpected) == ((), ("a=1",))


def test_only_the_columns_that_are_expected_count():
    assert compare("c", "s", [{"a": 1}], [{"a": 1, "b": 2}]) is None


def test_a_column_that_is_not_there_is_missing():
    difference = compare("c", "s", [{"a": 1, "b": 2}], [{"a": 1}])
    assert (difference.missing, difference.unexpected) == (("a=1, b=2",), ("a=1, b=null",))


def test_no_rows_are_expected_of_a_step_that_gives_some():
    difference = compare("one", "big", [], [{"a": 1, "b": "x"}])
    assert str(difference) == "one: big differs\n  unexpected  a=1, b='x'"


NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SAME = {
    "a moment in another zone": (datetime(2026, 3, 2, 13, tzinfo=timezone(timedelta(hours=1))), NOON),
    "a moment without a zone": (datetime(2026, 3, 2, 12), NOON),
    "bytes as text": ("abc", b"abc"),
    "a decimal": (1, Decimal("1.00")),
    "a sum of floats": (0.3, 0.1 + 0.2),
    "an array": ([1, 2], [1, 2]),
    "a struct": ({"x": 1}, {"x": 1}),
    "a map": ({"x": 1}, [("x", 1)]),
    "a date": (date(2026, 3, 2), date(2026, 3, 2)),
    "null in a struct": ({"x": None}, {"x": None}),
}


@pytest.mark.parametrize(("expected", "found"), SAME.values(), ids=SAME.keys())
def test_values_are_the_same_however_they_are_written(expected, found):
    assert compare("c", "s", [{"a": expected}], [{"a": found}]) is None


@pytest.mark.parametrize(
    ("expected", "found"), [(1, 2), (0.3, 0.31), ("a", "b"), ([1, 2], [2, 1]), (NOON, NOON + timedelta(microseconds=1))]
)
def test_values_that_differ_differ(expected, found):
    assert compare("c", "s", [{"a": expected}], [{"a": found}]) is not None


# ---- values that cannot be of their column's type


class Kind:
    """A type of Spark, by what is asked of it."""

    def __init__(self, name, **inner):
        self.typeName = self.simpleString = lambda: name
        self.__dict__ |= inner


class Field:
    def __init__(self, name, kind):
        self.name, self.dataType = name, kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", "double"),
        ("x", "decimal"),
        ("x", "timestamp"),
        ("2026-13-01", "date"),
        (1.5, "long"),
        (True, "integer"),
        (2**31, "integer"),
        (1, "boolean"),
        ({}, "string"),
        (7, "array"),
        ("x", "struct"),
    ],
)
def test_a_value_of_another_type_is_found(value, kind):
    [(path, what)] = misfits(value, Kind(kind), ("row",))
    assert path == ("row",)
    assert kind in what


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "double"),
        ("1.5", "decimal"),
        ("2026-03-02", "timestamp"),
        (date(2026, 3, 2), "timestamp"),
        (-(2**31), "integer"),
        ("text", "binary"),
        (1, "string"),
        (None, "struct"),
        ("x", "interval"),
    ],
)
def test_values_that_are_made_to_fit_are_no_misfits(value, kind):
    assert not list(misfits(value, Kind(kind), ()))


def test_a_value_inside_another_is_told_by_its_own_place():
    stars = Kind("array", elementType=Kind("integer"))
    note = Kind("struct", fields=[Field("stars", Kind("map", valueType=stars)), Field("text", Kind("string"))])
    [(path, _)] = misfits({"stars": {"best": [5, "x"]}}, note, ("note",))
    assert path == ("note", "stars", "best", 1)
