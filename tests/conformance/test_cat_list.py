"""-L and -Q: the same command lines through kcat and `lowwater cat` print the same."""

from __future__ import annotations

import pytest
from tests.conformance.cats.runs import cat, kcat
from tests.conformance.cats.shelf import Shelf, stocked
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

pytestmark = [pytest.mark.peer("kcat"), pytest.mark.peer("confluent")]


@pytest.fixture(scope="module")
def shelf(broker: UnderTest, new_topic: NewTopic) -> Shelf:
    return stocked(broker.bootstrap, new_topic)


@pytest.mark.parametrize("line", ["-L", "-LJ", "-L -t {}", "-JLt {}", "-L -t no!topic", "-LJ -t no!topic", "-L file"])
def test_metadata_is_listed_alike(shelf: Shelf, line: str) -> None:
    arguments = ("-b", shelf.bootstrap, *line.format(shelf.spread).split(" "))
    mine, theirs = cat(*arguments), kcat(*arguments)
    assert mine[:2] == theirs[:2]


def test_a_broker_that_is_called_otherwise_is_the_one_that_was_asked(shelf: Shelf) -> None:
    arguments = ("-L", "-b", shelf.bootstrap.replace("127.0.0.1", "localhost"), "-t", shelf.spread)
    assert cat(*arguments)[:2] == kcat(*arguments)[:2]


QUERIES = [
    "{0}:0:2001",
    "{0}:1:2002",
    "{0}:0:-1",
    "{0}:0:-2",
    "{0}:2:0",
    "{0}:0:99999999999",
    "{0}:9:0",
    "no-such-topic:0:0",
]


@pytest.mark.parametrize("as_json", ["", "J"])
@pytest.mark.parametrize("query", QUERIES)
def test_offsets_are_found_alike(shelf: Shelf, query: str, as_json: str) -> None:
    arguments = (f"-Q{as_json}", "-b", shelf.bootstrap, "-t", query.format(shelf.spread))
    assert cat(*arguments) == kcat(*arguments)


@pytest.mark.parametrize("as_json", ["", "J"])
def test_many_offsets_are_listed_by_topic_and_partition(shelf: Shelf, as_json: str) -> None:
    wanted = [f"-t{shelf.spread}:1:2001", f"-t{shelf.mixed}:0:10003", f"-t{shelf.spread}:0:1"]
    arguments = (f"-Q{as_json}", "-b", shelf.bootstrap, *wanted)
    assert cat(*arguments) == kcat(*arguments)
