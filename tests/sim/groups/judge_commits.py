"""No acked commit is lost, none goes back, none that was refused is ever read.

The broker takes its requests one after the other, so commits and deletions of one key have an order: that in which they
were delivered. A fetch sees a place in that order; places that were seen or acked are never left again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tests.sim.groups.network import Exchange

from lowwater.errors import ErrorCode
from lowwater.wire.messages.delete_groups import DeleteGroupsRequest
from lowwater.wire.messages.offset_commit import OffsetCommitRequest
from lowwater.wire.messages.offset_delete import OffsetDeleteRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest

Key = tuple[str, str, int]
NONE = -1
# The broker failed in the middle of it: it may have been written.
_UNSURE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR)


class Fate(Enum):
    OPEN = auto()  # not answered, perhaps never
    DONE = auto()
    REFUSED = auto()


@dataclass(slots=True, eq=False)
class Step:
    """A commit, or with NONE a deletion."""

    offset: int
    wall_ms: int
    fate: Fate = Fate.OPEN


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
        self._known: dict[Exchange, dict[Key, int]] = {}
        self.acked = 0
        self.fetched = 0
        self.simple_groups: frozenset[str] = frozenset()
        self.wall_low_ms = 0

    # -- in the order of delivery

    def delivered(self, exchange: Exchange, wall_ms: int) -> None:
        request = exchange.request
        if isinstance(request, OffsetCommitRequest):
            self._begin(exchange, [(key, offset) for key, offset in _commits(request)], wall_ms)
        elif isinstance(request, OffsetDeleteRequest):
            self._begin(exchange, [(key, NONE) for key in _deletions(request)], wall_ms)
        elif isinstance(request, DeleteGroupsRequest):
            keys = [key for key in self._histories if key[0] in request.groups_names]
            self._begin(exchange, [(key, NONE) for key in keys], wall_ms)
        elif isinstance(request, OffsetFetchRequest):
            self._known[exchange] = {key: len(history.steps) for key, history in self._histories.items()}

    def _begin(self, exchange: Exchange, changes: list[tuple[Key, int]], wall_ms: int) -> None:
        found = self._steps.setdefault(exchange, [])
        for key, offset in changes:
            step = Step(offset, wall_ms)
            self._histories[key].steps.append(step)
            found.append((key, step))

    # -- answers

    def issued(self, exchange: Exchange) -> None:
        request = exchange.request
        if isinstance(request, OffsetFetchRequest):
            self._fetched(exchange)
        elif exchange in self._steps:
            codes = _codes(exchange)
            for key, step in self._steps.pop(exchange):
                self._resolve(exchange, key, step, codes.get(key, codes.get((key[0], "", 0), 0)))

    def _resolve(self, exchange: Exchange, key: Key, step: Step, code: int) -> None:
        history = self._histories[key]
        place = history.steps.index(step)
        if code in _UNSURE:
            return
        if code:
            step.fate = Fate.REFUSED
            if any(saw == place for _, saw in history.seen):
                self._report(f"{key}: {step.offset} was refused ({ErrorCode(code).name}) after it had been read")
            return
        step.fate = Fate.DONE
        self.acked += step.offset != NONE
        history.floor = max(history.floor, place)
        for before, saw in history.seen:
            if before > place > saw:
                self._report(f"{key}: a fetch after {step.offset} saw {history.steps[saw].offset}")

    def _fetched(self, exchange: Exchange) -> None:
        known = self._known.pop(exchange, {})
        for key, offset, code in _answers(exchange):
            if code:
                continue
            self.fetched += 1
            history = self._histories[key]
            before = known.get(key, 1)
            place = self._place(history, before, offset)
            if place is None:
                latest = [(step.offset, step.fate.name) for step in history.steps[max(0, before - 5) : before]]
                self._report(f"{key}: {offset} was read after {latest}")
                continue
            # A deletion that nobody can tell from the absence before it proves nothing.
            history.floor = max(history.floor, place if offset != NONE else history.floor)
            history.seen.append((before, place))
            del history.seen[:-8]

    @staticmethod
    def _place(history: History, before: int, offset: int) -> int | None:
        """The last place with that offset which could be seen then."""
        for place in range(before - 1, -1, -1):
            step = history.steps[place]
            if step.offset == offset and step.fate is not Fate.REFUSED:
                return place
            if place == history.floor or step.fate is Fate.DONE:
                return None
        return None

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
            if wall_ms - since_ms >= retention_ms and any(step.offset != NONE for step in live):
                history.steps.append(Step(NONE, since_ms))

    def promised(self) -> dict[Key, set[int]]:
        """What a broker that starts now may answer, by key."""
        found = {}
        for key, history in self._histories.items():
            later = history.steps[history.floor :]
            found[key] = {step.offset for step in later if step.fate is not Fate.REFUSED}
        return found


def _commits(request: OffsetCommitRequest) -> list[tuple[Key, int]]:
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
    group = request.group_id
    codes = {
        (group, topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    if isinstance(request, OffsetDeleteRequest) and response.error_code:
        codes[(group, "", 0)] = response.error_code
    return codes


def _answers(exchange: Exchange) -> list[tuple[Key, int, int]]:
    return [
        ((group.group_id, topic.name, one.partition_index), one.committed_offset, one.error_code or group.error_code)
        for group in exchange.response.groups
        for topic in group.topics
        for one in topic.partitions
    ]
