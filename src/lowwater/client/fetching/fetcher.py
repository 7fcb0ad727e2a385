"""Reads many partitions from the brokers that lead them, a little ahead of whoever takes what came."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.errors import ClientError, broker_error
from lowwater.client.fetching.asker import Asker
from lowwater.client.fetching.budget import Budget
from lowwater.client.fetching.events import AtEnd, Bounds, Event, Failed, Fetched
from lowwater.client.fetching.homes import Homes
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.resets import Resets
from lowwater.client.fetching.session import Change, FetchSession
from lowwater.client.fetching.stored import position_behind
from lowwater.client.flow import Flow, GivenUpError
from lowwater.client.offsets import ISOLATION
from lowwater.client.session import Leased
from lowwater.client.slices import FetchedSlice
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest, FetchResponse
from lowwater.wire.messages.fetch import PartitionData

HELD_BYTES_MAX = 128 * 1024 * 1024
_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_SESSIONS_REFUSED_MAX = 3
_CLOSE_TIMEOUT_MS = 1_000


class _Arrived:
    """An answer that nobody has taken yet, and whom it is about."""

    __slots__ = ("asker", "fetched", "of_events", "of_slices", "size", "turn")

    def __init__(self, fetched: Fetched, asker: Asker | None, turn: int) -> None:
        self.fetched = fetched
        self.asker = asker
        self.turn = turn
        self.size = 0
        self.of_slices: list[PartitionFetch] = []
        self.of_events: list[PartitionFetch] = []

    def add_slice(self, partition: PartitionFetch, one: FetchedSlice, position: int) -> None:
        self.fetched.slices.append(one)
        self.fetched.positions.append(position)
        self.of_slices.append(partition)
        self.size += len(one.records)

    def add_event(self, partition: PartitionFetch, event: Event) -> None:
        self.fetched.events.append(event)
        self.of_events.append(partition)


class Fetcher:
    """Everything is called in the driver's thread. Nothing here waits; `fetched` says when `take` has something.

    Of each leader one answer may lie here untaken while the next is on its way. What was asked for before a partition
    was removed or sought is never given out; what was asked for before a pause still is.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        bytes_max: int = HELD_BYTES_MAX,
        held_bytes: Callable[[], int] = lambda: 0,
        reset: str | None = None,
        isolation: str | None = None,
        tell_ends: bool | None = None,
    ) -> None:
        """`bytes_max` bounds what the caller holds, as `held_bytes` says, and what is here or on its way, together."""
        config = cluster.network.config
        self._cluster = cluster
        self._network = cluster.network
        self._is_committed_only = (isolation or config.str("isolation.level")) == "read_committed"
        self._isolation_level = ISOLATION["read_committed" if self._is_committed_only else "read_uncommitted"]
        self._tells_ends = config.bool("enable.partition.eof") if tell_ends is None else tell_ends
        self._rack = config.str("client.rack")
        self._replica_ms = config.int("metadata.max.age.ms")
        self._bytes_min = config.int("fetch.min.bytes")
        self._wait_ms = config.int("fetch.wait.max.ms")
        self._timeout_ms = config.int("request.timeout.ms")
        self.partition_bytes_max = config.int("max.partition.fetch.bytes")
        self._budget = Budget(bytes_max, config.int("fetch.max.bytes"), held_bytes)
        self._homes = Homes(cluster, found=self._place, failed=self._failed, looked=self._ended)
        self._resets = Resets(
            cluster,
            reset or config.str("auto.offset.reset"),
            isolation=isolation,
            again=self._homes.find,
            tell=self._tell,
            ended=self._ended,
        )
        self._partitions: dict[TopicPartition, PartitionFetch] = {}
        self._askers: dict[tuple[int, bool], Asker] = {}
        self._flows: set[Flow[None]] = set()
        self._arrived: deque[_Arrived] = deque()
        self._turns = 0  # how often something that was asked for became void
        self._waiter: Pending[None] | None = None
        self._bug: BaseException | None = None
        self._is_closed = False

    # ---- which partitions, and from where

    def add(self, partitions: Mapping[TopicPartition, int]) -> None:
        """Read these from these offsets."""
        for one, offset in partitions.items():
            assert one not in self._partitions, f"{one} is there already"
            self._partitions[one] = partition = PartitionFetch(one, offset)
            self._homes.find(partition)
        self._pursue()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        self._turns += 1
        for one in partitions:
            self._withdraw(self._partitions.pop(one))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Do not ask for these. Nothing is forgotten of where they are."""
        for one in partitions:
            partition = self._partitions[one]
            partition.is_paused = True
            self._withdraw(partition)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for one in partitions:
            partition = self._partitions[one]
            if partition.is_paused:
                partition.is_paused = False
                self._homes.find(partition)
        self._pursue()

    def seek(self, one: TopicPartition, offset: int) -> None:
        """Read on from `offset`, also after a failure; whether it is paused stays as it is."""
        before = self._partitions[one]
        self._turns += 1
        self._withdraw(before)
        self._partitions[one] = partition = before.moved_to(offset)
        if not partition.is_paused:
            self._homes.find(partition)
        self._pursue()

    def _withdraw(self, partition: PartitionFetch) -> None:
        self._homes.forget(partition.one)
        if partition.asker is not None:
            partition.asker.session.drop(partition.one)

    def position(self, one: TopicPartition) -> int:
        """Behind the last batch that came, whether or not it was taken."""
        return self._partitions[one].position

    def bounds(self, one: TopicPartition) -> Bounds | None:
        """As of the last answer about it; None before the first."""
        partition = self._partitions[one]
        return partition.bounds if partition.is_known else None

    def __contains__(self, one: TopicPartition) -> bool:
        return one in self._partitions

    def __len__(self) -> int:
        return len(self._partitions)

    # ---- what came

    def fetched(self) -> Pending[None]:
        """Settled when `take` has something to give, or has to raise."""
        self._pursue()
        if self._waiter is None:
            self._waiter = Pending()
            # Whoever gives up is not to be called for ever after; others that wait look once more.
            self._waiter.on_abandon = self._wake
        waiter = self._waiter
        if self._arrived or self._bug is not None:
            self._wake()
        return waiter

    def take(self) -> list[Fetched]:
        """What came since the last time, in order; mostly one answer. The caller releases each."""
        if self._bug is not None:
            raise self._bug
        taken = []
        while self._arrived:
            arrived = self._arrived.popleft()
            self._budget.taken(arrived.size)
            if arrived.asker is not None:
                arrived.asker.untaken -= 1
            fetched = arrived.fetched if arrived.turn == self._turns else self._still_wanted(arrived)
            if fetched.slices or fetched.events:
                taken.append(fetched)
        self._pursue()
        return taken

    def _still_wanted(self, arrived: _Arrived) -> Fetched:
        """Without what concerns partitions that were removed or sought since it came."""
        whole = arrived.fetched
        kept = Fetched([], [], [], whole.release)
        for one, position, partition in zip(whole.slices, whole.positions, arrived.of_slices, strict=True):
            if self._partitions.get(one.partition) is partition:
                kept.slices.append(one)
                kept.positions.append(position)
        for event, partition in zip(whole.events, arrived.of_events, strict=True):
            if self._partitions.get(event.partition) is partition:
                kept.events.append(event)
        if not kept.slices:
            whole.release()
        return kept

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done:
            waiter.resolve(None)

    # ---- asking

    def _place(self, partition: PartitionFetch) -> None:
        """Its leader is known: ask there, on the stream that fits."""
        if partition.is_paused or partition.is_stopped:
            return
        node = self._cluster.leader(partition.one)
        if partition.has_replica(self._network.driver.monotonic_ms()) and partition.replica in self._network.nodes:
            node = partition.replica
        asker = self._asker(node, is_waiting=partition.is_at_end(self._is_committed_only))
        if partition.asker is not None and partition.asker is not asker:
            partition.asker.session.drop(partition.one)
        partition.asker = asker
        asker.session.want(partition)

    def _asker(self, node: int, *, is_waiting: bool) -> Asker:
        asker = self._askers.get((node, is_waiting))
        if asker is None:
            session = FetchSession(self._cluster.epoch, self.partition_bytes_max)
            asker = self._askers[node, is_waiting] = Asker(node, session, is_waiting=is_waiting)
        return asker

    def _pursue(self) -> None:
        """Ask wherever there is something to ask for, and room for the answer."""
        if self._is_closed:
            return
        for asker in list(self._askers.values()):
            if asker.is_asking or not asker.session.wanted or asker.untaken > 1:
                continue
            room = self._budget.room(len(self._askers), is_urgent=not self._arrived and not asker.is_waiting)
            if room:
                self._ask(asker, room)

    def _ask(self, asker: Asker, bytes_max: int) -> None:
        asker.is_asking = True
        flow = Flow(self._fetch(asker, bytes_max))
        if not flow.done:
            self._flows.add(flow)
        flow.on_done(self._ended)

    def _ended(self, flow: Pending[Any]) -> None:
        self._flows.discard(flow)
        try:
            flow.result()
        except GivenUpError:
            return
        except BaseException as bug:
            # Nobody awaits this flow: whoever takes next is told.
            self._bug = self._bug or bug
            self._wake()
        else:
            self._pursue()

    async def _fetch(self, asker: Asker, bytes_max: int) -> None:
        wait_ms = self._wait_ms if asker.is_waiting else 0
        self._budget.reserve(bytes_max)
        try:
            leased = await self._network.ask(
                asker.node,
                lambda _: self._request(asker.session.next_change(), bytes_max, wait_ms),
                api=FetchRequest,
                versions=asker.versions,
                timeout_ms=self._timeout_ms + wait_ms,
                lane=asker.lane,
            )
        except ClientError as error:
            self._lost(asker, error)
        else:
            self._answered(asker, leased)
        finally:
            asker.is_asking = False
            self._budget.arrived(bytes_max)

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

    def _lost(self, asker: Asker, error: ClientError) -> None:
        """The broker cannot be asked. Perhaps others lead its partitions by now."""
        asker.session.begin_again(is_gone=False)
        partitions = list(asker.session.wanted)
        self._cluster.outdate({partition.one.topic for partition in partitions})
        for partition in partitions:
            self._withdraw(partition)
            partition.leave_replica()
            if error.retriable:
                self._homes.find(partition, error)
            else:
                self._failed(partition, Failed(partition.one, error))

    # ---- answers

    def _answered(self, asker: Asker, leased: Leased) -> None:
        response: FetchResponse = leased.response
        if response.error_code:
            leased.release()
            self._refused(asker, response.error_code)
            return
        asker.refused_sessions = 0
        asker.session.answered(response.session_id)
        arrived = _Arrived(Fetched([], [], [], leased.release), asker, self._turns)
        for topic in response.responses:
            name = asker.session.name_of(topic)
            for data in topic.partitions:
                one = TopicPartition(name, data.partition_index)
                partition = asker.session.asked(one)
                if partition is not None and self._partitions.get(one) is partition and partition.asker is asker:
                    self._take(asker, partition, data, arrived)
        if not arrived.of_slices:
            leased.release()
        if arrived.of_slices or arrived.of_events:
            self._arrive(arrived)
        if not arrived.of_slices and not asker.is_waiting:
            self._let_wait(asker)

    def _refused(self, asker: Asker, code: int) -> None:
        asker.refused_sessions += 1
        if code not in _SESSION_ERRORS or asker.refused_sessions > _SESSIONS_REFUSED_MAX:
            self._lost(asker, broker_error(code, "nothing can be fetched"))
        else:
            asker.session.begin_again(is_gone=code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def _take(self, asker: Asker, partition: PartitionFetch, data: PartitionData, arrived: _Arrived) -> None:
        if data.error_code:
            self._trouble(asker, partition, data)
            return
        partition.went_well()
        partition.log_start = data.log_start_offset
        partition.high_watermark = data.high_watermark
        partition.last_stable = data.last_stable_offset
        has_moved = bool(data.records) and self._take_records(partition, data, arrived)
        if self._tells_ends:
            self._look_for_end(partition, arrived)
        if data.preferred_read_replica >= 0 and self._rack:
            partition.go_to_replica(data.preferred_read_replica, self._network.driver.monotonic_ms() + self._replica_ms)
            self._place(partition)
        elif partition.is_paused or partition.is_stopped:
            asker.session.drop(partition.one)
        elif has_moved or asker.is_waiting != partition.is_at_end(self._is_committed_only):
            self._place(partition)

    def _take_records(self, partition: PartitionFetch, data: PartitionData, arrived: _Arrived) -> bool:
        """Whether the partition is further now."""
        records, before = data.records, partition.position
        assert records is not None
        assert not isinstance(records, list), "records that were received are in one piece"
        position, is_damaged = position_behind(records, before)
        if position == before and not is_damaged:
            return False  # less than one batch
        aborted = data.aborted_transactions or ()
        slice_ = FetchedSlice(
            partition.one,
            before,
            records,
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
            [(each.producer_id, each.first_offset) for each in aborted] if aborted else (),
        )
        arrived.add_slice(partition, slice_, position)
        partition.position = position
        partition.is_told_at_end = False
        # Whoever decodes it says what is wrong with it; until then it would only come again.
        partition.is_stopped = is_damaged
        return True

    def _look_for_end(self, partition: PartitionFetch, arrived: _Arrived) -> None:
        if partition.is_told_at_end or not partition.is_at_end(self._is_committed_only):
            return
        partition.is_told_at_end = True
        arrived.add_event(partition, AtEnd(partition.one, partition.position))

    def _let_wait(self, asker: Asker) -> None:
        """None of them had anything, whatever was said of their ends: the broker is to say when that changes."""
        for partition in list(asker.session.wanted):
            asker.session.drop(partition.one)
            partition.asker = self._asker(asker.node, is_waiting=True)
            partition.asker.session.want(partition)

    def _trouble(self, asker: Asker, partition: PartitionFetch, data: PartitionData) -> None:
        one, code = partition.one, data.error_code
        self._withdraw(partition)
        error = broker_error(code, topic=one.topic, partition=one.partition, offset=partition.position)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and asker.node != partition.replica:
            self._resets.out_of_range(partition)
            return
        partition.leave_replica()
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._homes.find(partition)  # a replica may not have it yet, or not any more; the leader knows
        elif code in OUTDATED:
            self._look_for_leader(partition, data, error)
        elif error.retriable:
            self._homes.find(partition, error)
        else:
            self._failed(partition, Failed(one, error))

    def _look_for_leader(self, partition: PartitionFetch, data: PartitionData, error: ClientError) -> None:
        now = data.current_leader
        if now is not None and self._cluster.moved(partition.one, now.leader_id, now.leader_epoch):
            self._homes.find(partition)
        else:
            self._cluster.outdate([partition.one.topic])
            self._homes.find(partition, error)

    # ---- telling

    def _arrive(self, arrived: _Arrived) -> None:
        self._budget.came(arrived.size)
        if arrived.asker is not None:
            arrived.asker.untaken += 1
        self._arrived.append(arrived)
        self._wake()

    def _failed(self, partition: PartitionFetch, event: Failed) -> None:
        partition.is_stopped = partition.is_stopped or not event.error.retriable
        self._tell(partition, event)

    def _tell(self, partition: PartitionFetch, event: Event) -> None:
        if self._partitions.get(partition.one) is partition:
            arrived = _Arrived(Fetched([], [], [], _nothing), None, self._turns)
            arrived.add_event(partition, event)
            self._arrive(arrived)

    # ---- the end

    def close(self) -> None:
        """Nothing is asked any more, and what was not taken is let go."""
        self._is_closed = True
        self._homes.close()
        self._resets.close()
        for flow in list(self._flows):
            flow.cancel()
        while self._arrived:
            self._arrived.popleft().fetched.release()

    async def aclose(self) -> None:
        """The same; brokers are told that the sessions are not needed any more."""
        self.close()
        ends = [self._end_session(asker) for asker in self._askers.values() if asker.session.id]
        for end in ends:
            try:
                await end
            except ClientError:
                continue  # then it goes when the broker needs the room

    def _end_session(self, asker: Asker) -> Pending[Any]:
        request = self._request(asker.session.last_change(), 0, 0)
        ended: Pending[Any] = self._network.ask(asker.node, request, timeout_ms=_CLOSE_TIMEOUT_MS)
        return ended


def _nothing() -> None:
    pass
