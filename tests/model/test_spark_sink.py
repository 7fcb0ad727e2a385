"""The exactly-once sink against brokers in a few lines: drivers die before and after each thing they ask, calls fail
though they were done, and another driver comes in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.client.errors import ClientError
from lowwater.spark.exactly_once import protocol
from lowwater.spark.exactly_once.errors import SinkTakenError
from lowwater.spark.exactly_once.ids import left_over, transactional_id
from lowwater.spark.exactly_once.protocol import Plan
from lowwater.spark.exactly_once.state import Fence, Intent, SinkState, Transaction

T = TypeVar("T")
SINK, QUERY = "s", "q"
BATCHES, TASKS = 4, 2


class Fault(Enum):
    DIE_BEFORE = "the driver dies"
    DIE_AFTER = "the driver dies when it was done"
    FAIL_BEFORE = "the call fails"
    FAIL_AFTER = "the call fails, but was done"
    ANOTHER = "another driver runs a batch meanwhile"
    TWICE = "a task is run twice"


class DiedError(BaseException):
    """Nothing is done any more: no abort, no cleaning up."""


class FailedError(ClientError):
    pass


@dataclass(slots=True)
class World:
    """`has_epochs`: each transaction has an epoch of its own, as from transaction.version 2 on."""

    has_epochs: bool
    faults: dict[int, Fault]
    calls: int = 0
    epoch: int = 0
    epoch_before: int | None = None
    state: SinkState = field(default_factory=SinkState)
    ended: dict[str, bool | None] = field(default_factory=dict)
    """By transaction, whether it was committed; None while it is open."""
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    """Spark's commit log."""
    is_nested: bool = False

    def step(self, effect: Callable[[], T]) -> T:
        fault = self.faults.get(self.calls)
        self.calls += 1
        if fault is Fault.DIE_BEFORE:
            raise DiedError
        if fault is Fault.FAIL_BEFORE:
            raise FailedError("nothing was done")
        if fault is Fault.ANOTHER and not self.is_nested:
            self.is_nested = True
            Driver(self).live()
            self.is_nested = False
        done = effect()
        if fault is Fault.DIE_AFTER:
            raise DiedError
        if fault is Fault.FAIL_AFTER:
            raise FailedError("it was done")
        return done

    def visible(self) -> Counter[tuple[int, int]]:
        return Counter(self.rows[each] for each, is_committed in self.ended.items() if is_committed)

    def open_ids(self) -> list[str]:
        return [each for each, is_committed in self.ended.items() if is_committed is None]


class ModelBrokers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._epoch = 0

    def take(self, expected: Fence | None) -> Fence:
        return self._world.step(lambda: self._take(expected))

    def _take(self, expected: Fence | None) -> Fence:
        world = self._world
        if expected is None:
            world.epoch_before, world.epoch = None, world.epoch + 1
        elif expected.epoch == world.epoch:
            world.epoch_before, world.epoch = world.epoch, world.epoch + 1
        elif expected.epoch != world.epoch_before:  # else it is asked a second time
            raise SinkTakenError(SINK)
        self._epoch = world.epoch
        return Fence(0, world.epoch)

    def state(self) -> SinkState:
        return self._world.step(lambda: self._world.state)

    def record(self, state: SinkState) -> Fence:
        return self._world.step(lambda: self._record(state))

    def _record(self, state: SinkState) -> Fence:
        world = self._world
        if self._epoch != world.epoch:
            raise SinkTakenError(SINK)
        world.state = state
        if world.has_epochs:
            world.epoch_before, world.epoch = world.epoch, world.epoch + 1
            self._epoch = world.epoch
        return Fence(0, world.epoch)

    def end(self, transactions: Sequence[Transaction], *, commit: bool) -> list[Transaction]:
        return [each for each in transactions if not self._world.step(lambda: self._end(each.id, commit))]  # noqa: B023

    def _end(self, each: str, commit: bool) -> bool:
        if self._world.ended[each] is None:
            self._world.ended[each] = commit
        return self._world.ended[each] is commit

    def abort_left_over(self, state: SinkState, keep: Collection[str]) -> None:
        for each in left_over(SINK, state, self._world.open_ids(), keep):
            self._world.step(lambda: self._end(each, commit=False))  # noqa: B023


class Driver:
    """As Spark has it: a batch that is not in its log is run again, with the same rows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._attempts = 0

    def live(self) -> None:
        """Until a batch is finished, or the query ends."""
        try:
            self._run(len(self._world.finished))
        except (DiedError, ClientError, SinkTakenError):
            return

    def _run(self, batch: int) -> None:
        if batch == BATCHES:
            return
        plan = protocol.plan(SINK, ModelBrokers(self._world))
        written = [self._task(plan, batch, task) for task in range(TASKS)]
        transactions = tuple(each for each in written if each is not None)
        if transactions:
            self._end(plan, Intent(QUERY, batch, transactions))
            assert all(self._world.visible()[batch, task] == 1 for task in range(TASKS)), "what is committed is seen"
        self._world.finished.add(batch)

    def _end(self, plan: Plan, intent: Intent) -> None:
        try:
            protocol.commit(ModelBrokers(self._world), plan, intent)
        except (ClientError, SinkTakenError):
            protocol.abort(ModelBrokers(self._world), plan, intent)
            raise

    def _task(self, plan: Plan, batch: int, task: int) -> Transaction | None:
        if plan.state.is_done(QUERY, batch):
            return None
        if self._world.faults.get(self._world.calls) is Fault.TWICE:
            self._attempt(plan, batch, task)
        return self._attempt(plan, batch, task)

    def _attempt(self, plan: Plan, batch: int, task: int) -> Transaction:
        self._attempts += 1
        own = transactional_id(SINK, batch, task, self._attempts, commits=plan.state.commits, epoch=plan.fence.epoch)
        self._world.step(lambda: self._write(own, batch, task))
        return Transaction(own, self._attempts, 0)

    def _write(self, own: str, batch: int, task: int) -> None:
        assert own not in self._world.ended, "no two attempts have the same id, whoever runs them"
        self._world.ended[own] = None
        self._world.rows[own] = batch, task


FAULTS = st.dictionaries(st.integers(0, 80), st.sampled_from(Fault), max_size=12)


@settings(max_examples=400)
@given(FAULTS, st.booleans())
def test_every_row_is_seen_once_whatever_happens_on_the_way(faults: dict[int, Fault], has_epochs: bool) -> None:
    world = World(has_epochs, faults)
    for _ in range(BATCHES + 2 * len(faults) + 1):
        Driver(world).live()
        assert set(world.visible().values()) <= {1}, "no row is seen twice at any time"
    assert world.finished == set(range(BATCHES))
    assert world.visible() == Counter({(batch, task): 1 for batch in range(BATCHES) for task in range(TASKS)})


def test_each_step_of_a_batch_may_be_the_last_of_its_driver() -> None:
    """One fault at each call, of each kind: nothing is left open when the query is through."""
    for has_epochs in (False, True):
        for fault in Fault:
            for at in range(40):
                world = World(has_epochs, {at: fault})
                for _ in range(BATCHES + 3):
                    Driver(world).live()
                assert world.visible().total() == BATCHES * TASKS, (has_epochs, fault, at)
                late = [each for each in world.open_ids() if not each.startswith(f"{SINK}-{BATCHES - 1}-")]
                assert not late, (has_epochs, fault, at)
