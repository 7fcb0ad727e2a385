"""Changes of offsets as records of the journal, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.client.group_offsets import Committed
from lowwater.lag.changes import DONE, PART_BYTES, Change, from_records, nothing_done, outcome_record, to_records
from lowwater.types import TopicPartition

ONE, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
CHANGE = Change(
    "c1", "billing", 5, "ann@desk", "reset", {ONE: Committed(7, 3, "note"), OTHER: None},
    {ONE: Committed(0), OTHER: Committed(0)},
)  # fmt: skip

offsets = st.one_of(st.none(), st.builds(Committed, st.integers(0, 1 << 62), st.integers(-1, 99), st.text(max_size=9)))
partitions = st.builds(TopicPartition, st.sampled_from(["a", "b.c"]), st.integers(0, 5))


def values(change: Change) -> list[bytes | None]:
    return [value for _, value in to_records(change)]


@given(
    st.text(), st.text(), st.dictionaries(partitions, st.tuples(offsets, offsets)), st.one_of(st.none(), st.text())
)  # fmt: skip
def test_a_change_comes_back_as_it_was(
    group: str, who: str, moved: dict[TopicPartition, tuple[Committed | None, Committed | None]], undoes: str | None
) -> None:
    before = {one: old for one, (old, _) in moved.items()}
    after = {one: new for one, (_, new) in moved.items()}
    group = group.encode("utf-8", "replace").decode()
    change = Change("id", group, 9, who, "reset", before, after, undoes)
    assert from_records(values(change)) == [change]


def test_what_became_of_it_is_told() -> None:
    done = outcome_record(CHANGE, DONE)[1]
    [found] = from_records([*values(CHANGE), done])
    assert found.outcome == DONE
    assert from_records(values(CHANGE))[0].outcome == ""


def test_a_large_change_comes_in_parts_and_counts_when_all_are_there() -> None:
    many = {TopicPartition("orders", each): Committed(each, 0, "x" * 200) for each in range(5000)}
    change = Change("c2", "billing", 5, "ann", "delete", many, dict.fromkeys(many))
    parts = values(change)
    assert len(parts) > 3
    assert all(len(part or b"") < 2 * PART_BYTES for part in parts)
    assert from_records([*reversed(parts), *parts]) == [change]
    assert from_records(parts[:-1]) == []


def test_what_others_have_written_is_passed_over() -> None:
    strange = [
        None,
        b"",
        b"[]",
        b"no json",
        b'{"lowwater_change": 99}',
        b'{"lowwater_change": 1, "id": "x", "part": 0}',
    ]
    assert from_records([*strange, *values(CHANGE), json.dumps({"a": 1}).encode()]) == [CHANGE]


ABOUT = json.loads(to_records(CHANGE)[0][1])


@pytest.mark.parametrize(
    "strange",
    [{"part": "first"}, {"part": None}, {"part": []}, {"part": float("inf")}, {"id": 7}, {"id": {}}, {"at_ms": "noon"},
     {"at_ms": None}, {"parts": "one"}, {"parts": 1 << 60}, {"group": 7}, {"who": None}, {"verb": {}}, {"undoes": 7},
     {"offsets": 7}, {"offsets": [[1]]}, {"offsets": [["t", "0", None, None]]}, {"offsets": [[{}, 0, None, None]]},
     {"offsets": [["t", 0, [1], None]]}, {"offsets": [["t", 0, None, ["1", 2, ""]]]}],
)  # fmt: skip
def test_a_record_that_somebody_made_up_is_passed_over(strange: dict[str, Any]) -> None:
    made_up = json.dumps({**ABOUT, "id": "made up", **strange}).encode()
    deep = b"[" * 100_000
    assert from_records([made_up, deep, *values(CHANGE)]) == [CHANGE]


def test_what_was_refused_as_a_whole_was_not_made() -> None:
    for outcome, may_be_made in (("", True), (DONE, True), ("1 of 2 failed", True), (nothing_done("no"), False)):
        assert replace(CHANGE, outcome=outcome).may_be_made is may_be_made


def test_a_document_has_old_and_new_offsets() -> None:
    assert CHANGE.document()["partitions"] == [
        {"topic": "orders", "partition": 0, "before": 7, "after": 0},
        {"topic": "orders", "partition": 1, "before": None, "after": 0},
    ]
