"""What a sink's record in the ledger says, how it is written, and what comes of it."""

from __future__ import annotations

import json

import pytest

from lowwater.spark.exactly_once.errors import LedgerError
from lowwater.spark.exactly_once.state import REMEMBERED_MAX, Intent, SinkState, Transaction, from_value, to_value

ONE = Intent("query a", 7, (Transaction("s-7-0-1-3.4", 17, 0), Transaction("s-7-1-2-3.4", 18, 2)))


def test_a_state_is_read_as_it_was_written() -> None:
    for state in (SinkState(), SinkState(3, {"query a": 6}), SinkState(4, {"query a": 6, "run ä": 0}, ONE)):
        assert from_value(to_value(state)) == state


def test_batches_up_to_the_last_one_are_done_and_only_those_of_the_same_query() -> None:
    state = SinkState(3, {"query a": 6})
    assert state.is_done("query a", 0)
    assert state.is_done("query a", 6)
    assert not state.is_done("query a", 7)
    assert not state.is_done("query b", 0), "a query that begins anew writes its batch 0"


def test_an_intent_is_counted_and_then_done() -> None:
    intended = SinkState(3, {"query b": 1, "query a": 6}).intending(ONE)
    assert (intended.commits, intended.intent) == (4, ONE)
    assert not intended.is_done("query a", 7), "not before its transactions are ended"
    done = intended.finished()
    assert (done.commits, done.done, done.intent) == (4, {"query b": 1, "query a": 7}, None)


def test_the_queries_and_runs_used_last_are_remembered() -> None:
    state = SinkState(0, {"query old": 3, **{f"run {number}": 0 for number in range(REMEMBERED_MAX - 1)}})
    state = state.intending(Intent("query old", 4, ())).finished()
    state = state.intending(Intent("run new", 0, ())).finished()
    assert len(state.done) == REMEMBERED_MAX
    assert state.done["query old"] == 4
    assert "run 0" not in state.done


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"{", "is not understood"),
        (b"[]", "is not understood"),
        (b"\xff", "is not understood"),
        (json.dumps({"lowwater": 1, "commits": 1}).encode(), "is not understood"),
        (json.dumps({"lowwater": 1, "commits": 1, "done": {}, "intent": {"name": "a"}}).encode(), "is not understood"),
        (json.dumps({"lowwater": 2}).encode(), "newer Lowwater"),
    ],
)
def test_what_is_not_understood_is_not_guessed(value: bytes, problem: str) -> None:
    with pytest.raises(LedgerError, match=problem):
        from_value(value)
