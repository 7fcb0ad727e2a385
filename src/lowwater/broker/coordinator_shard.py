"""Drives one shard: decisions are written, replayed, and answered when they are durable.

All that is decided in one turn of the event loop becomes one batch, written when the turn ends. What was decided is
replayed at once, so the next decision sees it; whoever sees it is answered only when it is durable. When a write fails
the shard is thrown away, and everyone who waits is told so: what it held may not be in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from lowwater.broker.coordinator_load import ShardLoading
from lowwater.broker.coordinator_rounds import Round, Rounds, Ticket
from lowwater.broker.partition import Partition
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.partition_log import PartitionLog
from lowwater.outcome import Computation, Now, Outcome, StateRecord, Token
from lowwater.ports import Timer
from lowwater.wire.plain_batch import build_plain_batch

if TYPE_CHECKING:
    from lowwater.broker.coordinator import Coordinator

logger = logging.getLogger(__name__)

ROUND_RECORDS_MAX = 2000
TICKS_PER_TURN = 100
RELOAD_AFTER_MS = 1000
RELOAD_AFTER_MAX_MS = 60_000


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    DOWN = "down"


class Shard(Protocol):
    """A pure state machine: decisions read its state, `replay` alone writes it."""

    def decide(self, command: Any, token: Token, now: Now) -> Outcome: ...

    def replay(self, record: StateRecord) -> None: ...

    def loaded(self, now: Now) -> Outcome:
        """All records were replayed."""

    def tick(self, now: Now) -> Outcome:
        """Some of what is due."""

    @property
    def next_deadline_ms(self) -> float | None:
        """When to call `tick`, by the monotonic clock."""


S = TypeVar("S", bound=Shard)


class ShardDriver(Generic[S]):
    """One partition of the coordinator's topic. `ask` for keys (groups, transactional ids) that belong to it."""

    def __init__(self, coordinator: Coordinator[S], index: int) -> None:
        self._coordinator = coordinator
        self._broker = coordinator.broker
        self._index = index
        self._state = State.DOWN
        self._why_down = ""
        self._shard: S
        self._loading: ShardLoading | None = None
        self._now: Now | None = None
        self._rounds = Rounds()
        self._parked: set[Ticket] = set()
        self._ticket: Ticket | None = None
        self._timer: Timer | None = None
        self._timer_at: float | None = None
        self._reload_after_ms = RELOAD_AFTER_MS
        self._reload: Timer | None = None
        self._stopped = False

    # -- coming and going

    def start(self, partition: Partition | None) -> None:
        """Begin with what is in the log; without one there is nothing to load."""
        self._shard = self._coordinator.new_shard(self._index)
        if partition is None or not partition.log.log_end:
            self._activate()
            return
        self._state = State.LOADING
        self._loading = ShardLoading(self._broker, partition, self, self._loaded)
        self._loading.start()

    def _loaded(self, error: StorageError | None) -> None:
        loading, self._loading = self._loading, None
        if error is not None:
            self._go_down(error)
            return
        self._activate()
        assert loading is not None
        logger.info("%d records of %s were read: %s", loading.records, self._name, self._contents())
        self._run(self._shard.loaded)

    def _activate(self) -> None:
        self._state = State.ACTIVE

    def stop(self) -> None:
        self._stopped = True
        for timer in (self._timer, self._reload):
            if timer is not None:
                timer.cancel()
        if self._loading is not None:
            self._loading.cancel()
        self._timer = self._reload = None

    @property
    def is_active(self) -> bool:
        return self._state is State.ACTIVE

    @property
    def shard(self) -> S:
        return self._shard

    @property
    def _name(self) -> str:
        return f"{self._coordinator.topic.name}-{self._index}"

    def _contents(self) -> str:
        """What was loaded, for the log line."""
        return self._coordinator.subject

    def check_active(self) -> None:
        if self._state is State.LOADING:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._coordinator.subject} are being loaded")
        if self._state is State.DOWN:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, self._why_down)

    # -- asking

    def ask(self, key: str | None, command: Any) -> Any:
        """The response, or a Pending of it. `key` is None when the answer speaks of everything."""
        if self._state is not State.ACTIVE:
            self.check_active()
        ticket, self._ticket = self._ticket or Ticket(), None
        try:
            outcome = self._shard.decide(command, ticket, self._now or self._begin_turn())
        except Exception as error:
            self._give_up(error)
            raise
        asks_for_more = outcome.records or self._rounds.pending or outcome.computations or outcome.effects
        if not asks_for_more and len(outcome.replies) == 1:
            # Nothing to write and nothing to wait for, as with nearly every heartbeat.
            [(replied, response)] = outcome.replies
            if replied is ticket:
                self._ticket = ticket  # nobody has it: the next one may
                if isinstance(response, ApiError):
                    raise response
                return response
        self._do(outcome, key)
        if ticket.done:
            return ticket.result()
        if not ticket.has_reply:
            self.check_active()  # when the write has just failed, nobody would answer it any more
            self._parked.add(ticket)
        return ticket

    def _begin_turn(self) -> Now:
        clock = self._broker.clock
        self._now = Now(clock.now_ms(), clock.monotonic_ms())
        self._broker.scheduler.call_soon(self._end_turn)
        return self._now

    def _end_turn(self) -> None:
        self._now = None
        if self._state is State.ACTIVE and not self._stopped:
            self._write_in_time()
        if self._state is State.ACTIVE and not self._stopped:
            self._set_timer()

    def _write_in_time(self) -> None:
        """What was decided in this turn."""
        self._write()

    def _do(self, outcome: Outcome, key: str | None) -> None:
        if outcome.records:
            self._take_records(outcome, key)
        else:
            awaited = self._rounds.latest_about(key)
            self._take_replies(outcome.replies, awaited)
            self._take_effects(outcome.effects, awaited)
        for computation in outcome.computations:
            self._compute(computation)

    def _run(self, decide: Callable[[Now], Outcome], key: str | None = None) -> None:
        """A decision that no request asked for."""
        try:
            outcome = decide(self._now or self._begin_turn())
        except Exception as error:
            self._give_up(error)
        else:
            self._do(outcome, key)

    def _give_up(self, error: Exception) -> None:
        """A decision broke off, and nobody knows what it has changed: begin again from the log."""
        logger.error("a decision about %s failed", self._coordinator.subject, exc_info=error)
        self._go_down(StorageError(f"a decision failed: {error!r}", retriable=True))

    def _take_records(self, outcome: Outcome, key: str | None) -> None:
        replay = self._replaying(outcome.producer)
        try:
            for record in outcome.records:
                replay(record)
        except Exception as error:
            self._give_up(error)
            raise
        current = self._rounds.changed(key)
        current.add(outcome.records, outcome.producer)
        self._take_replies(outcome.replies, current)
        current.effects += outcome.effects
        if current.records >= ROUND_RECORDS_MAX:
            self._write()

    def _take_replies(self, replies: list[tuple[Ticket, Any]], awaited: Round | None) -> None:
        for ticket, response in replies:
            assert not ticket.has_reply, "replied to twice"
            ticket.has_reply = True
            self._parked.discard(ticket)
            if awaited is None:
                ticket.settle(response)
            else:
                awaited.replies.append((ticket, response))

    def _take_effects(self, effects: list[Any], awaited: Round | None) -> None:
        if awaited is not None:
            awaited.effects += effects
            return
        for effect in effects:
            self._carry_out(effect)

    # -- replaying

    def replay(self, record: StateRecord, producer: tuple[int, int] | None) -> None:
        self._replaying(producer)(record)

    def _replaying(self, producer: tuple[int, int] | None) -> Callable[[StateRecord], None]:
        """Who takes records that are part of this producer's transaction, or of none."""
        return self._shard.replay

    def replay_end(self, producer: tuple[int, int], commit: bool) -> None:
        """Only records of groups are part of transactions."""

    # -- work elsewhere

    def _carry_out(self, effect: Any) -> None:
        """What a decision asks for beside its records, which are durable now."""
        raise AssertionError(f"nobody carries out {effect!r}")

    def _compute(self, computation: Computation) -> None:
        shard = self._shard

        def done(result: Any, error: BaseException | None) -> None:
            if self._stopped or self._shard is not shard or self._state is not State.ACTIVE:
                return
            if error is not None:
                logger.error("work for %s failed", self._coordinator.subject, exc_info=error)
            command = computation.then(result if error is None else error)
            self._run(lambda now: shard.decide(command, Ticket(), now))

        self._broker.submit_heavy(computation.work, computation.argument, done)

    # -- writing

    def _write(self) -> None:
        """Append what was decided, and answer when it is durable."""
        current = self._rounds.open
        if current is None:
            return
        partition = self._coordinator.partition(self._index)
        if partition is None:
            # On first use. What is decided meanwhile waits in the same round.
            self._coordinator.create_topic()
            return
        self._rounds.open = None
        try:
            end = self._append(current, partition)
        except StorageError as error:
            self._go_down(error)
            return
        except ApiError as error:
            # Of a producer that was fenced in the log by hand, after the decision.
            self._go_down(StorageError(str(error), retriable=True))
            return
        self._await_flush(current, partition.log, end)

    def _append(self, current: Round, partition: Partition) -> int:
        """The log end behind it."""
        now_ms = self._broker.clock.now_ms()
        codec = self._coordinator.topic.codec
        for producer, records in current.parts:
            batch = build_plain_batch(records, now_ms, codec=codec, producer=producer)
            partition.append_own(batch, now_ms)
        current.parts.clear()
        self._broker.appended()
        return partition.log.log_end

    def _await_flush(self, current: Round, log: PartitionLog, end: int) -> None:
        if not self._broker.waits_for_flush(-1):
            self._durable(current)
            return
        shard = self._shard
        flushed = self._broker.commits.flushed([(log, end)])
        flushed.on_done(lambda done: self._flushed(shard, current, done.result().get(log)))

    def _flushed(self, shard: S, written: Round, error: BaseException | None) -> None:
        if self._shard is not shard or self._state is not State.ACTIVE:
            return  # everyone has been told
        if error is not None:
            self._go_down(error if isinstance(error, StorageError) else StorageError(str(error)))
        else:
            self._durable(written)

    def _durable(self, written: Round) -> None:
        self._reload_after_ms = RELOAD_AFTER_MS
        self._rounds.durable(written)
        for effect in written.effects:
            self._carry_out(effect)

    def topic_created(self, error: ApiError | None) -> None:
        """The internal topic is there, or cannot be had."""
        if self._rounds.open is None or self._state is not State.ACTIVE or self._stopped:
            return
        if error is not None:
            self._go_down(StorageError(str(error), retriable=True))
        else:
            self._write()

    # -- failing

    def _go_down(self, error: StorageError) -> None:
        """Nothing that was decided and not made durable holds. A full disk may have room again later."""
        logger.error("the coordinator of %s is down: %s", self._name, error)
        self._why_down = f"{self._coordinator.subject} cannot be written: {error}"
        tickets = self._abandon()
        self._state = State.DOWN
        if error.retriable and not self._stopped:
            self._reload = self._broker.scheduler.call_later(self._reload_after_ms, self._reload_now)
            self._reload_after_ms = min(2 * self._reload_after_ms, RELOAD_AFTER_MAX_MS)
        for ticket in tickets:
            ticket.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, self._why_down))

    def _abandon(self) -> list[Ticket]:
        """Let go of the shard; return those who wait for it."""
        tickets = [*self._rounds.abandon(), *self._parked]
        self._parked.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_at = None
        if self._state is not State.DOWN:
            self._coordinator.retire(self._shard)
        return tickets

    def _reload_now(self) -> None:
        self._reload = None
        self.start(self._coordinator.partition(self._index))

    def reset(self) -> None:
        """The internal topic was deleted: everything is gone with it."""
        tickets = self._abandon()
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
        if self._reload is not None:
            self._reload.cancel()
            self._reload = None
        self.start(None)
        for ticket in tickets:
            ticket.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self._coordinator.topic.name} was deleted"))

    # -- time

    def _set_timer(self) -> None:
        due_ms = self._shard.next_deadline_ms
        if due_ms is None or (self._timer_at is not None and self._timer_at <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due_ms
        delay_ms = max(0.0, due_ms - self._broker.clock.monotonic_ms())
        self._timer = self._broker.scheduler.call_later(delay_ms, self._tick)

    def _tick(self) -> None:
        """A turn's worth of what is due: when thousands of members fall silent at once, others are served meanwhile."""
        self._timer = self._timer_at = None
        if self._state is not State.ACTIVE or self._stopped:
            return
        now = self._now or self._begin_turn()
        for _ in range(TICKS_PER_TURN):
            due_ms = self._shard.next_deadline_ms
            if self._state is not State.ACTIVE or due_ms is None or due_ms > now.monotonic_ms:
                break
            self._run(self._shard.tick)
