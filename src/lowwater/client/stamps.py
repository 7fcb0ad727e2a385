"""When the next records were written: the timestamp of the first record at or behind offsets, asked of the log itself.

The plain counterpart of `peeking`, for programs that do without Arrow: many offsets of a partition at once, an outcome
for each, and whether a record is one of a transaction that is still open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from lowwater.client.admin.asking import Appearing
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError, OffsetOutOfRangeError
from lowwater.client.fetching_once import ANSWER_BYTES_MAX, fetch_once
from lowwater.client.rows import behind, times_of
from lowwater.client.slices import FetchedSlice
from lowwater.types import TopicPartition

_FIRST_PIECE_BYTES, _GROWTH = 32 * 1024, 8
_COMMITTED, _UNCOMMITTED = "read_committed", "read_uncommitted"


class Place(NamedTuple):
    """An offset of a partition."""

    partition: TopicPartition
    offset: int


class Stamp(NamedTuple):
    """`timestamp_ms` is -1 where a record has none. `is_open`: its transaction is neither committed nor aborted."""

    offset: int
    timestamp_ms: int
    is_open: bool = False


Stamps: TypeAlias = Outcomes[Place, Stamp | None]


async def stamps(cluster: Cluster, places: Collection[Place]) -> Stamps:
    """By place the next record from there on; None where none is left up to the end of the log.

    Markers of transactions, what was aborted, and what compaction took are passed over. Mostly one Fetch per leader;
    offsets of one partition that lie close together share it.
    """
    settled = _Looking(cluster, _COMMITTED)
    found = await settle(cluster, places, settled.attempt)
    if not settled.held_up:
        return found
    waiting = _Looking(cluster, _UNCOMMITTED)
    further = await settle(cluster, [Place(one.partition, at) for one, at in settled.held_up.items()], waiting.attempt)
    done, failed = dict(found), dict(found.failed)
    for one, at in settled.held_up.items():
        place = Place(one.partition, at)
        if place in further.failed:
            failed[one] = further.failed[place]
            del done[one]
        elif (stamp := further[place]) is not None:
            done[one] = stamp._replace(is_open=True)
    return Outcomes(done, failed)


class _Looking:
    """What was found stays found, and what was passed over stays behind, when the rest has to be asked again."""

    def __init__(self, cluster: Cluster, isolation: str) -> None:
        self._cluster = cluster
        self._isolation = isolation
        self._appearing = Appearing(cluster)
        self._reached: dict[Place, int] = {}
        self.held_up: dict[Place, int] = {}
        """Places at the last stable offset, which is given, while the log goes on behind it."""

    async def attempt(self, left: list[Place], left_ms: float) -> dict[Place, Stamp | ClientError | None]:
        driver = self._cluster.network.driver
        until_ms = driver.monotonic_ms() + left_ms
        results: dict[Place, Stamp | ClientError | None] = {}
        piece_bytes = _FIRST_PIECE_BYTES
        while waiting := self._waiting(left, results):
            before = {one: self._at(places[0]) for one, places in waiting.items()}
            left_ms = max(until_ms - driver.monotonic_ms(), 1)
            found = await fetch_once(self._cluster, before, left_ms, piece_bytes=piece_bytes, isolation=self._isolation)
            had_room = not any(isinstance(each, FetchedSlice) and each.records for each in found.values())
            took = partial(self._took, waiting, found, had_room)
            fresh = await driver.elsewhere(took)
            is_stuck = not fresh and all(self._at(places[0]) == before[one] for one, places in waiting.items())
            if is_stuck and piece_bytes == ANSWER_BYTES_MAX:
                fresh = {place: _stuck(place) for places in waiting.values() for place in places}
            results |= fresh
            piece_bytes = min(_GROWTH * piece_bytes, ANSWER_BYTES_MAX)
        return self._appearing.judge(results)

    def _at(self, place: Place) -> int:
        return self._reached.get(place, place.offset)

    def _waiting(self, left: list[Place], results: Mapping[Place, object]) -> dict[TopicPartition, list[Place]]:
        """By partition, the next first."""
        waiting: dict[TopicPartition, list[Place]] = {}
        for place in sorted((place for place in left if place not in results), key=self._at):
            waiting.setdefault(place.partition, []).append(place)
        return waiting

    def _took(
        self,
        waiting: Mapping[TopicPartition, list[Place]],
        found: Mapping[TopicPartition, FetchedSlice | ClientError],
        had_room: bool,
    ) -> dict[Place, Stamp | ClientError | None]:
        results: dict[Place, Stamp | ClientError | None] = {}
        for one, each in found.items():
            if isinstance(each, OffsetOutOfRangeError):
                results[waiting[one][0]] = each
            elif isinstance(each, ClientError):
                results |= dict.fromkeys(waiting[one], each)
            elif each.records:
                results |= self._look_into(each, waiting[one])
            elif had_room or self._is_at_end(each):
                results |= self._end_of(each, waiting[one])
        return results

    def _look_into(self, each: FetchedSlice, places: list[Place]) -> dict[Place, Stamp | ClientError | None]:
        results: dict[Place, Stamp | ClientError | None] = {}
        left = deque(places)
        try:
            for offset, timestamp_ms in times_of(each):
                while left and self._at(left[0]) <= offset:
                    results[left.popleft()] = Stamp(offset, timestamp_ms)
                if not left:
                    return results
            position = behind(each)
        except ClientError as error:
            return results | dict.fromkeys(left, error)
        self._reached |= {place: max(self._at(place), position) for place in left}
        return results

    def _is_at_end(self, each: FetchedSlice) -> bool:
        return 0 <= self._end(each) <= each.fetch_offset

    def _end(self, each: FetchedSlice) -> int:
        return each.last_stable if self._isolation == _COMMITTED else each.high_watermark

    def _end_of(self, each: FetchedSlice, places: list[Place]) -> dict[Place, Stamp | ClientError | None]:
        """None of these has anything left. Behind the last stable offset there may be what is not decided yet."""
        end = self._end(each)
        if 0 <= end < each.high_watermark:
            self.held_up |= {place: max(self._at(place), end) for place in places}
        return dict.fromkeys(places)


def _stuck(place: Place) -> ClientError:
    what = "the broker answers without the next batch"
    return ClientError(what, topic=place.partition.topic, partition=place.partition.partition, offset=place.offset)
