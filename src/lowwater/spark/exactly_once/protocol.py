"""The order of things: what a driver does before the tasks of a batch, at its commit, and when it has failed.

A batch is committed by one record, its intent. Before that record everything of it can be given up, after it nothing:
whoever finds an intent ends its transactions, and then says that it is done. What brokers do stands behind `Brokers`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from lowwater.spark.exactly_once.errors import LostTransactionsError, SinkTakenError, TooLateError
from lowwater.spark.exactly_once.state import Fence, Intent, SinkState, Transaction

MARGIN_SHARE = 0.1
MARGIN_MS_MAX = 60_000


class Brokers(Protocol):
    """What is asked of them. Any of it may fail with a ClientError, also after it was done."""

    def take(self, expected: Fence | None) -> Fence:
        """Be the one that commits for the sink; what the one before left of a record is given up, or complete.

        SinkTakenError when the last to take it was not the one expected.
        """

    def state(self) -> SinkState:
        """As the ledger has it, once the sink is taken."""

    def record(self, state: SinkState) -> Fence:
        """Write it down; who we are after that. SinkTakenError when somebody has taken the sink meanwhile."""

    def end(self, transactions: Sequence[Transaction], *, commit: bool) -> list[Transaction]:
        """End them all; those that are over already, and not in this way. Asking again is no error."""

    def abort_left_over(self, state: SinkState, keep: Collection[str]) -> None:
        """As far as they can be found."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the tasks of a batch are told, and tell whoever commits it."""

    sink: str
    fence: Fence
    state: SinkState


class Step(Enum):
    INTEND = "write the intent, then finish it"
    FINISH = "finish the intent that is there"
    NOTHING = "it is done"
    GIVE_UP = "abort its transactions"
    TAKEN = "another driver is about to commit something else"


def plan(sink: str, brokers: Brokers) -> Plan:
    """Before the tasks of a batch: older drivers are fenced, and what was intended is finished."""
    fence = brokers.take(None)
    state = brokers.state()
    if state.intent is not None:
        state, fence = _finish(sink, brokers, state)
    return Plan(sink, fence, state)


def commit(brokers: Brokers, plan: Plan, intent: Intent) -> None:
    """All tasks have ended well."""
    brokers.take(plan.fence)
    state = brokers.state()
    step = next_step(state, intent)
    if step is Step.TAKEN:
        raise SinkTakenError(plan.sink)
    if step is Step.INTEND:
        state = state.intending(intent)
        brokers.record(state)
    if step is not Step.NOTHING:
        _finish(plan.sink, brokers, state)


def abort(brokers: Brokers, plan: Plan, intent: Intent) -> Step:
    """The batch has failed, or its commit has, and nobody knows how far it came. What was done."""
    try:
        brokers.take(plan.fence)
    except SinkTakenError:
        return Step.NOTHING  # whoever came after aborts what it does not finish
    state = brokers.state()
    step = after_failure(state, intent)
    if step is Step.FINISH:
        _finish(plan.sink, brokers, state)
    elif step is Step.GIVE_UP:
        brokers.end(intent.transactions, commit=False)
    return step


def settle(sink: str, brokers: Brokers) -> SinkState:
    """Somebody has seen to what is missing: the intent counts as done. The state before; drivers are fenced."""
    brokers.take(None)
    state = brokers.state()
    if state.intent is not None:
        brokers.end(state.intent.transactions, commit=True)
        brokers.abort_left_over(state, frozenset(each.id for each in state.intent.transactions))
        brokers.record(state.finished())
    return state


def next_step(state: SinkState, intent: Intent) -> Step:
    """How a batch is committed that all tasks have written."""
    if state.intent == intent:
        return Step.FINISH
    if state.is_done(intent.name, intent.batch):
        return Step.NOTHING
    # The plan had nothing left to finish: an intent that is there now came after the sink was taken.
    return Step.INTEND if state.intent is None else Step.TAKEN


def after_failure(state: SinkState, intent: Intent) -> Step:
    """Whether the failure came before the intent or after it."""
    if state.intent == intent:
        return Step.FINISH
    return Step.NOTHING if state.is_done(intent.name, intent.batch) else Step.GIVE_UP


def _finish(sink: str, brokers: Brokers, state: SinkState) -> tuple[SinkState, Fence]:
    intent = state.intent
    assert intent is not None
    lost = brokers.end(intent.transactions, commit=True)
    if lost:
        # The intent stays: what is missing has to be seen to before the sink goes on.
        raise LostTransactionsError(sink, intent.name, intent.batch, (each.id for each in lost))
    brokers.abort_left_over(state, frozenset(each.id for each in intent.transactions))
    # After the last of them: a batch that is done is never looked at again.
    done = state.finished()
    return done, brokers.record(done)


def check_time(plan: Plan, batch: int, began_ms: Iterable[int], now_ms: int, timeout_ms: int) -> None:
    """TooLateError when a transaction may be over before its batch is committed."""
    took_ms = now_ms - min(began_ms)
    if took_ms > timeout_ms - min(MARGIN_SHARE * timeout_ms, MARGIN_MS_MAX):
        raise TooLateError(plan.sink, batch, took_ms, timeout_ms)
