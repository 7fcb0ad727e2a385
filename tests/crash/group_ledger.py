"""What members of groups did and were told, from many threads; each breach of a promise is an anomaly by name."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass

from lowwater.groups.record_schemas import GroupMetadataKey

Slot = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: str
    detail: str


KINDS = (
    "committed-offset-went-back",
    "generation-reused",
    "generation-went-back",
    "not-stable-again",
    "waits-for-ever",
)


class Ledger:
    """A slot is (group, partition); at most one member commits to it at a time, ever larger offsets.

    `counts` grows under `progress`, on which the killer waits for its moment.
    """

    def __init__(self) -> None:
        self.progress = threading.Condition()
        self.counts: Counter[str] = Counter()
        self.by_member: Counter[str] = Counter()
        self.anomalies: list[Anomaly] = []
        self.errors: list[str] = []
        self._tried: Counter[Slot] = Counter()
        self._acked: dict[Slot, int] = {}
        self._joiners: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._told: dict[tuple[str, int], set[str]] = {}
        self._leaders: dict[tuple[str, int], str] = {}

    # ---- commits

    def next_offset(self, slot: Slot) -> int:
        with self.progress:
            self._tried[slot] += 1
            return self._tried[slot]

    def acked(self, member: str, slot: Slot, offset: int) -> None:
        with self.progress:
            self._acked[slot] = max(offset, self._acked.get(slot, 0))
            self._count("commits", member)

    def floors(self) -> dict[Slot, int]:
        """The last acked commit of every slot: no fetch that begins now may answer less."""
        with self.progress:
            return dict(self._acked)

    def fetched(self, slot: Slot, offset: int, floor: int) -> None:
        with self.progress:
            self.counts["fetches"] += 1
        if offset < floor:
            self.breach("committed-offset-went-back", f"{slot}: {offset} after {floor} was acked")

    # ---- generations

    def joined(self, group: str, generation: int, leader: str, member: str, members: set[str] | None) -> None:
        """The answer of a Join; `members` as the leader was told them."""
        key = (group, generation)
        with self.progress:
            self._count("joins", member)
            self._joiners[key].add(member)
            leaders = self._leaders.setdefault(key, leader), leader
            told = self._told.setdefault(key, members) if members is not None else self._told.get(key)
            strangers = self._joiners[key] - told if told is not None else set()
        if leaders[0] != leaders[1]:
            self.breach("generation-reused", f"{group} {generation}: led by {leaders[0]} and by {leaders[1]}")
        if strangers or (members is not None and told != members):
            self.breach("generation-reused", f"{group} {generation}: {told}, but also {strangers or members}")

    def judge_log(self, entries: list[tuple[object, object]]) -> None:
        """What the internal topic has of classic groups: one membership per generation, which never goes back."""
        memberships: dict[tuple[str, int], frozenset[str]] = {}
        last: dict[str, int] = {}
        for key, value in entries:
            if not isinstance(key, GroupMetadataKey) or value is None:
                continue
            members = frozenset(each.member_id for each in value.members)  # type: ignore[attr-defined]
            group, generation = key.group, value.generation  # type: ignore[attr-defined]
            if generation < last.get(group, 0):
                self.breach("generation-went-back", f"{group}: {generation} after {last[group]}")
            if memberships.setdefault((group, generation), members) != members:
                self.breach("generation-reused", f"{group} {generation}: {memberships[group, generation]} {members}")
            last[group] = generation
        self.counts["rebalances"] = len(memberships)

    # ---- progress

    def noted(self, what: str, member: str = "") -> None:
        with self.progress:
            self._count(what, member)

    def _count(self, what: str, member: str) -> None:
        self.counts[what] += 1
        self.by_member[member] += 1
        self.progress.notify_all()

    def wait_for(self, what: str, more: int, timeout_s: float) -> bool:
        with self.progress:
            goal, deadline = self.counts[what] + more, time.monotonic() + timeout_s
            return self.progress.wait_for(lambda: self.counts[what] >= goal, deadline - time.monotonic())

    def wait_for_each(self, members: list[str], timeout_s: float) -> list[str]:
        """Until each of them got something done; those that did not."""
        with self.progress:
            before = {member: self.by_member[member] for member in members}
            left = lambda: [member for member in members if self.by_member[member] == before[member]]  # noqa: E731
            self.progress.wait_for(lambda: not left(), timeout_s)
            return left()

    def breach(self, kind: str, detail: str) -> None:
        with self.progress:
            self.anomalies.append(Anomaly(kind, detail))

    def failed(self, who: str, error: object) -> None:
        with self.progress:
            self.errors.append(f"{who}: {error}")
