"""No acked commit is lost, none goes back, none that was refused is ever read.

The broker takes its requests one after the other, so commits and deletions of one key have an order: that in which they
were delivered. A fetch sees a place in that order; places that were seen or acked are never left again. Commits of a
transaction have their place in that order too, but nobody sees them before it is asked to commit, and everybody once it
has ended so.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tests.sim.groups.network import Exchange
from tests.sim.groups.transactions import TRANSACTION_TIMEOUT_MS

from lowwater.errors import ErrorCode
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from lowwater.wire.messages.delete_groups import DeleteGroupsRequest
from lowwater.wire.messages.end_txn import EndTxnRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest
from lowwater.wire.messages.offset_commit import OffsetCommitRequest
from lowwater.wire.messages.offset_delete import OffsetDeleteRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

Key = tuple[str, str, int]
Transaction = tuple[int, int]
"""Producer id and epoch: each transaction of a producer has an epoch of its own."""
NONE = -1
# The broker failed in the middle of it: it may have been written.
_UNSURE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR)


class Fate(Enum):
    HIDDEN = auto()  # in a transaction that nobody has asked to commit
    OPEN = auto()  # not answered, perhaps never; or in a transaction that is about to commit
    DONE = auto()
    REFUSED = auto()


@dataclass(slots=True, eq=False)
class Step:
    """A commit, or with NONE a deletion."""

    offset: int
    wall_ms: int
    fate: Fate = Fate.OPEN
    in_transaction: bool = False
    is_acked: bool = False


@dataclass(slots=True)
class Knowledge:
    """When a fetch was delivered: how many steps of each key there were, which of them it must not see, and which of
    those were surely pending.
    """

    steps: dict[Key, int] = field(default_factory=dict)
    hidden: frozenset[Step] = frozenset()
    pending: frozenset[Step] = frozenset()


@dataclass(slots=True)
class History:
    """Of one key. `floor` is the last place that everyone must see."""

    steps: list[Step] = field(default_factory=lambda: [Step(NONE, 0, Fate.DONE)])
    floor: int = 0
    seen: list[tuple[int, int]] = field(default_factory=list)  # fetches: (steps delivered before it, place it saw)


class CommitJudge:
    def __init__(self, report: Any) -> None:
        self._report = report
        self._histories: dict[Key, History] = defaultdict(History)
        self._steps: dict[Exchange, list[tuple[Key, Step]]] = {}
        self._known: dict[Exchange, Knowledge] = {}
        self._transactions: dict[Transaction, list[tuple[Key, Step]]] = defaultdict(list)
        self._committing: set[Transaction] = set()
        self._begun_ms: dict[Transaction, float] = {}
        self._decided: dict[Transaction, bool] = {}
        self._of_id: dict[str | None, set[Transaction]] = defaultdict(set)
        self._hidden: dict[Step, float] = {}  # until when their transactions are not timed out
        self.transactions = 0
        self.acked = 0
        self.fetched = 0
        self.simple_groups: frozenset[str] = frozenset()
        self.wall_low_ms = 0

    # -- in the order of delivery

    def delivered(self, exchange: Exchange, wall_ms: int) -> None:
        request = exchange.request
        if isinstance(request, OffsetCommitRequest):
            self._begin(exchange, _commits(request), wall_ms)
        elif isinstance(request, TxnOffsetCommitRequest):
            self._begin(exchange, _commits(request), wall_ms)
            self._hide(exchange, (request.producer_id, request.producer_epoch))
        elif isinstance(request, AddOffsetsToTxnRequest):
            # The older way: the transaction begins here, and so does its time.
            self._begun_ms.setdefault((request.producer_id, request.producer_epoch), exchange.delivered_ms)
        elif isinstance(request, InitProducerIdRequest):
            for transaction in self._of_id[request.transactional_id]:
                self._may_end(transaction, False)
        elif isinstance(request, EndTxnRequest):
            self._may_end((request.producer_id, request.producer_epoch), request.committed)
        elif isinstance(request, OffsetDeleteRequest):
            self._begin(exchange, [(key, NONE) for key in _deletions(request)], wall_ms)
        elif isinstance(request, DeleteGroupsRequest):
            keys = [key for key in self._histories if key[0] in request.groups_names]
            self._begin(exchange, [(key, NONE) for key in keys], wall_ms)
        elif isinstance(request, OffsetFetchRequest):
            steps = {key: len(history.steps) for key, history in self._histories.items()}
            pending = [
                one for one, until_ms in self._hidden.items() if one.is_acked and exchange.delivered_ms < until_ms
            ]
            self._known[exchange] = Knowledge(steps, frozenset(self._hidden), frozenset(pending))

    def _begin(self, exchange: Exchange, changes: list[tuple[Key, int]], wall_ms: int) -> None:
        found = self._steps.setdefault(exchange, [])
        for key, offset in changes:
            step = Step(offset, wall_ms)
            self._histories[key].steps.append(step)
            found.append((key, step))

    # -- transactions

    def _hide(self, exchange: Exchange, transaction: Transaction) -> None:
        self._of_id[exchange.request.transactional_id].add(transaction)
        until_ms = self._begun_ms.setdefault(transaction, exchange.delivered_ms) + TRANSACTION_TIMEOUT_MS
        for key, step in self._steps[exchange]:
            step.in_transaction = True
            self._transactions[transaction].append((key, step))
            if transaction not in self._committing:
                step.fate = Fate.HIDDEN
                self._hidden[step] = until_ms

    def _may_end(self, transaction: Transaction, commit: bool) -> None:
        """Somebody asks for it. Whether it does is for the coordinator to say."""
        for _, step in self._transactions[transaction]:
            if commit:
                self._show(step, Fate.OPEN)
            elif step in self._hidden:
                self._hidden[step] = 0
        if commit:
            self._committing.add(transaction)

    def _show(self, step: Step, fate: Fate) -> None:
        if step.fate is Fate.HIDDEN or fate is not Fate.OPEN:
            step.fate = fate
        self._hidden.pop(step, None)

    def _ended_before(self, transaction: Transaction) -> None:
        """A producer is in its next transaction when the one before has ended."""
        producer_id, epoch = transaction
        for one in [one for one in self._decided if one[0] == producer_id and one[1] < epoch]:
            self.transaction_ended(one, self._decided.pop(one))

    def transaction_ended(self, transaction: Transaction, commit: bool) -> None:
        """Its end is durable. What was not acked need not have been in it."""
        self._decided.pop(transaction, None)
        steps = self._transactions.pop(transaction, [])
        self.transactions += bool(steps)
        for key, step in steps:
            if step.fate is Fate.REFUSED:
                continue
            history = self._histories[key]
            place = history.steps.index(step)
            if commit and step.is_acked:
                history.floor = max(history.floor, place)
                self._show(step, Fate.DONE)
            elif not commit:
                self._show(step, Fate.REFUSED)
                if any(saw == place for _, saw in history.seen):
                    self._report(f"{key}: {step.offset} was aborted after it had been read")

    # -- answers

    def issued(self, exchange: Exchange) -> None:
        request = exchange.request
        if isinstance(request, OffsetFetchRequest):
            self._fetched(exchange)
        elif isinstance(request, EndTxnRequest) and not exchange.response.error_code:
            self._decided[request.producer_id, request.producer_epoch] = request.committed
        elif exchange in self._steps:
            if isinstance(request, TxnOffsetCommitRequest) and ErrorCode.NONE in _codes(exchange).values():
                self._ended_before((request.producer_id, request.producer_epoch))
            codes = _codes(exchange)
            for key, step in self._steps.pop(exchange):
                self._resolve(exchange, key, step, codes.get(key, codes.get((key[0], "", 0), 0)))

    def _resolve(self, exchange: Exchange, key: Key, step: Step, code: int) -> None:
        history = self._histories[key]
        place = history.steps.index(step)
        if code in _UNSURE:
            return
        if code:
            self._show(step, Fate.REFUSED)
            if any(saw == place for _, saw in history.seen):
                self._report(f"{key}: {step.offset} was refused ({ErrorCode(code).name}) after it had been read")
            return
        self.acked += step.offset != NONE
        step.is_acked = True
        if step.in_transaction:
            return
        step.fate = Fate.DONE
        history.floor = max(history.floor, place)
        for before, saw in history.seen:
            if before > place > saw:
                self._report(f"{key}: a fetch after {step.offset} saw {history.steps[saw].offset}")

    def _fetched(self, exchange: Exchange) -> None:
        known = self._known.pop(exchange, None) or Knowledge()
        for key, offset, code in _answers(exchange):
            history = self._histories[key]
            before = known.steps.get(key, 1)
            if exchange.request.require_stable:
                self._judge_stability(key, code, history.steps[:before], known)
            if code:
                continue
            self.fetched += 1
            place = self._place(history, before, offset, known.hidden)
            if place is None:
                latest = [(step.offset, step.fate.name) for step in history.steps[max(0, before - 5) : before]]
                self._report(f"{key}: {offset} was read after {latest}")
                continue
            # A deletion that nobody can tell from the absence before it proves nothing, nor does a repeated commit.
            if offset != NONE:
                history.floor = self._first_alike(history, place)
            history.seen.append((before, place))
            del history.seen[:-8]

    def _judge_stability(self, key: Key, code: int, steps: list[Step], known: Knowledge) -> None:
        """An offset that a transaction may change is told to be unstable, and no other."""
        if code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
            if not any(
                step in known.hidden or (step.in_transaction and step.fate is not Fate.REFUSED) for step in steps
            ):
                self._report(f"{key} is unstable, and no transaction is at work")
            return
        last_deletion = max((place for place, step in enumerate(steps) if step.offset == NONE), default=0)
        if not code and any(step in known.pending for step in steps[last_deletion:]):
            self._report(f"{key} is said to be stable, and a transaction may change it")

    @staticmethod
    def _place(history: History, before: int, offset: int, hidden: frozenset[Step]) -> int | None:
        """The last place with that offset which could be seen then."""
        for place in range(before - 1, -1, -1):
            step = history.steps[place]
            if step in hidden:
                continue
            if step.offset == offset and step.fate is not Fate.REFUSED:
                return place
            if place == history.floor or step.fate is Fate.DONE:
                return None
        return None

    @staticmethod
    def _first_alike(history: History, place: int) -> int:
        """Where what was seen may have come from at the earliest: a late copy of a commit may be lost again."""
        offset = history.steps[place].offset
        alike = (at for at in range(history.floor, place) if history.steps[at].offset == offset)
        return max(history.floor, next(alike, place))

    # -- what the world did

    def topic_deleted(self, topic: str, wall_ms: int, *, surely: bool) -> None:
        for key, history in self._histories.items():
            if key[1] == topic:
                history.steps.append(Step(NONE, wall_ms, Fate.DONE if surely else Fate.OPEN))
                history.floor = len(history.steps) - 1 if surely else history.floor

    def may_expire(self, wall_ms: int, retention_ms: int) -> None:
        """Offsets whose last commit is that old may be gone from now on.

        Where members were, the time counts from when the last of them left: at the earliest from the lowest wall time.
        """
        for key, history in self._histories.items():
            live = [step for step in history.steps[history.floor :] if step.fate is not Fate.REFUSED]
            since_ms = min(step.wall_ms for step in live)
            if key[0] not in self.simple_groups:
                since_ms = self.wall_low_ms
            known = history.steps[-1].offset == NONE and history.steps[-1].fate is Fate.OPEN
            if not known and wall_ms - since_ms >= retention_ms and any(step.offset != NONE for step in live):
                history.steps.append(Step(NONE, since_ms))

    def promised(self) -> dict[Key, set[int]]:
        """What a broker that starts now may answer, by key."""
        found = {}
        for key, history in self._histories.items():
            later = history.steps[history.floor :]
            found[key] = {step.offset for step in later if step.fate not in (Fate.REFUSED, Fate.HIDDEN)}
        return found


def _commits(request: OffsetCommitRequest | TxnOffsetCommitRequest) -> list[tuple[Key, int]]:
    return [
        ((request.group_id, topic.name, one.partition_index), one.committed_offset)
        for topic in request.topics
        for one in topic.partitions
    ]


def _deletions(request: OffsetDeleteRequest) -> list[Key]:
    return [(request.group_id, topic.name, one.partition_index) for topic in request.topics for one in topic.partitions]


def _codes(exchange: Exchange) -> dict[Key, int]:
    """The error of each key; that of a whole group stands at (group, "", 0)."""
    request, response = exchange.request, exchange.response
    if isinstance(request, DeleteGroupsRequest):
        return {(one.group_id, "", 0): one.error_code for one in response.results}
    group, names = request.group_id, _names(request)
    codes = {
        (group, topic.name or names[topic.topic_id], one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    if isinstance(request, OffsetDeleteRequest) and response.error_code:
        codes[(group, "", 0)] = response.error_code
    return codes


def _names(request: Any) -> dict[bytes, str]:
    """What the client calls the topics that it asks of by their ids."""
    return {topic.topic_id: topic.name for topic in request.topics or () if hasattr(topic, "topic_id")}


def _answers(exchange: Exchange) -> list[tuple[Key, int, int]]:
    names: dict[bytes, str] = {}
    for asked in exchange.request.groups:
        names |= _names(asked)
    return [
        (
            (group.group_id, topic.name or names[topic.topic_id], one.partition_index),
            one.committed_offset,
            one.error_code or group.error_code,
        )
        for group in exchange.response.groups
        for topic in group.topics
        for one in topic.partitions
    ]
