"""The log against a model that fits on a page: a list of batches, what producers sent, and two offsets.

Random appends, duplicates, transactions, reads, look-ups, deletions, retention, rolls, compactions, and restarts after
a clean stop, a kill and a power cut. After each step the log and the model must say the same.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.log.support import NOW, Home, read_all, read_batches
from tests.unit.log.transactional import committed

from lowwater.errors import ApiError, ErrorCode
from lowwater.log.compaction import execute
from lowwater.log.config import LogConfig
from lowwater.log.partition_log import Appended, PartitionLog
from lowwater.wire.records import TRANSACTIONAL, BatchHeader, Record, build_batch, read_records

KEYS = (b"a", b"b", b"c", b"d")
PRODUCERS, WRITERS = st.integers(1, 2), st.integers(3, 4)  # idempotent, transactional
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
    producer: tuple[int, int, int] | None = None  # producer id, epoch, first sequence
    transactional: bool = False
    commits: bool | None = None  # a marker: how the transaction ended
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
    epochs: dict[int, int] = field(default_factory=dict)
    history: list[Sent] = field(default_factory=list)  # also what was deleted since

    def records(self) -> list[Record]:
        return [record for sent in self.batches for record in sent.records if record.offset >= self.log_start]

    def last_of_key(self) -> dict[bytes | None, int]:
        return {record.key: record.offset for sent in self.batches if self.counts(sent) for record in sent.records}

    def outcome(self, sent: Sent) -> bool | None:
        """How the transaction of that batch ended; None while it is open."""
        later = (one for one in self.history if one.commits is not None and one.base_offset > sent.base_offset)
        return next(
            (one.commits for one in later if one.producer and sent.producer and one.producer[0] == sent.producer[0]),
            None,
        )

    def counts(self, sent: Sent) -> bool:
        """Whether it is a batch that somebody wrote and did not take back."""
        return sent.commits is None and (not sent.transactional or self.outcome(sent) is True)

    def open(self) -> dict[int, Sent]:
        found: dict[int, Sent] = {}
        for sent in self.history:
            if sent.producer is not None and sent.commits is not None:
                found.pop(sent.producer[0], None)
            elif sent.producer is not None and sent.transactional:
                found.setdefault(sent.producer[0], sent)
        return found

    def last_stable(self) -> int:
        return min([self.log_end, *(max(one.base_offset, self.log_start) for one in self.open().values())])


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
        producer_id=st.none() | PRODUCERS | WRITERS,
    )
    def append(self, keys: list[bytes], size: int, delays: list[int], codec: int, producer_id: int | None) -> None:
        records = [self._record(place, key, size, delays[place]) for place, key in enumerate(keys)]
        producer, transactional = None, producer_id in (3, 4)
        if producer_id is not None:
            sequence = self.model.next_sequence.get(producer_id, 0)
            producer = (producer_id, self.model.epochs.get(producer_id, 0), sequence)
        batch = _encode(records, producer, transactional=transactional, codec=codec)
        appended = self.log.append(batch, self.home.now_ms, in_transaction=transactional)
        assert not appended.duplicate
        sent = self._note(records, appended, producer)
        sent.transactional = transactional
        if producer_id is not None:
            self.model.next_sequence[producer_id] = sequence + len(keys)
            self.model.remembered.setdefault(producer_id, []).append(sent)
            del self.model.remembered[producer_id][:-5]

    def _note(self, records: list[Record], appended: Appended, producer: tuple[int, int, int] | None) -> Sent:
        assert appended.base_offset >= max(self.model.seen_end, self.model.log_end), "an offset was given out twice"
        placed = [record._replace(offset=appended.base_offset + place) for place, record in enumerate(records)]
        sent = Sent(tuple(placed), placed, appended.last_offset, producer)
        self.model.batches.append(sent)
        self.model.history.append(sent)
        self.model.log_end = self.model.seen_end = appended.last_offset + 1
        return sent

    @rule(producer_id=WRITERS, commit=st.booleans(), bump=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool, bump: bool) -> None:
        """Also when there is none; with the epoch of the producer, or with the next one."""
        epoch = self.model.epochs.get(producer_id, 0) + bump
        appended = self.log.append_marker(producer_id, epoch, commit, 7, self.home.now_ms)
        key, value = struct.pack(">hh", 0, commit), struct.pack(">hi", 0, 7)
        sent = self._note([Record(0, self.home.now_ms, key, value)], appended, (producer_id, epoch, -1))
        sent.commits = commit
        if bump:
            self.model.epochs[producer_id] = epoch
            self.model.next_sequence[producer_id] = 0
            self.model.remembered.pop(producer_id, None)

    @rule(producer_id=WRITERS)
    def an_old_epoch_is_refused(self, producer_id: int) -> None:
        if producer_id not in dict(self.log.producers()):
            return
        epoch = self.model.epochs.get(producer_id, 0) - 1
        with pytest.raises(ApiError) as caught:
            self.log.append_marker(producer_id, epoch, True, 7, self.home.now_ms)
        assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH

    @rule(producer_id=WRITERS)
    def a_batch_outside_a_transaction_is_refused(self, producer_id: int) -> None:
        is_open = producer_id in self.model.open()
        assert self.log.has_transaction(producer_id, self.model.epochs.get(producer_id, 0)) == is_open
        sequence = self.model.next_sequence.get(producer_id, 0)
        producer = (producer_id, self.model.epochs.get(producer_id, 0), sequence)
        # In a transaction it is the plain batch that is refused.
        batch = _encode([Record(0, NOW, b"a", b"v")], producer, transactional=not is_open)
        with pytest.raises(ApiError) as caught:
            self.log.append(batch, self.home.now_ms)
        assert caught.value.code == ErrorCode.INVALID_TXN_STATE

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

    @rule(producer_id=PRODUCERS, gap=st.integers(1, 5))
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
        records = [record._replace(offset=place) for place, record in enumerate(sent.original)]
        return _encode(records, sent.producer, transactional=sent.transactional)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self._note_durable()

    def _note_durable(self) -> None:
        for sent in self.model.history:
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
        markers = {sent.base_offset for sent in self.model.batches if sent.commits is not None}
        assert after & markers == before & markers, "a marker is gone before its time"
        inside = [sent for sent in self.model.batches if self.model.counts(sent)]
        newest = {one.key: one.offset for sent in inside for one in sent.records if one.offset < self.log.clean_until}
        values = [offset for offset in after - markers if offset < self.log.clean_until]
        assert all(offset in newest.values() for offset in values), "an old or aborted value stays"
        self.compacted = True
        for sent in self.model.batches:
            sent.records = [one for one in sent.records if one.offset in after or one.offset < self.model.log_start]

    # -- stopping and starting

    @rule()
    def restart_cleanly(self) -> None:
        self.home.restart()
        self._note_durable()

    @rule()
    def kill(self) -> None:
        self.home.kill()

    @rule()
    def checkpoint(self) -> None:
        self.home.store.checkpoint()

    @rule(lucky=st.booleans())
    def power_cut(self, lucky: bool) -> None:
        """Everything that was not synced is lost, or by luck nothing is."""
        if any(sent.producer and sent.base_offset < self.model.log_start for sent in self._unsynced()):
            self.flush()  # or nobody could tell which transactions begin below the log start
        self.home.power_cut(keep_unsynced=lucky)
        found = {BatchHeader.parse(batch).last_offset for batch in read_batches(self.log)}
        for sent in self.model.batches:
            readable = any(one.offset >= self.model.log_start for one in sent.records)
            assert sent.last_offset in found or not sent.durable or not readable, "a durable batch is lost"
        self.model.batches = [sent for sent in self.model.batches if sent.last_offset in found or sent.durable]
        self.model.history = [sent for sent in self.model.history if sent.last_offset in found or sent.durable]
        self.model.log_end = self.log.log_end
        self._forget_lost_producers(found)

    def _unsynced(self) -> list[Sent]:
        return [sent for sent in self.model.history if not sent.durable]

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
        for producer_id in range(1, 5):
            producer = dict(self.log.producers()).get(producer_id)
            self.model.next_sequence[producer_id] = producer.last_sequence + 1 if producer is not None else 0
            self.model.epochs[producer_id] = producer.epoch if producer is not None else 0

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

    @invariant()
    def readers_of_committed_records_agree(self) -> None:
        if not hasattr(self, "home"):
            return
        model = self.model
        assert self.log.last_stable == model.last_stable()
        visible = [record for sent in model.batches if model.counts(sent) for record in sent.records]
        assert committed(self.log) == [one for one in visible if model.log_start <= one.offset < model.last_stable()]

    @rule(data=st.data())
    def read_committed_somewhere(self, data: st.DataObject) -> None:
        model = self.model
        offset = data.draw(st.integers(model.log_start, model.last_stable()))
        visible = [record for sent in model.batches if model.counts(sent) for record in sent.records]
        found = committed(self.log, offset, max_bytes=data.draw(st.integers(1, 1500)))
        assert found == [one for one in visible if offset <= one.offset < model.last_stable()]

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


def _encode(
    records: list[Record], producer: tuple[int, int, int] | None, *, transactional: bool = False, codec: int = 0
) -> memoryview:
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    return memoryview(
        build_batch(
            records,
            codec=codec,
            attributes=TRANSACTIONAL if transactional else 0,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
    )


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
