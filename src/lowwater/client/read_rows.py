"""Records of partitions as Python values, from offsets to offsets: for small topics, and tails of large ones."""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.client.admin.asking import Appearing
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.fetching_once import ANSWER_BYTES_MAX, fetch_once
from lowwater.client.rows import Row, behind, rows_of
from lowwater.client.slices import FetchedSlice
from lowwater.types import TopicPartition

PIECE_BYTES = 1024 * 1024
_GROWTH = 4


async def read_rows(
    cluster: Cluster,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    isolation: str = "read_committed",
    rows_max: int | None = None,
) -> Outcomes[TopicPartition, list[Row]]:
    """By partition its rows in [start, end), at most `rows_max` of each. An end that is not reached yet is not waited
    for. All rows are held: this is for few."""
    reading = _Reading(cluster, ranges, isolation, rows_max)
    return await settle(cluster, ranges, reading.attempt)


class _Reading:
    """What was read stays read when the rest has to be asked again."""

    def __init__(
        self,
        cluster: Cluster,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        isolation: str,
        rows_max: int | None,
    ) -> None:
        self._cluster = cluster
        self._isolation = isolation
        self._rows_max = rows_max
        self._appearing = Appearing(cluster)
        self._position = {one: start for one, (start, _) in ranges.items()}
        self._end = {one: end for one, (_, end) in ranges.items()}
        self._rows: dict[TopicPartition, list[Row]] = {one: [] for one in ranges}

    async def attempt(
        self, left: list[TopicPartition], left_ms: float
    ) -> dict[TopicPartition, list[Row] | ClientError]:
        driver = self._cluster.network.driver
        until_ms = driver.monotonic_ms() + left_ms
        results: dict[TopicPartition, list[Row] | ClientError] = {}
        piece_bytes = PIECE_BYTES
        while waiting := [one for one in left if one not in results and not self._is_done(one)]:
            at = {one: self._position[one] for one in waiting}
            left_ms = max(until_ms - driver.monotonic_ms(), 1)
            found = await fetch_once(self._cluster, at, left_ms, piece_bytes=piece_bytes, isolation=self._isolation)
            had_room = not any(isinstance(each, FetchedSlice) and each.records for each in found.values())
            for one, each in found.items():
                error = self._took(each, had_room)
                if error is not None:
                    results[one] = error
            if all(self._position[one] == at[one] for one in waiting if one not in results):
                if piece_bytes == ANSWER_BYTES_MAX:
                    results |= {one: _stuck(one, at[one]) for one in waiting if one not in results}
                piece_bytes = min(_GROWTH * piece_bytes, ANSWER_BYTES_MAX)
        return self._appearing.judge(results | {one: self._rows[one] for one in left if one not in results})

    def _is_done(self, one: TopicPartition) -> bool:
        is_full = self._rows_max is not None and len(self._rows[one]) >= self._rows_max
        return is_full or self._position[one] >= self._end[one]

    def _took(self, each: FetchedSlice | ClientError, had_room: bool) -> ClientError | None:
        if isinstance(each, ClientError):
            return each
        one = each.partition
        if not each.records:
            stable = each.last_stable if self._isolation == "read_committed" else each.high_watermark
            if had_room or 0 <= stable <= each.fetch_offset:
                self._position[one] = max(self._end[one], each.fetch_offset)
            return None
        try:
            for row in rows_of(each):
                if row.offset >= self._end[one] or self._is_done(one):
                    break
                self._rows[one].append(row)
            self._position[one] = behind(each)
        except ClientError as error:
            return error
        return None


def _stuck(one: TopicPartition, offset: int) -> ClientError:
    what = "the broker answers without the next batch"
    return ClientError(what, topic=one.topic, partition=one.partition, offset=offset)
