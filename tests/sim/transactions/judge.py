"""Watches what is answered and what is read: whole or not at all, nobody after a newer one, nothing before its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.sim.groups.network import Exchange
from tests.sim.transactions.requests import Identity, code_of, group_of, identity_in, transactional_id_of
from tests.sim.transactions.story import Library, Owner, Story, number_of

from lowwater.errors import ErrorCode
from lowwater.wire.messages.end_txn import EndTxnRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest

PROBLEMS_MAX = 20


@dataclass(slots=True)
class Issued:
    """An identity that was told to somebody."""

    transactional_id: str
    rank: int
    owner: Owner | None


@dataclass(slots=True)
class Fence:
    """From here on nobody with an identity of a lower rank writes for this transactional id."""

    rank: int
    ends: dict[int, int]


@dataclass(slots=True)
class Reading:
    """One reader of one partition, from the beginning and never back."""

    position: int = 0
    seen: dict[int, str] = field(default_factory=dict)


class Judge:
    """Told of every answer when it leaves, and of every crash."""

    def __init__(self, library: Library) -> None:
        self.problems: list[str] = []
        self.answered = 0
        self.refused: dict[ErrorCode, int] = defaultdict(int)
        self.identities: dict[Identity, Issued] = {}
        self._library = library
        self._owners: dict[Exchange, Owner] = {}
        self._fences: dict[str, list[Fence]] = defaultdict(list)
        self._readings: dict[int, Reading] = defaultdict(Reading)

    def report(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)

    # -- answers

    def sent(self, exchange: Exchange, owner: Owner) -> None:
        self._owners[exchange] = owner

    def issued(self, exchange: Exchange, ends: Mapping[int, int]) -> None:
        """An answer leaves the broker, whose partitions end there."""
        exchange.replies += 1
        if exchange.replies > 1:
            self.report(f"{exchange} was answered {exchange.replies} times")
        self.answered += 1
        code = code_of(exchange.response)
        self.refused[code] += 1
        request = exchange.request
        if code is not ErrorCode.NONE:
            return
        begins = isinstance(request, InitProducerIdRequest)
        if begins or (isinstance(request, EndTxnRequest) and exchange.version >= 5):
            self._gave_identity(exchange, identity_in(exchange.response), begins, ends)

    def _gave_identity(self, exchange: Exchange, identity: Identity, begins: bool, ends: Mapping[int, int]) -> None:
        transactional_id = transactional_id_of(exchange.request)
        owner = self._owners.get(exchange)
        known = self.identities.get(identity)
        if known is not None:
            if None not in (owner, known.owner) and owner != known.owner:
                self.report(f"{identity} was given to {known.owner} and to {owner}")
            known.owner = known.owner or owner
            return
        rank = len(self.identities)
        self.identities[identity] = Issued(transactional_id, rank, owner)
        if begins:
            self._fences[transactional_id].append(Fence(rank, dict(ends)))

    def restarted(self, ends: Mapping[int, int], readable: Mapping[int, int] | None = None) -> None:
        """Partitions end there now: a power cut may have taken something.

        Was it a marker, then its transaction is open until the marker is written again: `readable` is how far one can
        read till then.
        """
        for fences in self._fences.values():
            for fence in fences:
                fence.ends = {index: min(end, ends[index]) for index, end in fence.ends.items()}
        for index, reading in self._readings.items():
            reading.position = min(reading.position, (readable or ends)[index])

    # -- readers

    def read(self, index: int, found: Iterable[tuple[int, str]], upto: int) -> None:
        """What a read_committed reader got from where it stood up to the last stable offset."""
        reading = self._readings[index]
        for offset, value in found:
            if offset < reading.position:
                continue
            if reading.seen.setdefault(offset, value) != value:
                self.report(f"{index}@{offset}: {reading.seen[offset]!r} and later {value!r}")
            if self._library.stories[number_of(value)].asked_commit_ms is None:
                self.report(f"aborted-read: {value!r} at {index}@{offset}, whose commit nobody asked for")
        if upto < reading.position:
            self.report(f"the last stable offset of {index} went back from {reading.position} to {upto}")
        reading.position = max(reading.position, upto)

    def position(self, index: int) -> int:
        return self._readings[index].position

    # -- in the end

    def judge_logs(self, batches: Iterable[tuple[int, int, Identity]]) -> None:
        """(partition, offset, identity) of every batch of data."""
        for index, offset, identity in batches:
            issued = self.identities.get(identity)
            if issued is None:
                self.report(f"{index}@{offset} was written by {identity}, which was given to nobody")
                continue
            for fence in self._fences[issued.transactional_id]:
                if fence.rank > issued.rank and offset >= fence.ends[index]:
                    self.report(f"zombie: {index}@{offset} was written by {identity} after a newer one had begun")

    def judge_stories(self, visible: Mapping[int, list[tuple[int, str]]], offsets: Mapping[str, int | None]) -> None:
        """What a read_committed reader finds in the end, by partition, and what each group's committed offset is."""
        for index, found in visible.items():
            if sorted(self._readings[index].seen.items()) != found:
                self.report(f"who read {index} as it grew saw something else than who reads it now")
        counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for found in visible.values():
            for _, value in found:
                counts[number_of(value)][value] += 1
        last_offset: dict[str, Story] = {}
        for story in self._library.stories:
            seen = counts[story.number]
            self._judge_story(story, seen)
            if seen and story.offset is not None and _is_later(story, last_offset.get(story.transactional_id)):
                last_offset[story.transactional_id] = story
        for transactional_id in {story.transactional_id for story in self._library.stories}:
            last = last_offset.get(transactional_id)
            expected = last.offset if last is not None else None
            if offsets.get(group_of(transactional_id)) != expected:
                self.report(
                    f"{transactional_id}: offset {offsets.get(group_of(transactional_id))}, output says {expected}"
                )

    def _judge_story(self, story: Story, seen: Mapping[str, int]) -> None:
        if repeated := [value for value, count in seen.items() if count > 1]:
            self.report(f"duplicate: {repeated} of transaction {story.number}")
        if seen and story.asked_commit_ms is None:
            self.report(f"aborted-read: {sorted(seen)} of transaction {story.number}")
        elif seen and set(seen) != story.values:
            self.report(f"torn: transaction {story.number} wrote {sorted(story.values)}, readers see {sorted(seen)}")
        elif not seen and story.is_committed:
            self.report(f"lost: transaction {story.number} was committed, and nothing of it is seen")


def _is_later(story: Story, than: Story | None) -> bool:
    if than is None:
        return True
    assert story.asked_commit_ms is not None
    assert than.asked_commit_ms is not None
    return story.asked_commit_ms > than.asked_commit_ms


def totals_of(refused: Mapping[ErrorCode, int]) -> dict[str, Any]:
    return {code.name: count for code, count in sorted(refused.items())}
