"""Asks each broker for the partitions that it leads, as far as there is room for what comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.fetching.asker import Asker
from lowwater.client.fetching.budget import Budget
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.session import Change, FetchSession
from lowwater.client.fetching.stored import NO_CLOCK
from lowwater.client.fetching.turns import due_first, first_pieces, silent_of
from lowwater.client.flow import Flow
from lowwater.client.offsets import ISOLATION
from lowwater.client.session import Leased
from lowwater.merge.mark import END_MS
from lowwater.pending import Pending
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest

_CLOSE_TIMEOUT_MS = 1_000
_EPOCHS_SINCE = 12
_HALVES = 2
_SHARED_WAIT_MS = 20
"""Where nothing has a connection of its own everything else waits meanwhile."""
_UNTAKEN_MAX = 1
"""Answers of one stream that may wait to be taken while the next is on its way."""


class Asking:
    """All streams of requests. What came is given to `answered`, or, when nothing can come, to `lost`.

    `away` says which partitions are waited for in order of time, and are in no stream that brings them now.
    """

    def __init__(
        self,
        cluster: Cluster,
        budget: Budget,
        isolation: str,
        *,
        away: Callable[[], Iterable[PartitionFetch]],
        answered: Callable[[Asker, Leased], None],
        lost: Callable[[Asker, ClientError], None],
        ended: Callable[[Pending[Any]], None],
    ) -> None:
        config = cluster.network.config
        self._cluster = cluster
        self._network = cluster.network
        self._budget = budget
        self._isolation_level = ISOLATION[isolation]
        self._rack = config.str("client.rack")
        self._bytes_min = config.int("fetch.min.bytes")
        self._wait_ms = config.int("fetch.wait.max.ms")
        if not cluster.network.has_lanes:
            self._wait_ms = min(self._wait_ms, _SHARED_WAIT_MS)
        self._timeout_ms = config.int("request.timeout.ms")
        self._away = away
        self._answered = answered
        self._lost = lost
        self._ended = ended
        self._askers: dict[tuple[int, bool], Asker] = {}
        self._flows: set[Pending[Any]] = set()
        self._is_closed = False
        self._until_ms: int | None = None

    def read_in_time(self, until_ms: int | None) -> None:
        """Whether those who are furthest behind in time come first; what is stamped later than this does not count."""
        if until_ms is None and self._until_ms is not None:
            for asker in self._askers.values():
                asker.session.tell_all()
        self._until_ms = until_ms

    @property
    def until_ms(self) -> int:
        return NO_CLOCK if self._until_ms is None else self._until_ms

    def place(self, partition: PartitionFetch, node: int, *, is_waiting: bool) -> None:
        """From now on ask for it there, and nowhere else."""
        asker = self._askers.get((node, is_waiting))
        if asker is None:
            session = FetchSession(self._cluster.epoch, self._budget.partition_bytes)
            asker = self._askers[node, is_waiting] = Asker(node, session, is_waiting=is_waiting)
        if partition.asker is not None and partition.asker is not asker:
            partition.asker.session.drop(partition.one)
        partition.asker = asker
        asker.session.want(partition)

    def pursue(self, *, is_dry: bool) -> None:
        """Ask wherever there is something to ask for, and room. `is_dry`: there is nothing to take meanwhile."""
        if self._is_closed:
            return
        busy = [asker for asker in self._askers.values() if asker.session.wanted]
        for asker in busy:
            if asker.is_asking or asker.untaken > _UNTAKEN_MAX:
                continue
            room = self._budget.room(len(busy), is_urgent=is_dry and self._is_urgent(asker))
            room = min(room, asker.appetite_bytes)
            turns = None
            if self.is_in_time(asker):
                room = min(room, self._budget.turn_bytes)
                turns = self._turns(asker, room) if room else None
                if not turns:
                    continue  # others are waited for, or there is no room
            if room:
                self._begin(asker, room, turns)

    def _is_urgent(self, asker: Asker) -> bool:
        """Of those who wait at a broker only such are that others wait for."""
        if not asker.is_waiting:
            return True
        return self._until_ms is not None and any(asker.session.wants(each.one) for each in self._away())

    @property
    def pursued(self) -> int:
        """How many partitions are asked for, and not only to wait at a broker."""
        return sum(len(asker.session.wanted) for asker in self._askers.values() if not asker.is_waiting)

    def is_in_time(self, asker: Asker) -> bool:
        return self._until_ms is not None and not asker.is_waiting

    def _turns(self, asker: Asker, bytes_max: int) -> dict[TopicPartition, int]:
        """What to ask for in order of time: of those whose turn it is, whoever leads them, this broker's.

        Brokers bring their first rows side by side. Nobody is asked for who is ahead of one that cannot be: whatever
        came would only be held until that one is back.
        """
        wanted = [one for each in self._askers.values() if not each.is_waiting for one in each.session.wanted]
        mine, piece_bytes = asker.session, self._budget.piece_bytes_min
        if silent := silent_of(mine.wanted):
            due = first_pieces(silent, len(wanted), bytes_max, piece_bytes)
        else:
            until_ms = min((each.clock_ms for each in self._away()), default=END_MS)
            due = due_first([each for each in wanted if each.clock_ms <= until_ms], bytes_max, piece_bytes)
        most = self._budget.piece_bytes_max
        return {one: min(size, most) for one, size in due.items() if mine.wants(one)}

    def brought(self, asker: Asker, partitions: Iterable[PartitionFetch], size: int) -> None:
        """An answer had so much of these. Where there was room for more, batches of the others did not fit into what
        was asked for of them: of only the first partition a batch comes that is larger."""
        if not self.is_in_time(asker) or _HALVES * size > asker.asked_bytes:
            return
        came = set(partitions)
        for partition in asker.session.told:
            if partition not in came:
                partition.batch_bytes = max(partition.batch_bytes, partition.asked_bytes)

    def saw(self, piece_bytes: int, asked_bytes: int) -> None:
        """A partition brought so much. Perhaps more has to be asked for of all of them."""
        if self._budget.saw(piece_bytes, asked_bytes):
            for each in self._askers.values():
                each.session.tell_all()

    def _begin(self, asker: Asker, bytes_max: int, turns: dict[TopicPartition, int] | None) -> None:
        asker.is_asking = True
        flow = Flow(self._fetch(asker, bytes_max, turns))
        self._flows.add(flow)
        flow.on_done(self._done)

    def _done(self, flow: Pending[Any]) -> None:
        self._flows.discard(flow)
        self._ended(flow)

    async def _fetch(self, asker: Asker, bytes_max: int, turns: dict[TopicPartition, int] | None) -> None:
        wait_ms = self._wait_ms if asker.is_waiting else 0
        asker.asked_bytes, asker.asked_ms = bytes_max, self._network.driver.monotonic_ms()
        self._budget.reserve(bytes_max)
        asker.turns = turns
        try:
            asked = self._network.ask(
                asker.node,
                lambda version: self._request(self._change(asker, version, bytes_max), bytes_max, wait_ms),
                api=FetchRequest,
                versions=asker.versions,
                timeout_ms=self._timeout_ms + wait_ms,
                lane=asker.lane,
            )
            asker.turns = None  # what is sent later, when there is a connection, looks again
            leased = await asked
        except ClientError as error:
            self._lost(asker, error)
        else:
            self._answered(asker, leased)
        finally:
            asker.is_asking = False
            self._budget.arrived(bytes_max)

    def _change(self, asker: Asker, version: int, bytes_max: int) -> Change:
        sizes = asker.turns
        if sizes is None and self.is_in_time(asker):
            sizes = self._turns(asker, bytes_max)
        return asker.session.next_change(sizes, has_epochs=version >= _EPOCHS_SINCE)

    def _request(self, change: Change, bytes_max: int, wait_ms: int) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=self._bytes_min,
            max_bytes=bytes_max,
            isolation_level=self._isolation_level,
            session_id=change.session_id,
            session_epoch=change.epoch,
            topics=change.topics,
            forgotten_topics_data=change.forgotten,
            rack_id=self._rack,
        )

    # ---- the end

    def close(self) -> None:
        self._is_closed = True
        for flow in list(self._flows):
            flow.abandon()

    async def end_sessions(self) -> None:
        """Tell the brokers that they need not remember anything any more."""
        ends = [self._end(asker) for asker in self._askers.values() if asker.session.id]
        for end in ends:
            try:
                await end
            except ClientError:
                continue  # then it goes when the broker needs the room

    def _end(self, asker: Asker) -> Pending[Any]:
        request = self._request(asker.session.last_change(), 0, 0)
        return self._network.ask(asker.node, request, timeout_ms=_CLOSE_TIMEOUT_MS).map(lambda leased: leased.release())
