"""What may stand in a request."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.http.schema import array, boolean, integer, nullable, problems, record, string

BODY = record(offset=integer(minimum=0, maximum=9), optional={"names": array(string(minLength=1), maxItems=2)})


@pytest.mark.parametrize("body", [{"offset": 0}, {"offset": 9.0}, {"offset": 3, "names": ["a", "b"]}])
def test_what_fits_has_no_problems(body: Any) -> None:
    assert list(problems(BODY, body)) == []


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ([], "the body must be object"),
        ({}, "the body lacks 'offset'"),
        ({"offset": "3"}, "offset must be integer"),
        ({"offset": True}, "offset must be integer"),
        ({"offset": 1.5}, "offset must be integer"),
        ({"offset": -1}, "offset must be at least 0"),
        ({"offset": 10}, "offset must be at most 9"),
        ({"offset": 1, "name": "x"}, "the body has 'name', which is not known here; known: offset, names"),
        ({"offset": 1, "names": [""]}, "the length of names[0] must be at least 1"),
        ({"offset": 1, "names": ["a", "b", "c"]}, "the length of names must be at most 2"),
    ],
)
def test_each_problem_is_named(body: Any, what: str) -> None:
    assert list(problems(BODY, body)) == [what]


def test_null_passes_only_where_it_may() -> None:
    assert list(problems(nullable(string()), None)) == []
    assert list(problems(string(), None, "x")) == ["x must be string"]
    assert list(problems(boolean(), 1, "x")) == ["x must be boolean"]
    assert list(problems(string(enum=["a"]), "b", "x")) == ["x must be one of a"]
