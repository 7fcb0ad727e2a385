"""Drives one shard: decisions are written, replayed, and answered when they are durable.

All that is decided in one turn of the event loop becomes one batch, written when the turn ends. What was decided is
replayed at once, so the next decision sees it; whoever sees it is answered only when it is durable. When a write fails
the shard is thrown away, and everyone who waits is told so: what it held may not be in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

from lowwater.broker.coordinator_load import ShardLoading
from lowwater.broker.coordinator_rounds import Round, Rounds, Ticket
from lowwater.broker.partition import Partition
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.groups.shard import GroupShard
from lowwater.outcome import Computation, Now, Outcome
from lowwater.ports import Timer
from lowwater.wire.plain_batch import build_plain_batch

if TYPE_CHECKING:
    from lowwater.broker.coordinator import GroupCoordinator

logger = logging.getLogger(__name__)

ROUND_RECORDS_MAX = 2000
OFFSETS_PER_TURN = 5000  # and groups
TICKS_PER_TURN = 100
RELOAD_AFTER_MS = 1000
RELOAD_AFTER_MAX_MS = 60_000


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    DOWN = "down"


class ShardDriver:
    """One partition of `__consumer_offsets`. `ask` for groups that belong to it."""

    def __init__(self, coordinator: GroupCoordinator, index: int) -> None:
        self._coordinator = coordinator
        self._broker = coordinator.broker
        self._index = index
        self._state = State.DOWN
        self._why_down = ""
        self._shard: GroupShard
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
        self._shard = self._coordinator.new_shard()
        if partition is None or not partition.log.log_end:
            self._activate()
            return
        self._state = State.LOADING
        self._loading = ShardLoading(self._broker, partition, self._shard, self._loaded)
        self._loading.start()

    def _loaded(self, error: StorageError | None) -> None:
        loading, self._loading = self._loading, None
        if error is not None:
            self._go_down(error)
            return
        self._activate()
        assert loading is not None
        logger.info("%d records of __consumer_offsets-%d: %d groups", loading.records, self._index, len(self.groups))
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
    def groups(self) -> dict[str, Any]:
        return self._shard.groups

    @property
    def shard(self) -> GroupShard:
        return self._shard

    def check_active(self) -> None:
        if self._state is State.LOADING:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups are being loaded")
        if self._state is State.DOWN:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, self._why_down)

    # -- asking

    def ask(self, group_id: str | None, command: Any) -> Any:
        """The response, or a Pending of it. `group_id` is None when the answer speaks of all groups."""
        if self._state is not State.ACTIVE:
            self.check_active()
        ticket, self._ticket = self._ticket or Ticket(), None
        try:
            outcome = self._shard.decide(command, ticket, self._now or self._begin_turn())
        except Exception as error:
            self._give_up(error)
            raise
        if not self._rounds.pending and len(outcome.replies) == 1 and not outcome.records and not outcome.computations:
            # Nothing to write and nothing to wait for, as with nearly every heartbeat.
            [(replied, response)] = outcome.replies
            if replied is ticket:
                self._ticket = ticket  # nobody has it: the next one may
                if isinstance(response, ApiError):
                    raise response
                return response
        self._do(outcome, group_id)
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
            self._write()
        if self._state is State.ACTIVE and not self._stopped:
            self._set_timer()

    def _do(self, outcome: Outcome, group_id: str | None) -> None:
        if outcome.records:
            self._take_records(outcome, group_id)
        elif outcome.replies:
            self._take_replies(outcome.replies, self._rounds.latest_about(group_id))
        for computation in outcome.computations:
            self._compute(computation)

    def _run(self, decide: Callable[[Now], Outcome]) -> None:
        """A decision that no request asked for."""
        try:
            outcome = decide(self._now or self._begin_turn())
        except Exception as error:
            self._give_up(error)
        else:
            self._do(outcome, None)

    def _give_up(self, error: Exception) -> None:
        """A decision broke off, and nobody knows what it has changed: begin again from the log."""
        logger.error("a decision about groups failed", exc_info=error)
        self._go_down(StorageError(f"a decision failed: {error!r}", retriable=True))

    def _take_records(self, outcome: Outcome, group_id: str | None) -> None:
        replay = self._shard.replay
        try:
            for record in outcome.records:
                replay(record)
        except Exception as error:
            self._give_up(error)
            raise
        current = self._rounds.changed(group_id)
        current.records += outcome.records
        self._take_replies(outcome.replies, current)
        if len(current.records) >= ROUND_RECORDS_MAX:
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

    # -- work elsewhere

    def _compute(self, computation: Computation) -> None:
        shard = self._shard

        def done(result: Any, error: BaseException | None) -> None:
            if self._stopped or self._shard is not shard or self._state is not State.ACTIVE:
                return
            if error is not None:
                logger.error("work for a group failed", exc_info=error)
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
        now_ms = self._broker.clock.now_ms()
        try:
            batch = build_plain_batch(current.records, now_ms, codec=self._coordinator.codec)
            appended = partition.append_own(batch, now_ms)
        except StorageError as error:
            self._go_down(error)
            return
        current.records = []
        self._broker.appended()
        if not self._broker.waits_for_flush(-1):
            self._durable(current)
            return
        shard, log = self._shard, partition.log
        flushed = self._broker.commits.flushed([(log, appended.last_offset + 1)])
        flushed.on_done(lambda done: self._flushed(shard, current, done.result().get(log)))

    def _flushed(self, shard: GroupShard, written: Round, error: BaseException | None) -> None:
        if self._shard is not shard or self._state is not State.ACTIVE:
            return  # everyone has been told
        if error is not None:
            self._go_down(error if isinstance(error, StorageError) else StorageError(str(error)))
        else:
            self._durable(written)

    def _durable(self, written: Round) -> None:
        self._reload_after_ms = RELOAD_AFTER_MS
        self._rounds.durable(written)

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
        logger.error("the coordinator of __consumer_offsets-%d is down: %s", self._index, error)
        self._why_down = f"groups cannot be written: {error}"
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
        """The internal topic was deleted: all groups are gone with it."""
        tickets = self._abandon()
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
        if self._reload is not None:
            self._reload.cancel()
            self._reload = None
        self.start(None)
        for ticket in tickets:
            ticket.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "__consumer_offsets was deleted"))

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

    def topic_deleted(self, name: str) -> None:
        """Also while loading nothing is missed: what is loaded is compared with the topics of that moment."""
        if self._state is State.ACTIVE:
            shard = self._shard
            group_ids = shard.offsets.groups_of(name)
            self._in_portions(shard, iter(group_ids), lambda _, some: shard.topic_deleted(name, some))

    def expire_offsets(self) -> None:
        if self._state is State.ACTIVE:
            self._in_portions(self._shard, iter(list(self.groups)), self._shard.expire_offsets)

    def _in_portions(
        self, shard: GroupShard, group_ids: Iterator[str], decide: Callable[[Now, list[str]], Outcome]
    ) -> None:
        """Some groups now and the others in later turns: together they may have a million offsets."""
        if self._stopped or self._shard is not shard or self._state is not State.ACTIVE:
            return
        some, size = [], 0
        for group_id in group_ids:
            some.append(group_id)
            size += 1 + shard.offsets.count(group_id)
            if size >= OFFSETS_PER_TURN:
                break
        if some:
            self._run(lambda now: decide(now, some))
            self._broker.scheduler.call_soon(lambda: self._in_portions(shard, group_ids, decide))
