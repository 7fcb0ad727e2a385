"""Finds out how the rows of a batch lie in time, with few questions: enough to cut it into even slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lowwater.client.cluster import Cluster
from lowwater.client.offsets import Found, list_offsets_many
from lowwater.client.sampling import sample
from lowwater.spark.offsets import TIME_MAX, Bound, Range
from lowwater.spark.ordering.bounds import SHARE_MAX, Curve, cut, fewer, unevenness, worth_asking
from lowwater.spark.ordering.extents import end_ms, guessed, start_ms
from lowwater.spark.splitting import Slice
from lowwater.types import TopicPartition

ROUNDS_MAX = 4
SAMPLES_MAX = 64
"""Rows of so many partitions are looked at."""
TIMES_MAX = 24
"""So many requests for offsets by time may go to each broker for one batch; mostly one for each bound is enough."""
_TAIL = 64  # the last row looked at has a sixty-fourth behind it: markers may stand at the very end


class Survey:
    """Of the ranges of one batch. Rows stamped before `floor_ms` or after `cap_ms` count as stamped then."""

    def __init__(
        self,
        cluster: Cluster,
        ranges: Mapping[TopicPartition, Range],
        isolation: str,
        out_of_order_ms: int,
        *,
        floor_ms: int | None = None,
        cap_ms: int | None = None,
    ) -> None:
        self._cluster = cluster
        self._isolation = isolation
        self._out_of_order_ms = out_of_order_ms
        self._floor_ms = max(floor_ms or 0, 0)
        self._cap_ms = cap_ms
        self._curves = {one: Curve(each) for one, each in ranges.items()}
        self._looked_at: Sequence[TopicPartition] = ()
        self._answers: dict[int, dict[TopicPartition, int]] = {}
        self._asked = 0

    async def bounds(self, count: int, *, is_wanted: bool) -> tuple[Bound, ...]:
        """Between at most `count` slices. Fewer when much would be read more than once, unless they are wanted."""
        await self._look_at_ends()
        bounds = cut(self._curves, count)
        for number in range(ROUNDS_MAX):
            times = self._times(bounds, is_first=not number)
            if not times:
                break
            await self._ask(times)
            if unevenness(self._curves, bounds, count) <= SHARE_MAX:
                break
            bounds = cut(self._curves, count)
        return bounds if is_wanted else fewer(self._curves, bounds, self._out_of_order_ms)

    def extents(self, part: Slice) -> tuple[tuple[int, int], ...] | None:
        """By range, where a slice between two of these bounds begins, and about where it ends; None: not known."""
        starting, ending = start_ms(part), end_ms(part)
        firsts = {} if starting is None else self._answers.get(starting)
        if firsts is None:
            return None
        return tuple(
            guessed(curve.range, firsts.get(one), None if ending is None else curve.offset_at(ending))
            for one, curve in sorted(self._curves.items())
        )

    async def _look_at_ends(self) -> None:
        """One Fetch of each leader for the first rows, one for rows near the end; of some, where there are many."""
        names = sorted(self._curves)
        self._looked_at = names[:: -(-len(names) // SAMPLES_MAX)]
        found = {one: self._curves[one].range for one in self._looked_at}
        lasts = {one: max(each.end - 1 - each.size // _TAIL, each.start) for one, each in found.items()}
        for offsets in ({one: each.start for one, each in found.items()}, lasts):
            await self._look_at(offsets)
        self._guess(names)
        if self._cap_ms is None:
            await self._look_for_jumps()

    async def _look_at(self, offsets: Mapping[TopicPartition, int]) -> None:
        for one, each in (await sample(self._cluster, offsets, isolation=self._isolation)).items():
            curve = self._curves[one]
            if each is not None and each.offset < curve.range.end:
                curve.bytes_per_offset = each.bytes_per_offset
                curve.learn(self._capped(each.timestamp_ms), each.offset)

    def _guess(self, names: Sequence[TopicPartition]) -> None:
        """Those that were not looked at are taken to be like the one before them."""
        like = self._curves[names[0]]
        for one in names:
            curve = self._curves[one]
            if one in self._looked_at:
                like = curve
            elif like.points:
                curve.bytes_per_offset = like.bytes_per_offset
                curve.learn(like.points[0][0], curve.range.start)
                curve.learn(like.points[-1][0], curve.range.end)

    def _capped(self, at_ms: int) -> int:
        return max(at_ms if self._cap_ms is None else min(at_ms, self._cap_ms), self._floor_ms)

    async def _look_for_jumps(self) -> None:
        """A row far ahead of its time takes all rows behind it in its partition along."""
        curves = {one: self._curves[one] for one in self._looked_at if self._curves[one].points}
        asked = {one: min(curve.points[-1][0] + self._out_of_order_ms + 1, TIME_MAX) for one, curve in curves.items()}
        self._asked += 1
        [answers] = await list_offsets_many(self._cluster, [asked], isolation=self._isolation)
        for one, found in answers.items():
            if self._curves[one].range.start <= found.offset < self._curves[one].points[-1][1]:
                self._curves[one].jump(found.timestamp_ms - self._out_of_order_ms, found.offset)

    def _times(self, bounds: tuple[Bound, ...], *, is_first: bool) -> list[int]:
        times = [time for time in worth_asking(self._curves, bounds, is_first=is_first) if time not in self._answers]
        return times[: max(TIMES_MAX - self._asked, 0)]

    async def _ask(self, times: Iterable[int]) -> None:
        times = list(times)
        self._asked += len(times)
        questions = [dict.fromkeys(self._curves, time) for time in times]
        answers = await list_offsets_many(self._cluster, questions, isolation=self._isolation)
        for time, answer in zip(times, answers, strict=True):
            self._answers[time] = {one: found.offset for one, found in answer.items()}
            for one, found in answer.items():
                self._learn(self._curves[one], time, found)

    def _learn(self, curve: Curve, time: int, found: Found) -> None:
        if found.offset < 0:
            curve.learn(time, curve.range.end)
        elif found.offset >= curve.range.start:  # otherwise a row before the batch stands in the way
            offset = min(found.offset, curve.range.end)
            curve.learn(time, offset)
            if offset < curve.range.end:
                curve.learn(self._capped(found.timestamp_ms), offset)
