"""Finding what is asked for, and reading the query."""

from __future__ import annotations

import pytest

import lowwater.http.app  # noqa: F401  declares all operations
from lowwater.http.openapi import document
from lowwater.http.operations import OPERATIONS, find, read_query
from lowwater.http.problem import Problem


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (b"/consumer-groups/a", {"group": "a"}),
        (b"/consumer-groups/a%2Fb%3F%20%C3%A4", {"group": "a/b? ä"}),
        (b"/consumer-groups/%2e%2e", {"group": ".."}),
        (b"/consumer-groups/g/lag", {"group": "g"}),
    ],
)
def test_names_in_the_address_may_hold_anything(path: bytes, names: dict[str, str]) -> None:
    assert find("GET", path)[1] == names


def test_a_method_that_is_not_served_names_those_that_are() -> None:
    with pytest.raises(Problem) as caught:
        find("PATCH", b"/consumer-groups/g")
    assert caught.value.status == 405
    assert caught.value.headers == {"Allow": "DELETE, GET"}


@pytest.mark.parametrize(
    "path", [b"/nothing", b"/", b"/consumer-groups/a/b/c", b"/topics/t/records/1", b"/topics/a%2Fb"]
)
def test_an_unknown_address_is_404(path: bytes) -> None:
    with pytest.raises(Problem) as caught:
        find("GET", path)
    assert caught.value.status == 404


@pytest.mark.parametrize("path", [b"/consumer-groups/%FF", b"/consumer-groups/", b"/consumer-groups/" + b"x" * 5000])
def test_a_name_that_is_no_text_is_refused(path: bytes) -> None:
    with pytest.raises(Problem) as caught:
        find("GET", path + b"/lag")
    assert caught.value.status == 400


RECORDS = next(one for one in OPERATIONS if one.path.endswith("/partitions/{partition}/records"))


def test_values_of_the_query_have_their_types_and_defaults() -> None:
    assert read_query(RECORDS, [("offset", "7")]) == {"offset": 7, "max_bytes": 1 << 20, "group": None}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ([("offset", "x")], "offset must be an integer"),
        ([("offset", "1_0")], "offset must be an integer"),
        ([("offset", "-1")], "offset must be at least 0"),
        ([("ofset", "1")], "the parameter 'ofset' is not known here; known: offset, max_bytes, group"),
        ([("offset", "1"), ("offset", "2")], "the parameter 'offset' is given twice"),
        ([("group", "")], "the length of group must be at least 1"),
    ],
)
def test_a_wrong_query_is_told(given: list[tuple[str, str]], what: str) -> None:
    with pytest.raises(Problem, match=what.replace("(", r"\(")) as caught:
        read_query(RECORDS, given)
    assert caught.value.status == 400


def test_every_operation_stands_in_the_document_under_a_name_of_its_own() -> None:
    paths = document()["paths"]
    ids = [each["operationId"] for path in paths.values() for each in path.values()]
    assert len(ids) == len(OPERATIONS) == len(set(ids))
    for one in OPERATIONS:
        told = paths[one.path][one.method.lower()]
        assert [each["name"] for each in told["parameters"]] == [*one.names, *one.query]
