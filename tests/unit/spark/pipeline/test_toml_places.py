"""Lines and columns of everything in a TOML text."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.spark.pipeline.toml_places import Place, Places

TEXT = '''\
# a comment with = and [brackets]
name = "orders"   # another = one
[kafka]
bootstrap.servers = "a:1"
  "quoted.key" = 'it''s'
[source.orders]
watermark = { column = "at", delay = "1m" }
topics = [
  "a", # first
  "b",
]
[[step]]
name = "x"
sql = """
SELECT ''
  FROM orders"""
[[step]]
sql = \'\'\'
line\'\'\'
[sink."two words"]
path = "C:\\\\ # no comment"
at = 1979-05-27 07:32:00
'''.replace("'it''s'", "'its'")


@pytest.fixture
def places():
    tomllib.loads(TEXT)
    return Places(TEXT)


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("name",), 2, 1),
        (("kafka",), 3, 1),
        (("kafka", "bootstrap"), 4, 1),
        (("kafka", "bootstrap", "servers"), 4, 11),
        (("kafka", "quoted.key"), 5, 3),
        (("source", "orders"), 6, 1),
        (("source", "orders", "watermark", "delay"), 7, 30),
        (("step",), 12, 1),
        (("step", 0, "name"), 13, 1),
        (("step", 1), 17, 1),
        (("step", 1, "sql"), 18, 1),
        (("sink", "two words", "path"), 21, 1),
    ],
)
def test_keys_have_places(places, path, line, column):
    assert places.key(path) == Place(line, column)


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("name",), 2, 8),
        (("source", "orders", "topics", 1), 10, 3),
        (("source", "orders", "watermark", "column"), 7, 24),
        (("sink", "two words", "at"), 22, 6),
        (("source", "orders"), 6, 1),
    ],
)
def test_values_have_places(places, path, line, column):
    assert places.value(path) == Place(line, column)


def test_what_is_missing_is_at_the_nearest_key_around_it(places):
    assert places.key(("source", "orders", "start")) == Place(6, 1)
    assert places.key(("nothing",)) is None


def test_a_place_inside_a_long_text_is_counted_from_its_first_line(places):
    assert places.inside(("step", 0, "sql"), 1, 7) == Place(15, 8)
    assert places.inside(("step", 0, "sql"), 2, 7) == Place(16, 8)
    assert places.inside(("step", 1, "sql"), 1, 0) == Place(19, 1)


def test_a_place_inside_a_short_text_is_in_its_line(places):
    assert places.inside(("name",), 1, 2) == Place(2, 11)


def test_lines_are_counted_the_same_with_carriage_returns():
    assert Places('a = 1\r\nb = """\r\nx\r\ny"""\r\nc = 3\r\n').key(("c",)) == Place(5, 1)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), NAMES)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


def written(value):
    """TOML, in one line each."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        escaped = "".join(one if one.isalnum() and one.isascii() else f"\\U{ord(one):08x}" for one in value)
        return f'"{escaped}"'
    if isinstance(value, list):
        return "[ " + ", ".join(map(written, value)) + " ]"
    return "{ " + ", ".join(f"{written(name)} = {written(inner)}" for name, inner in value.items()) + " }"


def paths(value, path=()):
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from paths(inner, (*path, name))


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_every_value_of_any_document_is_found_where_it_stands(document):
    text = "".join(f"{written(name)} = {written(value)}\n" for name, value in document.items())
    assert tomllib.loads(text) == document
    places = Places(text)
    lines = text.split("\n")
    for path, value in paths(document):
        line, column = places.value(path)
        assert lines[line - 1][column - 1 :].startswith(written(value))
