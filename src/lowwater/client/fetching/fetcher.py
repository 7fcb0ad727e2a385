"""Reads many partitions from the brokers that lead them, a little ahead of whoever takes what came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.errors import ClientError, broker_error
from lowwater.client.fetching.arrivals import Arrivals, Arrived
from lowwater.client.fetching.asker import Asker
from lowwater.client.fetching.asking import Asking
from lowwater.client.fetching.budget import Budget
from lowwater.client.fetching.events import AtEnd, Bounds, Event, Failed, Fetched, Truncated
from lowwater.client.fetching.gaps import Gaps
from lowwater.client.fetching.homes import Homes
from lowwater.client.fetching.partition import NO_STOP, PartitionFetch
from lowwater.client.fetching.resets import Resets
from lowwater.client.fetching.stored import NO_EPOCH, look_at
from lowwater.client.flow import GivenUpError
from lowwater.client.session import Leased
from lowwater.client.slices import FetchedSlice
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchResponse
from lowwater.wire.messages.fetch import PartitionData
from lowwater.wire.schema import ZERO_UUID

HELD_BYTES_MAX = 128 * 1024 * 1024
_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_SESSIONS_REFUSED_MAX = 3
RESET_ADVICE = "choose another start, or set auto.offset.reset to earliest or latest"


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
        topic_ids: Mapping[str, bytes] | None = None,
        reset_advice: str = RESET_ADVICE,
        partition_bytes: int | None = None,
    ) -> None:
        """`bytes_max` bounds what the caller holds, as `held_bytes` says, and what is here or on its way, together.

        Of topics in `topic_ids` nothing is read from another of the same name.
        """
        config = cluster.network.config
        isolation = isolation or config.str("isolation.level")
        self._cluster = cluster
        self._driver = cluster.network.driver
        self._is_committed_only = isolation == "read_committed"
        self._tells_ends = config.bool("enable.partition.eof") if tell_ends is None else tell_ends
        self._has_rack = bool(config.str("client.rack"))
        self._topic_ids = topic_ids or {}
        self._replica_ms = config.int("metadata.max.age.ms")
        self._partitions: dict[TopicPartition, PartitionFetch] = {}
        self._finished_epochs: dict[TopicPartition, int] = {}
        self._stops: dict[TopicPartition, int] = {}
        self._waits_for: Callable[[TopicPartition], bool] = lambda _: True
        budget = Budget(config, bytes_max, held_bytes, partition_bytes=partition_bytes)
        self._arrivals = Arrivals(self._partitions, budget)
        self._asking = Asking(
            cluster,
            budget,
            isolation,
            away=self._away,
            answered=self._answered,
            lost=self._lost,
            ended=self._ended,
        )
        self._homes = Homes(cluster, found=self._place, failed=self._failed, ended=self._ended)
        self._gaps = Gaps(
            cluster, isolation, skip=self._skip_gap, wait=self._let_wait, again=self._go_on, ended=self._ended
        )
        policy = reset or config.str("auto.offset.reset")
        self._resets = Resets(
            cluster, policy, isolation, reset_advice, again=self._go_on, tell=self._tell, ended=self._ended
        )

    # ---- which partitions, and from where

    def add(self, partitions: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int] | None = None) -> None:
        """Read these from these offsets. `epochs`: of the leaders that took what was read before them, where known."""
        for one, offset in partitions.items():
            assert one not in self._partitions, f"{one} is there already"
            self._partitions[one] = partition = PartitionFetch(one, offset)
            partition.topic_id = self._topic_ids.get(one.topic, ZERO_UUID)
            partition.fetched_epoch = self._plausible(one, (epochs or {}).get(one, NO_EPOCH))
            partition.stop = self._stops.get(one, NO_STOP)
            self._finished_epochs.pop(one, None)
            self._homes.find(partition)
        self._pursue()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Nothing is known of them any more; also of those that are finished."""
        for one in partitions:
            self._finished_epochs.pop(one, None)
            self._stops.pop(one, None)
            if one in self._partitions:
                self._withdraw(self._partitions.pop(one))
        self._arrivals.outdate()

    def stop_at(self, one: TopicPartition, offset: int) -> None:
        """Nothing from there on is wanted: once it came so far, no more is asked for."""
        self._stops[one] = offset
        if one in self._partitions:
            self._partitions[one].stop = offset

    def finish(self, one: TopicPartition) -> None:
        """It is read as far as it is wanted: nothing more is asked for, but `epoch_behind` still answers."""
        partition = self._partitions.pop(one)  # its stop stays: rows of it may be put back
        self._withdraw(partition)
        self._finished_epochs[one] = partition.fetched_epoch
        self._arrivals.outdate()

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
        self._withdraw(before)
        self._partitions[one] = partition = before.moved_to(offset)
        self._arrivals.outdate()
        if not partition.is_paused:
            self._homes.find(partition)
        self._pursue()

    def put_back(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Read these again, from an offset on, when others have come to a time."""
        for one, (offset, clock_ms) in offsets.items():
            before = self._partitions.get(one)
            if before is not None:
                self._withdraw(before)
            partition = PartitionFetch(one, offset) if before is None else before.moved_to(offset)
            partition.topic_id = self._topic_ids.get(one.topic, ZERO_UUID) if before is None else partition.topic_id
            partition.clock_ms, partition.stop = clock_ms, self._stops.get(one, NO_STOP)
            self._partitions[one] = partition
            if not partition.is_paused:
                self._homes.find(partition)
        self._arrivals.outdate()
        self._pursue()

    def read_in_time(self, until_ms: int | None, waits_for: Callable[[TopicPartition], bool] = lambda _: True) -> None:
        """Whether to ask for those first that are furthest behind in time; what is stamped later than `until_ms` does
        not count. With None everybody has his turn, as without this call.

        While one of those that `waits_for` names cannot be asked for, nobody is who is ahead of it.
        """
        self._waits_for = waits_for
        self._asking.read_in_time(until_ms)

    def stands_at(self, one: TopicPartition, position: int, clock_ms: int) -> None:
        """What came of it up to this position leads up to this time; headers, by which that was guessed, may differ."""
        partition = self._partitions.get(one)
        if partition is not None and partition.position == position:
            partition.clock_ms = clock_ms

    def _withdraw(self, partition: PartitionFetch) -> None:
        self._homes.forget(partition.one)
        if partition.asker is not None:
            partition.asker.session.drop(partition.one)

    def _plausible(self, one: TopicPartition, epoch: int) -> int:
        """The epoch, unless there never was such a leader, as in a topic that was made anew: to wait for him is in
        vain, and whether an offset is within the log is seen without it."""
        return epoch if epoch <= self._cluster.epoch(one) else NO_EPOCH

    def epoch_behind(self, one: TopicPartition) -> int:
        """Of the leader that took the last batch that came of it, also when it is finished; -1: not known.

        Whoever asks a broker where this epoch ended learns whether something before our position was lost.
        """
        partition = self._partitions.get(one)
        return self._finished_epochs.get(one, NO_EPOCH) if partition is None else partition.fetched_epoch

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
        """Settled when `take` has something to give, or has to raise. Also looks whether there is room for more."""
        self._pursue()
        return self._arrivals.wait()

    def take(self) -> list[Fetched]:
        """What came since the last time, in order; mostly one answer. The caller releases each."""
        taken = self._arrivals.take()
        self._pursue()
        return taken

    def close(self) -> None:
        """Nothing is asked any more, and what was not taken is let go."""
        self._homes.close()
        self._resets.close()
        self._gaps.close()
        self._asking.close()
        self._arrivals.close()

    async def aclose(self) -> None:
        """The same; brokers are told that the sessions are not needed any more."""
        self.close()
        await self._asking.end_sessions()

    # ---- asking

    def _pursue(self) -> None:
        self._asking.pursue(is_dry=not self._arrivals)

    def _away(self) -> Iterator[PartitionFetch]:
        """Those that are waited for and should have more, but that no broker is asked for, or only to wait there."""
        if self._asking.pursued == len(self._partitions):
            return
        for partition in self._partitions.values():
            asker = partition.asker
            if asker is not None and not asker.is_waiting and asker.session.wants(partition.one):
                continue
            rests = partition.is_paused or partition.is_stopped or partition.is_at_end(self._is_committed_only)
            if not rests and not partition.is_enough and self._waits_for(partition.one):
                yield partition

    def _place(self, partition: PartitionFetch) -> None:
        """Its leader is known: ask there, at once. What was known of its end may be old."""
        if partition.is_paused or partition.is_stopped:
            return
        node = self._cluster.leader(partition.one)
        if partition.has_replica(self._driver.monotonic_ms()) and partition.replica in self._cluster.network.nodes:
            node = partition.replica
        self._asking.place(partition, node, is_waiting=False)

    def _go_on(self, partition: PartitionFetch, error: ClientError | None) -> None:
        if self._is_wanted(partition):
            self._homes.find(partition, error)

    def _is_wanted(self, partition: PartitionFetch) -> bool:
        return self._partitions.get(partition.one) is partition and not partition.is_paused

    def _ended(self, flow: Pending[Any]) -> None:
        """Of something that went on by itself, and that nobody awaits."""
        try:
            flow.result()
        except GivenUpError:
            return
        except BaseException as bug:
            self._arrivals.break_off(bug)
        else:
            self._pursue()

    def _lost(self, asker: Asker, error: ClientError) -> None:
        """The broker cannot be asked. Perhaps others lead its partitions by now."""
        asker.session.begin_again()
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
        arrived = Arrived(leased.release, asker)
        pieces = 0
        for topic in response.responses:
            name = asker.session.name_of(topic)
            for data in topic.partitions:
                pieces += bool(data.records)
                one = TopicPartition(name, data.partition_index)
                partition, current = asker.session.asked(one), self._partitions.get(one)
                if partition is None:
                    continue
                if current is partition and partition.asker is asker:
                    self._take(asker, partition, data, arrived)
                elif not data.error_code:
                    self._heard_of(partition, current, data)
        if arrived.of_slices:
            took_ms = self._driver.monotonic_ms() - asker.asked_ms
            asker.grow(took_ms, is_in_time=self._asking.is_in_time(asker))
            self._asking.brought(asker, arrived.of_slices, arrived.size)
        else:
            leased.release()
            if pieces == len(arrived.of_pieces):
                self._brought_nothing(asker, arrived, is_throttled=response.throttle_time_ms > 0)
        if arrived.of_slices or arrived.of_events:
            self._arrivals.put(arrived)

    def _heard_of(self, asked: PartitionFetch, current: PartitionFetch | None, data: PartitionData) -> None:
        """A session tells bounds once, and they hold wherever the partition is read from now."""
        asked.has_bounds(data)
        if current is None or current.topic_id != asked.topic_id:
            return
        current.has_bounds(data)
        is_waiting = current.asker is not None and current.asker.is_waiting
        if is_waiting and not current.is_stopped and not current.is_at_end(self._is_committed_only):
            self._go_on(current, None)

    def _brought_nothing(self, asker: Asker, arrived: Arrived, *, is_throttled: bool) -> None:
        """No whole batch came, also of none that is not wanted any more."""
        for partition in arrived.of_pieces:
            self._withdraw(partition)
            self._homes.find(partition, _in_pieces(partition))
        # A broker whose quota is used up answers nothing, whatever there is.
        if not (arrived.of_pieces or asker.is_waiting or is_throttled):
            self._ran_dry(asker)

    def _ran_dry(self, asker: Asker) -> None:
        """None of those that should have more had any. From here on the broker is to say when there is something."""
        for partition in list(asker.session.wanted):
            if asker.session.asked(partition.one) is not partition:
                continue  # it was not asked for yet
            if partition.is_known and not partition.is_at_end(self._is_committed_only):
                self._withdraw(partition)
                self._gaps.look_into(partition)
            else:
                self._asking.place(partition, asker.node, is_waiting=True)

    def _skip_gap(self, partition: PartitionFetch) -> None:
        """There is nothing left up to its end."""
        if (end := partition.end(self._is_committed_only)) > partition.position:
            partition.go_to(end)
        if self._tells_ends and not partition.is_told_at_end:
            partition.is_told_at_end = True
            self._tell(partition, AtEnd(partition.one, partition.position))
        self._go_on(partition, None)

    def _let_wait(self, partition: PartitionFetch) -> None:
        asker = partition.asker
        if asker is not None and self._is_wanted(partition):
            self._asking.place(partition, asker.node, is_waiting=True)

    def _refused(self, asker: Asker, code: int) -> None:
        asker.refused_sessions += 1
        if code not in _SESSION_ERRORS or asker.refused_sessions > _SESSIONS_REFUSED_MAX:
            self._lost(asker, broker_error(code, "nothing can be fetched"))
        else:
            asker.session.begin_again()

    def _take(self, asker: Asker, partition: PartitionFetch, data: PartitionData, arrived: Arrived) -> None:
        if data.error_code:
            self._trouble(asker, partition, data)
            return
        if data.diverging_epoch is not None and data.diverging_epoch.end_offset >= 0:
            self._diverged(asker, partition, data, arrived)
            return
        partition.has_bounds(data)
        has_moved = bool(data.records) and self._take_records(asker, partition, data, arrived)
        if has_moved or not data.records:
            partition.went_well()
        is_at_end = self._look_for_end(partition, arrived)
        if partition.is_paused:
            return
        if partition.is_stopped or (has_moved and partition.is_enough):
            self._withdraw(partition)
        elif self._has_rack and self._is_elsewhere(asker, partition, data):
            self._withdraw(partition)
            self._homes.find(partition)
        elif has_moved or asker.is_waiting != is_at_end:
            self._asking.place(partition, asker.node, is_waiting=is_at_end)

    def _look_for_end(self, partition: PartitionFetch, arrived: Arrived) -> bool:
        is_at_end = partition.is_at_end(self._is_committed_only)
        if is_at_end and self._tells_ends and not partition.is_told_at_end:
            partition.is_told_at_end = True
            arrived.add_event(partition, AtEnd(partition.one, partition.position))
        return is_at_end

    def _is_elsewhere(self, asker: Asker, partition: PartitionFetch, data: PartitionData) -> bool:
        """Whether it is better read from another replica: from one nearby, or, after some time, from the leader."""
        now_ms = self._driver.monotonic_ms()
        if data.preferred_read_replica >= 0:
            partition.go_to_replica(data.preferred_read_replica, now_ms + self._replica_ms)
            return True
        return asker.node == partition.replica and not partition.has_replica(now_ms)

    def _take_records(self, asker: Asker, partition: PartitionFetch, data: PartitionData, arrived: Arrived) -> bool:
        """Whether the partition is further now."""
        records, before = data.records, partition.position
        assert records is not None
        assert not isinstance(records, list), "what was received is in one piece"
        piece = look_at(records, before)
        if piece.position == before and not piece.is_damaged:
            arrived.of_pieces.append(partition)
            return False
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        bounds = (data.high_watermark, data.last_stable_offset, data.log_start_offset)
        arrived.add_slice(partition, FetchedSlice(partition.one, before, records, *bounds, aborted), piece.position)
        self._asking.saw(len(records), partition.asked_bytes)
        partition.go_on_with(piece, len(records), self._asking.until_ms)
        partition.is_told_at_end = False
        # Whoever decodes it says what is wrong with it; until then it would only come again.
        partition.is_stopped = partition.is_stopped or piece.is_damaged
        return True

    # ---- trouble

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

    def _diverged(self, asker: Asker, partition: PartitionFetch, data: PartitionData, arrived: Arrived) -> None:
        """What we read last is not there, or not in that place: from there on the log is another one."""
        assert data.diverging_epoch is not None
        self._withdraw(partition)
        if asker.node == partition.replica:
            partition.leave_replica()
            self._homes.find(partition)  # perhaps it only lags; the leader knows
            return
        partition.has_bounds(data)
        diverged = min(data.diverging_epoch.end_offset, partition.position)
        arrived.add_event(partition, Truncated(partition.one, diverged, partition.position, self._resets.goes_on))

    def _look_for_leader(self, partition: PartitionFetch, data: PartitionData, error: ClientError) -> None:
        now = data.current_leader
        if now is not None and self._cluster.moved(partition.one, now.leader_id, now.leader_epoch):
            self._homes.find(partition)
        else:
            self._cluster.outdate([partition.one.topic])
            self._homes.find(partition, error)

    def _failed(self, partition: PartitionFetch, event: Failed) -> None:
        partition.is_stopped = partition.is_stopped or not event.error.retriable
        self._tell(partition, event)

    def _tell(self, partition: PartitionFetch, event: Event) -> None:
        if self._partitions.get(partition.one) is partition:
            arrived = Arrived(_nothing)
            arrived.add_event(partition, event)
            self._arrivals.put(arrived)


def _in_pieces(partition: PartitionFetch) -> ClientError:
    what, advice = "the broker sends only a part of the next batch", "make max.partition.fetch.bytes larger"
    return ClientError(what, topic=partition.one.topic, partition=partition.one.partition, advice=advice)


def _nothing() -> None:
    pass
