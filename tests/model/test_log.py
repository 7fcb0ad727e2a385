"""The log against a model that fits on a page: a list of batches, what producers sent, and two offsets.

Random appends, duplicates, reads, look-ups, deletions, retention, rolls, compactions, and restarts after a clean stop,
a kill and a power cut. After each step the log and the model must say the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.log.support import NOW, Home, read_all, read_batches

from lowwater.errors import ApiError, ErrorCode
from lowwater.log.compaction import execute
from lowwater.log.config import LogConfig
from lowwater.log.partition_log import PartitionLog
from lowwater.wire.records import BatchHeader, Record, build_batch, read_records

KEYS = (b"a", b"b", b"c", b"d")
RETENTION_MS = 50_000
STEP_MS = 1_000
COMPACTION_KEEPS = 10**9  # tombstones stay: their horizon is far away
CONFIG = LogConfig(
    segment_bytes=700,
    index_interval_bytes=128,
    retention_ms=-1,
    segment_ms=RETENTION_MS,
    timestamp_after_max_ms=RETENTION_MS,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=COMPACTION_KEEPS,
)


@dataclass(slots=True)
class Sent:
    """One batch as the model remembers it: what was sent, and what compaction has left of it."""

    original: tuple[Record, ...]
    records: list[Record]
    last_offset: int
    producer: tuple[int, int] | None = None  # producer id, first sequence
    durable: bool = False

    @property
    def base_offset(self) -> int:
        return self.original[0].offset


@dataclass(slots=True)
class Model:
    log_start: int = 0
    log_end: int = 0
    seen_end: int = 0
    batches: list[Sent] = field(default_factory=list)
    remembered: dict[int, list[Sent]] = field(default_factory=dict)
    next_sequence: dict[int, int] = field(default_factory=dict)

    def records(self) -> list[Record]:
        return [record for sent in self.batches for record in sent.records if record.offset >= self.log_start]

    def last_of_key(self) -> dict[bytes | None, int]:
        return {record.key: record.offset for sent in self.batches for record in sent.records}


class LogMachine(RuleBasedStateMachine):
    @initialize(compact=st.booleans())
    def begin(self, compact: bool) -> None:
        self.home = Home(config=replace(CONFIG, compact=compact, delete=True))
        self.model = Model()
        self.values = 0
        self.compacted = False

    @property
    def log(self) -> PartitionLog:
        return self.home.log()

    # -- writing

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4),
        size=st.integers(0, 90),
        delays=st.lists(st.integers(-3 * STEP_MS, STEP_MS), min_size=4, max_size=4),
        codec=st.integers(0, 4),
        producer_id=st.none() | st.integers(1, 2),
    )
    def append(self, keys: list[bytes], size: int, delays: list[int], codec: int, producer_id: int | None) -> None:
        records = [self._record(place, key, size, delays[place]) for place, key in enumerate(keys)]
        fields = {}
        sequence = self.model.next_sequence.get(producer_id or 0, 0)
        if producer_id is not None:
            fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        appended = self.log.append(memoryview(build_batch(records, codec=codec, **fields)), self.home.now_ms)
        assert not appended.duplicate
        assert appended.base_offset >= max(self.model.seen_end, self.model.log_end), "an offset was given out twice"
        placed = [record._replace(offset=appended.base_offset + place) for place, record in enumerate(records)]
        sent = Sent(tuple(placed), placed, appended.last_offset)
        self.model.batches.append(sent)
        self.model.log_end = self.model.seen_end = appended.last_offset + 1
        if producer_id is not None:
            sent.producer = (producer_id, sequence)
            self.model.next_sequence[producer_id] = sequence + len(keys)
            self.model.remembered.setdefault(producer_id, []).append(sent)
            del self.model.remembered[producer_id][:-5]

    def _record(self, place: int, key: bytes, size: int, delay: int) -> Record:
        self.values += 1
        return Record(place, self.home.now_ms + delay, key, b"%d-" % self.values + b"x" * size)

    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        candidates = [sent for batches in self.model.remembered.values() for sent in batches]
        if not candidates:
            return
        sent = data.draw(st.sampled_from(candidates))
        assert sent.producer is not None
        again = self.log.append(self._as_sent(sent), self.home.now_ms)
        assert (again.duplicate, again.base_offset, again.last_offset) == (True, sent.base_offset, sent.last_offset)

    @rule(producer_id=st.integers(1, 2), gap=st.integers(1, 5))
    def send_with_a_gap(self, producer_id: int, gap: int) -> None:
        if not self.model.remembered.get(producer_id):
            return
        sequence = self.model.next_sequence[producer_id] + gap
        batch = build_batch(
            [Record(0, NOW, b"a", b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )
        with pytest.raises(ApiError) as caught:
            self.log.append(memoryview(batch), self.home.now_ms)
        assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _as_sent(self, sent: Sent) -> memoryview:
        assert sent.producer is not None
        records = [record._replace(offset=place) for place, record in enumerate(sent.original)]
        producer_id, sequence = sent.producer
        return memoryview(build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence))

    @rule()
    def flush(self) -> None:
        self.log.flush()
        for sent in self.model.batches:
            sent.durable = True

    # -- deleting

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.model.log_start, self.model.log_end))
        assert self.log.delete_before(offset) == offset
        self._start_at(offset)

    @rule()
    def time_passes(self) -> None:
        self.home.now_ms += 10 * STEP_MS

    @rule()
    def expire(self) -> None:
        self.log.update_config(replace(self.home.config, retention_ms=RETENTION_MS))
        segments = list(self.log.segments)
        deleted = self.log.apply_retention(self.home.now_ms)
        self.log.update_config(self.home.config)
        expected = []
        for segment in segments:
            # What lies below the log start may be compacted away, unseen.
            first = max(segment.base_offset, self.model.log_start)
            inside = [one.timestamp for one in self._written_in(first, segment.next_offset)]
            assert segment.max_timestamp >= max(inside, default=-1)
            is_below = segment.next_offset <= self.model.log_start
            if not is_below and self.home.now_ms - segment.max_timestamp <= RETENTION_MS:
                break
            expected.append(segment.base_offset)
        assert deleted == expected
        if deleted:
            assert self.log.log_start >= self.model.log_start
            self._start_at(self.log.log_start)

    def _written_in(self, start: int, end: int) -> list[Record]:
        return [one for sent in self.model.batches for one in sent.records if start <= one.offset < end]

    def _start_at(self, offset: int) -> None:
        self.model.log_start = offset
        self.model.batches = [sent for sent in self.model.batches if sent.last_offset >= offset]

    @rule()
    def roll(self) -> None:
        self.home.now_ms += RETENTION_MS + 1
        self.log.roll_if_due(self.home.now_ms)

    @precondition(lambda self: self.home.config.compact)
    @rule()
    def compact(self) -> None:
        self.flush()
        plan = self.log.plan_compaction(self.home.now_ms)
        if plan is None:
            return
        before = {record.offset for record in read_all(self.log)}
        result = execute(plan)
        assert result.error is None
        self.log.finish_compaction(result)
        after = {record.offset for record in read_all(self.log)}
        assert after <= before
        last = self.model.last_of_key()
        assert {offset for offset in last.values() if offset >= self.model.log_start} <= after, "a last value is gone"
        newest = {one.key: one.offset for one in self._written_in(self.model.log_start, self.log.clean_until)}.values()
        assert all(offset in newest for offset in after if offset < self.log.clean_until), "an old value stays"
        self.compacted = True
        for sent in self.model.batches:
            sent.records = [one for one in sent.records if one.offset in after or one.offset < self.model.log_start]

    # -- stopping and starting

    @rule()
    def restart_cleanly(self) -> None:
        self.home.restart()
        for sent in self.model.batches:
            sent.durable = True

    @rule()
    def kill(self) -> None:
        self.home.kill()

    @rule()
    def checkpoint(self) -> None:
        self.home.store.checkpoint()

    @rule(lucky=st.booleans())
    def power_cut(self, lucky: bool) -> None:
        """Everything that was not synced is lost, or by luck nothing is."""
        self.home.power_cut(keep_unsynced=lucky)
        found = {BatchHeader.parse(batch).last_offset for batch in read_batches(self.log)}
        for sent in self.model.batches:
            readable = any(one.offset >= self.model.log_start for one in sent.records)
            assert sent.last_offset in found or not sent.durable or not readable, "a durable batch is lost"
        self.model.batches = [sent for sent in self.model.batches if sent.last_offset in found or sent.durable]
        self.model.log_end = self.log.log_end
        self._forget_lost_producers(found)

    def _forget_lost_producers(self, found: set[int]) -> None:
        """What a producer sent and lost it sends again, from the last batch that is left."""
        for producer_id, state in list(self.model.remembered.items()):
            known = dict(self.log.producers())
            producer = known.get(producer_id)
            offsets = {sent.last_offset for sent in producer.sent} if producer is not None else set()
            kept = [sent for sent in state if sent.last_offset in offsets]
            assert all(one in found or one < self.model.log_start for one in offsets), "a lost batch is remembered"
            assert all(s in kept for s in state if s.durable and s.last_offset in found), "a producer was forgotten"
            self.model.remembered[producer_id] = kept
            if producer is not None:
                self.model.next_sequence[producer_id] = producer.last_sequence + 1
            else:
                self.model.next_sequence.pop(producer_id, None)

    # -- comparing

    @invariant()
    def ends_agree(self) -> None:
        if not hasattr(self, "home"):
            return
        assert (self.log.log_start, self.log.log_end) == (self.model.log_start, self.model.log_end)

    @invariant()
    def records_agree(self) -> None:
        if hasattr(self, "home"):
            assert read_all(self.log) == self.model.records()

    @rule(data=st.data())
    def read_somewhere(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.model.log_start, self.model.log_end))
        upto = data.draw(st.integers(offset, self.model.log_end))
        part = self.log.read(offset, data.draw(st.integers(1, 1500)), upto=upto, min_one=True)
        part.warm()
        found = [record for buffer in part.buffers for record in _records_in(bytes(buffer))]
        wanted = [record for record in self.model.records() if offset <= record.offset < upto]
        whole = [sent.last_offset for sent in self.model.batches if sent.last_offset < upto]
        visible = [record for record in found if record.offset >= offset]
        assert visible == wanted[: len(visible)]
        expected_some = any(record.offset <= (whole[-1] if whole else -1) for record in wanted)
        assert visible or not expected_some or self.compacted

    @rule(data=st.data())
    def look_up_a_time(self, data: st.DataObject) -> None:
        records = self.model.records()
        times = [record.timestamp for record in records] or [NOW]
        timestamp = data.draw(st.sampled_from([min(times) - 1, *times, max(times) + 1]))
        upto = data.draw(st.integers(self.model.log_start, self.model.log_end))
        expected = next((one for one in records if one.timestamp >= timestamp and one.offset < upto), None)
        found = self.log.offset_for_time(timestamp, upto=upto)
        assert (found and found[:2]) == (expected and (expected.offset, expected.timestamp))

    @rule(data=st.data())
    def look_up_the_largest_time(self, data: st.DataObject) -> None:
        upto = data.draw(st.integers(self.model.log_start, self.model.log_end))
        counted = [record for record in self.model.records() if record.offset < upto]
        expected = max(counted, key=lambda record: (record.timestamp, -record.offset), default=None)
        found = self.log.offset_of_max_timestamp(upto=upto)
        assert (found and found[:2]) == (expected and (expected.offset, expected.timestamp))

    @rule(data=st.data(), beyond=st.integers(1, 10**6))
    def read_outside(self, data: st.DataObject, beyond: int) -> None:
        below = self.model.log_start - beyond
        above = max(self.model.log_end, self.log.next_offset) + beyond
        with pytest.raises(ApiError) as caught:
            self.log.read(data.draw(st.sampled_from([below, above])), 100, upto=self.model.log_end, min_one=True)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def _records_in(data: bytes) -> list[Record]:
    found = []
    while data:
        size = BatchHeader.parse(data).size
        found += list(read_records(data[:size]))
        data = data[size:]
    return found


# By hand: LOWWATER_MODEL_EXAMPLES=2000 pytest tests/model looks where the suite's own, fixed examples do not.
EXAMPLES = os.environ.get("LOWWATER_MODEL_EXAMPLES")
LogMachine.TestCase.settings = settings(
    max_examples=int(EXAMPLES or 200),
    derandomize=EXAMPLES is None,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLog = LogMachine.TestCase
