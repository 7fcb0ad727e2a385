"""Rows between their arrival and their release: held as places in what was fetched, released as Arrow batches.

`Held` does what `merge` decides and tells it what it needs to know. There is no Python object per row anywhere: an
answer becomes one chunk, which is sorted once; a release merges the heads of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from lowwater.client.arrow import BYTES_MAX, ROWS_MAX, chosen_rows, record_batch, schema_of
from lowwater.client.batches import Answer
from lowwater.client.chunks import HELD_ROW_BYTES, Chunk, room_for
from lowwater.client.dropping import Dropped, due_last, first_offsets
from lowwater.client.slabs import Slabs
from lowwater.client.slices import Arrival, FetchedSlice, Left
from lowwater.client.tags import Tags
from lowwater.client.unpacking import Ratio
from lowwater.merge.mark import BEGINNING_MS, END_MS, Mark
from lowwater.types import TopicPartition
from lowwater.wire.compression import OUTPUT_LIMIT
from lowwater.wire.kernels import ordering, scanning
from lowwater.wire.kernels.rows import ROW, ROW_BYTES

Order: TypeAlias = Literal["timestamp", "partition"] | None
DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024
_HALF, _AN_EIGHTH = 2, 8
_KEPT_BYTES_MIN = 8 * 1024 * 1024
_ORDERS: dict[Order, int] = {
    "timestamp": ordering.BY_TIMESTAMP,
    "partition": ordering.BY_PARTITION,
    None: ordering.BY_ARRIVAL,
}


class Released(NamedTuple):
    """One batch, or None when nothing may go; who is rid of what; how many rows came later than they should.

    `is_cut_off`: more may go at once.
    """

    batch: Any
    left: list[Left]
    late_rows: int
    is_cut_off: bool = False


class Held:
    """The rows of all partitions of one reader."""

    def __init__(
        self,
        *,
        order: Order = "timestamp",
        created_ms: int = END_MS,
        output_bytes_max: int = OUTPUT_LIMIT,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
        slack_bytes: int = 0,
        columns: Sequence[str] | None = None,
    ) -> None:
        """`created_ms`: what was there by then and is stamped later claims to be of the future.

        One batch may give `output_bytes_max`; an answer that has given `decompressed_bytes_max` is not read further,
        the rest of it is to be fetched again. Up to `slack_bytes` are held for rows that went before: memory of which
        little is needed is then not worth a copy.
        """
        self._order = order
        self._created_ms = created_ms
        self._output_bytes_max = output_bytes_max
        self._decompressed_bytes_max = decompressed_bytes_max
        self._slack_bytes = slack_bytes
        self._schema = schema_of(columns)
        self._tags = Tags()
        self._positions: dict[TopicPartition, int] = {}
        self._chunks: list[Chunk] = []
        self._gone_behind: dict[int, int] = {}  # by tag, of chunks that are not there any more
        self._scratch = room_for(0)
        self._last = self._scratch  # the rows of the last batch
        self._slabs = Slabs(kept_bytes_max=max(slack_bytes, _KEPT_BYTES_MIN))
        self._ratio = Ratio()
        self._answers = 0
        self._newest_key = BEGINNING_MS
        self._has_stops = False
        self.late_rows = 0

    # -- partitions

    def add(self, one: TopicPartition, start: int, end: int, *, stop: int = END_MS, stop_ms: int = END_MS) -> None:
        """Rows of it may come from `start` on; `end` is where it ended at the beginning.

        Rows from the offset `stop` on, and rows stamped `stop_ms` or later, are left out.
        """
        assert one not in self._positions, f"{one} is there already"
        self._tags.add(one, end, stop, stop_ms)
        self._has_stops = self._has_stops or stop != END_MS or stop_ms != END_MS
        self._positions[one] = start
        self._gone_behind.pop(self._tags[one], None)

    def stop_at(self, one: TopicPartition, stop: int) -> None:
        """From now on it is read up to this offset."""
        self._tags.stops[self._tags[one]] = stop
        self._has_stops = True

    def move(self, one: TopicPartition, position: int) -> None:
        """It is read on from there, because what was in between is gone."""
        self._positions[one] = position

    def remove(self, one: TopicPartition) -> list[Left]:
        """Its rows are dropped. What others are rid of by that is returned."""
        del self._positions[one]
        for chunk in self._chunks:
            self._went(chunk.gone_behind(len(self._tags)))
        self._chunks = [chunk.without(self._tags[one]) for chunk in self._chunks]
        return self._leave(np.zeros(len(self._tags), np.int64), self._clean_up(_HALF))

    def _went(self, behind: dict[int, int]) -> None:
        for tag, offset in behind.items():
            self._gone_behind[tag] = max(self._gone_behind.get(tag, 0), offset)

    def committable(self) -> dict[TopicPartition, int]:
        """By partition, the offset up to which all rows were released: the first that is not, or else the position."""
        lowest = self._tags.left_out[: len(self._tags)].copy()
        ordering.lowest_offsets(self._runs(), lowest)
        return {one: min(at, int(lowest[self._tags[one]])) for one, at in self._positions.items()}

    # -- putting back

    def put_back(
        self, partitions: Iterable[TopicPartition], keep_bytes: int
    ) -> tuple[list[tuple[TopicPartition, Dropped]], list[Left]]:
        """Drop rows of these that are due last, as if they had not come, until about so many bytes are left.

        Returns what was dropped, and who is rid of what.
        """
        for chunk in self._chunks:
            self._went(chunk.gone_behind(len(self._tags)))
        dropped = due_last(
            self._chunks,
            [self._tags[one] for one in partitions],
            self._gone_behind,
            keep_bytes=keep_bytes,
            ranks=self._tags.ranks,
            created_ms=self._created_ms,
            ends=self._tags.ends,
        )
        found = [(self._tags.partitions[each.tag], each) for each in dropped]
        left_rows = np.zeros(len(self._tags), np.int64)
        for one, each in found:
            left_rows[each.tag] = each.rows
            self._positions[one] = each.offset
            self._tags.clocks[each.tag] = min(self._tags.clocks[each.tag], each.key_ms)
        return found, self._leave(left_rows, self._cut(first_offsets(dropped, len(self._tags))))

    def _cut(self, offsets: Any) -> dict[int, int]:
        """Rows from these offsets on, by tag, go; by tag, how many bytes that was."""
        freed: dict[int, int] = {}
        chunks = []
        for chunk in self._chunks:
            cut = chunk.cut(offsets, len(self._tags))
            if cut.rows:
                chunks.append(cut)
            for tag, size in chunk.charged.items():
                freed[tag] = freed.get(tag, 0) + size - cut.charged.get(tag, 0)
        self._chunks = chunks
        return {tag: size for tag, size in freed.items() if size}

    # -- arriving

    def take(self, slices: Sequence[FetchedSlice], let_go: Callable[[], None] | None = None) -> list[Arrival]:
        """Hold the rows of one answer. `let_go` is called as soon as none of them lies in its memory any more."""
        known = [one for one in slices if one.partition in self._positions]
        known.sort(key=lambda one: one.partition)
        tags = [self._tags[one.partition] for one in known]
        answer = Answer(
            known,
            tags,
            output_bytes_max=self._output_bytes_max,
            budget_bytes=self._decompressed_bytes_max,
            slabs=self._slabs,
            ratio=self._ratio,
        )
        rows = self._scan(answer)
        rows_of, future_of = np.zeros((2, len(self._tags)), np.int64)
        keys = np.empty(len(rows), np.int64)
        size, falls = self._stamp(rows, rows_of, future_of, keys)
        # Stable: rows of the same key stay as they are, which is by topic, partition and offset.
        order = np.argsort(keys, kind="stable") if falls else np.arange(len(rows))
        positions = answer.positions()
        behind = dict(zip(tags, positions, strict=True))
        charged = self._hold(answer, rows, order, size, rows_of, let_go, behind)
        arrivals = []
        for place, (one, tag, reached) in enumerate(zip(known, tags, positions, strict=True)):
            position = self._positions[one.partition] = min(reached, int(self._tags.stops[tag]))
            newest_ms = self._tags.clock_ms(tag)
            count, future_rows = int(rows_of[tag]), int(future_of[tag])
            size, error = charged.get(tag, 0), answer.errors.get(place)
            arrivals.append(Arrival(one.partition, position, newest_ms, count, size, future_rows, error))
        return arrivals

    def _scan(self, answer: Answer) -> Any:
        rows, count = answer.scan(lambda records: self._slabs.array(records * ROW_BYTES).view(ROW))
        if self._has_stops:
            tags = self._tags
            count = scanning.leave_out(rows[:count], tags.stops, tags.stop_times, tags.left_out)
        found = rows[:count]
        return found.copy() if 2 * count < len(rows) else found

    def _stamp(self, rows: Any, rows_of: Any, future_of: Any, keys: Any) -> tuple[int, int]:
        tags = self._tags
        self._answers += 1
        stamped: tuple[int, int] = ordering.stamp(
            _ORDERS[self._order],
            self._created_ms,
            self._answers,
            rows,
            tags.clocks,
            tags.ends,
            rows_of,
            future_of,
            keys,
        )
        return stamped

    def _hold(
        self,
        answer: Answer,
        rows: Any,
        order: Any,
        size: int,
        rows_of: Any,
        let_go: Callable[[], None] | None,
        behind: dict[int, int],
    ) -> dict[int, int]:
        """Keep the rows; by tag, the bytes that are held now."""
        if not len(rows):
            if let_go is not None:
                let_go()
            return {}
        memory, charged, is_answer_needed = answer.memory()
        if let_go is not None and not is_answer_needed:
            let_go()
            let_go = None
        for tag in np.flatnonzero(rows_of).tolist():
            charged[tag] = charged.get(tag, 0) + HELD_ROW_BYTES * int(rows_of[tag])
        self._chunks.append(Chunk(rows, order, size, memory, charged, let_go, behind))
        return charged

    # -- leaving

    def release(self, mark: Mark, limit: int = ROWS_MAX, *, bytes_max: int = BYTES_MAX) -> Released:
        """The next rows in order that the mark covers, at most `limit` of them, and no more than one batch can hold."""
        room = min(limit, ROWS_MAX, sum(chunk.rows for chunk in self._chunks))
        rows = self._scratch_of(room)
        left_rows = np.zeros(len(self._tags), np.int64)
        runs = self._runs()
        taken, size, late, self._newest_key = ordering.merge(
            runs,
            self._tags.ranks,
            mark.timestamp_ms,
            self._tags.rank_of(mark.topic, mark.partition),
            bytes_max,
            self._newest_key,
            left_rows,
            rows,
        )
        for chunk, run in zip(self._chunks, runs, strict=True):
            chunk.run = run
        if not taken:
            return Released(None, [], 0)
        tags, self._last = self._tags, rows[:taken]
        batch = record_batch(rows[:taken], tags.topics, tags.topic_of, tags.partition_of, self._schema, self._slabs)
        self.late_rows += late
        # Rows that could go but did not will soon: only what has to wait is worth a copy.
        is_cut_off = taken == min(limit, ROWS_MAX) or 2 * size > bytes_max
        freed = self._clean_up(_AN_EIGHTH if is_cut_off else _HALF)
        return Released(batch, self._leave(left_rows, freed), late, is_cut_off)

    def last_without(self, batch: Any, partitions: Iterable[TopicPartition]) -> Any:
        """The batch that was released last, without the rows of these; None when there are no others."""
        stays = ~np.isin(self._last["tag"], [self._tags[one] for one in partitions])
        return chosen_rows(batch, stays) if stays.any() else None

    def _scratch_of(self, room: int) -> Any:
        if len(self._scratch) < room:
            self._scratch = room_for(room)
        return self._scratch[:room]

    def _runs(self) -> Any:
        return np.array([chunk.run for chunk in self._chunks], np.int64).reshape(-1, ordering.RUN_COLUMNS)

    def _clean_up(self, share: int) -> dict[int, int]:
        """Let go of memory of which less than this share is needed; by tag, how many bytes that was."""
        freed: dict[int, int] = {}
        chunks = []
        is_tight = sum(chunk.memory_bytes for chunk in self._chunks) > self._slack_bytes
        for chunk in self._chunks:
            before = chunk.charged
            if not chunk.rows:
                self._went(chunk.behind)
                chunk.free()
                after: dict[int, int] = {}
            elif is_tight and chunk.is_worth_a_copy(share):
                self._went(chunk.gone_behind(len(self._tags)))
                chunk = chunk.repacked(len(self._tags))
                after = chunk.charged
            else:
                after = before
            if chunk.rows:
                chunks.append(chunk)
            if after is not before:
                for tag, size in before.items():
                    freed[tag] = freed.get(tag, 0) + size - after.get(tag, 0)
        self._chunks = chunks
        return freed

    def _leave(self, left_rows: Any, freed: dict[int, int]) -> list[Left]:
        """Plainly, and without a name for each number: with many partitions all of them are told with every batch."""
        tags = np.flatnonzero(left_rows).tolist()
        if not freed.keys() <= set(tags):
            tags = sorted({*tags, *freed})
        partition, freed_of, there = self._tags.partitions, freed.get, self._positions
        left = zip(tags, left_rows[tags].tolist(), strict=True)
        return [(partition[tag], rows, freed_of(tag, 0)) for tag, rows in left if partition[tag] in there]
