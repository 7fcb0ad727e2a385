"""The first data row of partitions at or behind an offset, without reading them.

Markers of transactions, what was aborted, and what compaction took are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lowwater.client.batches import Answer
from lowwater.client.chunks import room_for
from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.errors import BrokerError, ClientError, broker_error
from lowwater.client.fetching_once import ANSWER_BYTES_MAX, ask_once
from lowwater.client.session import Leased
from lowwater.client.slices import FetchedSlice
from lowwater.client.topic_ids import check_ids
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.types import TopicPartition
from lowwater.wire.compression import OUTPUT_LIMIT
from lowwater.wire.messages.fetch import PartitionData

_FIRST_PIECE_BYTES, _GROWTH = 32 * 1024, 8


class Peeked(NamedTuple):
    offset: int
    timestamp_ms: int


async def peek(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    *,
    isolation: str | None = None,
    topic_ids: Mapping[str, bytes] | None = None,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, Peeked | None]:
    """By partition, the first row from that offset on; None where there is none up to the end, or to the LSO.

    Mostly one Fetch per leader, of some 32 KiB per partition. OffsetOutOfRangeError, TopicRecreatedError (when the id
    is not the one in `topic_ids`) and CorruptRecordsError say what is wrong with the first partition that has it.
    """
    peeking = Peeking(cluster, offsets, isolation or cluster.network.config.str("isolation.level"), topic_ids or {})
    await cluster.retry.run(peeking.attempt, timeout_ms)
    return peeking.found


class Peeking:
    """What was found stays found, and what was passed over stays behind, when the rest has to be asked again."""

    def __init__(
        self, cluster: Cluster, offsets: Mapping[TopicPartition, int], isolation: str, topic_ids: Mapping[str, bytes]
    ) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._is_committed_only = isolation == "read_committed"
        self._isolation = isolation
        self._topic_ids = topic_ids
        self._left = dict(offsets)
        self._names: dict[bytes, str] = {}
        self._piece_bytes = _FIRST_PIECE_BYTES
        self.found: dict[TopicPartition, Peeked | None] = {}

    async def attempt(self, left_ms: float) -> None:
        """Raises the first error of a partition that is for good, or else the first one."""
        until_ms = self._network.driver.monotonic_ms() + left_ms
        while self._left:
            left_ms = max(until_ms - self._network.driver.monotonic_ms(), 1)
            leaders = await self._cluster.leaders(self._left, left_ms)
            self._check(leaders.values())
            before = dict(self._left)
            answers = {node: self._ask(node, partitions, left_ms) for node, partitions in leaders.items()}
            errors: list[ClientError] = []
            try:
                for node, answer in answers.items():
                    errors += await self._answered(leaders[node], answer)
            finally:
                for answer in answers.values():
                    answer.abandon()
            if errors:
                raise next((error for error in errors if not error.retriable), errors[0])
            self._ask_for_more(before)

    def _ask_for_more(self, before: Mapping[TopicPartition, int]) -> None:
        """Of each next time. Whoever brought nothing also then never will."""
        if self._piece_bytes == ANSWER_BYTES_MAX and before == self._left:
            one = next(iter(before))
            what = "the broker answers without the next batch"
            raise ClientError(what, topic=one.topic, partition=one.partition, offset=before[one])
        self._piece_bytes = min(_GROWTH * self._piece_bytes, ANSWER_BYTES_MAX)

    def _check(self, asked: Iterable[Iterable[TopicPartition]]) -> None:
        known = {one.topic: self._cluster.known(one.topic) for partitions in asked for one in partitions}
        check_ids(self._topic_ids, {name: topic for name, topic in known.items() if topic is not None})

    def _ask(self, node: int, partitions: list[TopicPartition], left_ms: float) -> Pending[Any]:
        offsets = {one: self._left[one] for one in partitions}
        return ask_once(self._cluster, node, offsets, left_ms, self._piece_bytes, self._isolation, self._names)

    # ---- answers

    async def _answered(self, partitions: list[TopicPartition], answer: Pending[Any]) -> list[ClientError]:
        try:
            leased: Leased = await answer
        except ClientError as error:
            self._cluster.outdate({one.topic for one in partitions})
            return [error]
        try:
            return self._read(leased.response)
        finally:
            leased.release()

    def _read(self, response: Any) -> list[ClientError]:
        if response.error_code:
            return [broker_error(response.error_code, "nothing can be fetched")]
        if response.throttle_time_ms > 0 and not response.responses:
            # The quota is used up: that says nothing of what there is.
            return [broker_error(ErrorCode.THROTTLING_QUOTA_EXCEEDED)]
        errors: list[ClientError] = []
        slices: list[FetchedSlice] = []
        empty: list[TopicPartition] = []
        for topic in response.responses:
            name = topic.topic or self._names.get(topic.topic_id, "")
            for data in topic.partitions:
                one = TopicPartition(name, data.partition_index)
                if one not in self._left:
                    continue
                if data.error_code:
                    errors.append(self._refused(one, data.error_code))
                elif data.records:
                    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
                    slices.append(FetchedSlice(one, self._left[one], data.records, aborted=aborted))
                elif self._is_at_end(one, data):
                    self._settle(one, None)
                else:
                    empty.append(one)
        if slices:
            errors += self._look_into(slices)
        elif not errors:
            for one in empty:  # there was room, so there is only a gap up to its end
                self._settle(one, None)
        return errors

    def _is_at_end(self, one: TopicPartition, data: PartitionData) -> bool:
        end = data.last_stable_offset if self._is_committed_only else data.high_watermark
        return 0 <= end <= self._left[one]

    def _refused(self, one: TopicPartition, code: int) -> BrokerError:
        error = broker_error(code, topic=one.topic, partition=one.partition, offset=self._left[one])
        if code in OUTDATED:
            self._cluster.outdate([one.topic])
            error.retriable = True
        return error

    def _look_into(self, slices: list[FetchedSlice]) -> list[ClientError]:
        answer = Answer(slices, range(len(slices)), output_bytes_max=OUTPUT_LIMIT, budget_bytes=ANSWER_BYTES_MAX)
        for place, row in _first_rows(answer).items():
            self._settle(slices[place].partition, Peeked(int(row["offset"]), int(row["timestamp"])))
        for place, position in enumerate(answer.positions()):
            one = slices[place].partition
            if one in self._left:
                self._left[one] = position
        # What is wrong behind the first row is not looked for.
        return [error for place, error in answer.errors.items() if slices[place].partition in self._left]

    def _settle(self, one: TopicPartition, found: Peeked | None) -> None:
        self.found[one] = found
        del self._left[one]


def _first_rows(answer: Answer) -> dict[int, Any]:
    """By slice."""
    rows, count = answer.scan(room_for)
    rows = rows[:count]
    places, firsts = np.unique(rows["tag"], return_index=True)
    return {int(place): rows[first] for place, first in zip(places, firsts, strict=True)}
