"""What a driver does next, and what it says when it cannot go on. The order of it all is in tests/model."""

from __future__ import annotations

import pytest

from lowwater.spark.exactly_once.errors import LostTransactionsError, SinkTakenError, TooLateError, named
from lowwater.spark.exactly_once.protocol import Plan, Step, after_failure, check_time, next_step
from lowwater.spark.exactly_once.state import Fence, Intent, SinkState, Transaction

INTENT = Intent("query a", 7, (Transaction("s-7-0-1-3.4", 17, 0),))
OTHERS = Intent("query a", 7, (Transaction("s-7-0-1-3.5", 18, 0),))
PLAN = Plan("s", Fence(5, 4), SinkState(3, {"query a": 6}))


@pytest.mark.parametrize(
    ("state", "at_commit", "at_abort"),
    [
        (SinkState(3, {"query a": 6}), Step.INTEND, Step.GIVE_UP),
        (SinkState(0), Step.INTEND, Step.GIVE_UP),
        (SinkState(3, {"query a": 6}).intending(INTENT), Step.FINISH, Step.FINISH),
        (SinkState(3, {"query a": 6}).intending(OTHERS), Step.TAKEN, Step.GIVE_UP),
        (SinkState(4, {"query a": 7}), Step.NOTHING, Step.NOTHING),
        (SinkState(4, {"query a": 7}).intending(OTHERS), Step.NOTHING, Step.NOTHING),
        (SinkState(4, {"query b": 7}), Step.INTEND, Step.GIVE_UP),
    ],
)
def test_what_is_done_follows_from_what_the_ledger_says(state: SinkState, at_commit: Step, at_abort: Step) -> None:
    assert next_step(state, INTENT) is at_commit
    assert after_failure(state, INTENT) is at_abort


def test_a_batch_that_took_nearly_as_long_as_its_transactions_may_is_not_committed() -> None:
    check_time(PLAN, 7, [1_000, 2_000], now_ms=90_000, timeout_ms=100_000)
    with pytest.raises(
        TooLateError, match=r"batch 7 took 90001 ms, too near to kafka\.transaction\.timeout\.ms=100000"
    ):
        check_time(PLAN, 7, [1_000, 0], now_ms=90_001, timeout_ms=100_000)


def test_the_margin_is_a_minute_at_most() -> None:
    check_time(PLAN, 7, [0], now_ms=840_000, timeout_ms=900_000)
    with pytest.raises(TooLateError):
        check_time(PLAN, 7, [0], now_ms=840_001, timeout_ms=900_000)


def test_errors_say_what_happened_and_what_to_do_in_one_line() -> None:
    lost = str(LostTransactionsError("s", "query a", 7, ["s-7-1-2-3.4", "s-7-0-1-3.4"]))
    assert "s-7-0-1-3.4, s-7-1-2-3.4" in lost
    assert "lowwater spark sinks --settle s" in lost
    taken = str(SinkTakenError("s"))
    assert "'s' was taken over" in taken
    assert "\n" not in lost + taken


def test_of_very_many_ids_some_are_named() -> None:
    assert named([f"{number:02}" for number in range(25)]).endswith("18, 19 and 5 more")
