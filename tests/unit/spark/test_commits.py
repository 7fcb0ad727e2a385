"""What a query commits to its group."""

from __future__ import annotations

import pytest

from lowwater.client.group_offsets import Committed
from lowwater.spark.commits import Decision, decide, lineage_of, note
from lowwater.types import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
MINE, OTHER = "5f2c9a1e", "00000001"


def by(lineage, offset):
    return Committed(offset, metadata=note(lineage))


def test_what_was_never_committed_is():
    assert decide({A0: 5, A1: 0}, MINE, {}) == Decision({A0: by(MINE, 5), A1: by(MINE, 0)})


def test_the_group_follows_wherever_somebody_else_has_left_it():
    assert decide({A0: 5}, MINE, {A0: Committed(900)}).offsets == {A0: by(MINE, 5)}
    assert decide({A0: 5}, MINE, {A0: Committed(5, metadata="by hand")}).offsets == {A0: by(MINE, 5)}


def test_the_same_query_never_takes_it_back():
    assert decide({A0: 5, A1: 7}, MINE, {A0: by(MINE, 6), A1: by(MINE, 7)}) == Decision({})


def test_the_same_query_takes_it_forward():
    assert decide({A0: 5}, MINE, {A0: by(MINE, 4)}) == Decision({A0: by(MINE, 5)})


def test_another_query_is_noticed():
    found = decide({A0: 5, A1: 5}, MINE, {A0: by(OTHER, 9), A1: by(MINE, 4)})
    assert found == Decision({A0: by(MINE, 5), A1: by(MINE, 5)}, frozenset({OTHER}))


@pytest.mark.parametrize(
    "metadata", ["", "x", "lowwater:", "lowwater:5F2C9A1E", " lowwater:5f2c9a1e", "lowwater:5f2c9a1e0"]
)
def test_other_notes_are_nobodys(metadata):
    assert lineage_of(metadata) is None


def test_a_note_names_the_query():
    assert lineage_of(note(MINE)) == MINE
