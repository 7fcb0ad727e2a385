"""Opens what a crash left and compares it with what had been promised."""

from __future__ import annotations

from tests.sim.batches import NO_PRODUCER, Batch, Record, encode
from tests.sim.decided import Timeline
from tests.sim.ledger import PartitionLedger, Promised
from tests.sim.world import open_partition, open_store, read_log, read_once
from tests.unit.log.transactional import committed

from lowwater.errors import ApiError, ErrorCode
from lowwater.log.partition_log import PartitionLog
from lowwater.log.store import LogStore
from lowwater.testing.simdisk import CrashState, SimDisk, SimIds

LOOKUPS = 6


class Violation(AssertionError):  # noqa: N818  (what the disk did, not what the test did)
    """A promise that was not kept."""


def recover(disk: SimDisk, ledgers: list[PartitionLedger], at: int) -> tuple[LogStore, list[PartitionLog]]:
    """Start on that disk and load every partition that lives, as a broker does after an unclean stop."""
    alive = living(ledgers, at)
    store = open_store(disk, SimIds(disk, seed=11), disk.clock.now_ms(), {ledger.topic_id for ledger in alive})
    return store, [open_partition(store, ledger) for ledger in alive]


def living(ledgers: list[PartitionLedger], at: int) -> list[PartitionLedger]:
    return [ledger for ledger in ledgers if ledger.created_at <= at < ledger.deleted_at]


def judge(disk: SimDisk, ledgers: list[PartitionLedger], state: CrashState) -> None:
    """Raise Violation unless every promise made by `state.at` holds on that disk."""
    before = _contents(disk)
    _, logs = recover(disk, ledgers, state.at)
    for ledger, log in zip(living(ledgers, state.at), logs, strict=True):
        _judge_partition(ledger, log, state)
        _nothing_silently_deleted(ledger, log, state, before, disk)
    for ledger in ledgers:
        if ledger.deleted_at <= state.at:
            _gone(ledger, disk)


def _judge_partition(ledger: PartitionLedger, log: PartitionLog, state: CrashState) -> None:
    _require(log.offline is None, f"{ledger.topic} is offline: {log.offline}")
    batches = read_log(log)
    # A first segment that was never synced may vanish as a whole; then the log begins with the next.
    low, high = ledger.start_promised(state.at), max(ledger.start_allowed(state.at), _first(batches))
    _require(low <= log.log_start <= high, f"log start {log.log_start} is outside [{low}, {high}]")
    found = {record.offset: record for batch in batches for record in batch.records}
    _in_order(batches, log)
    _nothing_foreign(ledger, batches, found)
    timeline = Timeline.of(ledger, max(batches[-1].last_offset if batches else -1, log.log_start - 1))
    _acked_survive(ledger, batches, timeline, state)
    _transactions_agree(ledger, log, batches, timeline, state)
    _lookups_agree(log, batches)
    _times_agree(log, [record for batch in batches for record in batch.records])
    _offsets_are_new(ledger, log, state)
    _producers_remember(ledger, log, batches, state)
    _transactions_can_end(log)


def _first(batches: list[Batch]) -> int:
    return batches[0].base_offset if batches else 0


def _in_order(batches: list[Batch], log: PartitionLog) -> None:
    ends = [-1, *(batch.last_offset for batch in batches)]
    for batch, end in zip(batches, ends, strict=False):
        _require(batch.base_offset > end, f"the batch at {batch.base_offset} follows offset {end}")
        _require(batch.last_offset < log.log_end, f"the batch at {batch.base_offset} passes log end {log.log_end}")
        _require(batch.last_offset >= log.log_start, f"the batch at {batch.base_offset} is below log start")


def _nothing_foreign(ledger: PartitionLedger, batches: list[Batch], found: dict[int, Record]) -> None:
    """What is read was written there; without compaction whole batches, byte by byte."""
    written = {record.offset: record for promise in ledger.promised for record in promise.batch.records}
    for offset, record in found.items():
        _require(written.get(offset) == record, f"offset {offset} reads {record}, was written {written.get(offset)}")
    raw = {promise.batch.raw for promise in ledger.promised}
    if not ledger.config.compact:
        _require(all(batch.raw in raw for batch in batches), "a batch is not as it was written")


def _acked_survive(ledger: PartitionLedger, batches: list[Batch], timeline: Timeline, state: CrashState) -> None:
    deletable = ledger.start_allowed(state.at)
    found = {record.offset for batch in batches for record in batch.records}
    counting = [record for batch in batches if timeline.counts(batch) for record in batch.records]
    newest = {record.key: record.offset for record in counting}
    compacted = ledger.compacted_at < state.at
    for promise in ledger.acked(state.at, power_cut=state.power_cut):
        if compacted and (promise.batch.is_control or timeline.is_aborted(promise.batch)):
            continue
        for record in promise.batch.records:
            if record.offset < deletable or record.offset in found:
                continue
            superseded = compacted and newest.get(record.key, -1) > record.offset
            expired = compacted and _may_be_forgotten(ledger, record, state)
            _require(superseded or expired, f"acked offset {record.offset} is lost: {record}")


def _may_be_forgotten(ledger: PartitionLedger, record: Record, state: CrashState) -> bool:
    """A tombstone whose time is over, and what it deleted."""
    last = ledger.newest(record.key, state.at, power_cut=state.power_cut)
    return last is not None and last.value is None and ledger.tombstones_expire_at < state.at


def _lookups_agree(log: PartitionLog, batches: list[Batch]) -> None:
    """A read at any offset begins with the batch that holds it, or the next one. Some batches stand for all."""
    pairs = list(zip(batches, [*batches[1:], None], strict=False))
    for batch, following in pairs[:: len(pairs) // LOOKUPS + 1]:
        for offset in {max(batch.base_offset, log.log_start), batch.last_offset}:
            _require(read_once(log, offset, 1)[0] == batch, f"a read at {offset} misses its batch")
        if following and batch.last_offset + 1 < following.base_offset:
            _require(read_once(log, batch.last_offset + 1, 1)[0] == following, "a read in a gap misses the next batch")


def _times_agree(log: PartitionLog, records: list[Record]) -> None:
    records = [record for record in records if record.offset >= log.log_start]
    stamps = sorted({record.timestamp for record in records})
    for stamp in {*stamps[:2], *stamps[-2:], *(at + 1 for at in stamps[-1:]), *stamps[len(stamps) // 2 :][:1]}:
        expected = next((record for record in records if record.timestamp >= stamp), None)
        answer = log.offset_for_time(stamp, upto=log.log_end)
        got = None if answer is None else (answer.offset, answer.timestamp)
        want = None if expected is None else (expected.offset, expected.timestamp)
        _require(got == want, f"time {stamp} gives {got}, not {want}")
    if records:
        latest = max(records, key=lambda record: (record.timestamp, -record.offset))
        answer = log.offset_of_max_timestamp(upto=log.log_end)
        _require(
            answer is not None and answer.offset == latest.offset, f"largest timestamp gives {answer}, not {latest}"
        )


def _transactions_agree(
    ledger: PartitionLedger, log: PartitionLog, batches: list[Batch], timeline: Timeline, state: CrashState
) -> None:
    """Readers of committed records stop before the first open transaction and get what was committed before it."""
    firsts = [batch.base_offset for batch in timeline.open().values()]
    expected = min([log.log_end, *(max(first, log.log_start) for first in firsts)])
    if log.log_start > ledger.start_allowed(state.at) and any(first < log.log_start for first in firsts):
        # The first segment vanished unsynced, and with it where a transaction began.
        _require(log.last_stable >= expected, f"last stable offset {log.last_stable}, not {expected} or later")
        return
    _require(log.last_stable == expected, f"last stable offset {log.last_stable}, not {expected}")
    known = {one for one, batch in timeline.open().items() if log.has_transaction(one, batch.producer_epoch)}
    _require(known == timeline.open().keys(), f"open are {timeline.open().keys()}, known {known}")
    visible = [record for batch in batches if timeline.counts(batch) for record in batch.records]
    wanted = [record.offset for record in visible if log.log_start <= record.offset < expected]
    got = [record.offset for record in committed(log)]
    _require(got == wanted, f"readers of committed records get {got}, not {wanted}")


def _transactions_can_end(log: PartitionLog) -> None:
    for producer_id, producer in log.producers():
        if producer.txn_start_offset >= 0:
            log.append_marker(producer_id, producer.epoch, False, 0, 0)
    _require(log.last_stable == log.log_end, f"last stable offset {log.last_stable} with nothing open")


def _producers_remember(ledger: PartitionLedger, log: PartitionLog, batches: list[Batch], state: CrashState) -> None:
    """A repeated batch that survived is answered with its offset; one that was lost is never called a duplicate."""
    present = {batch.raw for batch in batches}
    sent: dict[int, list[Promised]] = {}
    for promise in ledger.promised:
        if promise.batch.producer_id >= 0 and not promise.batch.is_control and promise.at <= state.at:
            sent.setdefault(promise.batch.producer_id, []).append(promise)
    for promises in sent.values():
        kept = [promise for promise in promises if promise.batch.raw in present]
        if kept and any(batch.producer_epoch > kept[-1].batch.producer_epoch for batch in _markers(batches, kept[-1])):
            _is_fenced(ledger, log, kept[-1])
        elif kept and not ledger.config.compact:
            _is_duplicate(ledger, log, kept[-1])
        for promise in promises:
            if promise.batch.raw not in present and promise.batch.base_offset >= log.log_start:
                _is_no_duplicate(ledger, log, promise)


def _markers(batches: list[Batch], promise: Promised) -> list[Batch]:
    return [batch for batch in batches if batch.is_control and batch.producer_id == promise.batch.producer_id]


def _is_fenced(ledger: PartitionLedger, log: PartitionLog, promise: Promised) -> None:
    """A marker with a higher epoch ended its transaction."""
    try:
        log.append(memoryview(_again(promise)), ledger.sent_ms, in_transaction=True)
    except ApiError as error:
        _require(error.code == ErrorCode.INVALID_PRODUCER_EPOCH, f"an old epoch is refused with {error}")
        return
    raise Violation(f"epoch {promise.batch.producer_epoch} is taken after a marker of a higher one")


def _is_duplicate(ledger: PartitionLedger, log: PartitionLog, promise: Promised) -> None:
    appended = log.append(memoryview(_again(promise)), ledger.sent_ms, in_transaction=True)
    _require(appended.duplicate, f"sequence {promise.batch.sequence} is taken twice")
    _require(appended.base_offset == promise.batch.base_offset, f"a repeated batch is now at {appended.base_offset}")


def _is_no_duplicate(ledger: PartitionLedger, log: PartitionLog, promise: Promised) -> None:
    if ledger.config.compact:
        return
    end = log.log_end
    try:
        appended = log.append(memoryview(_again(promise)), ledger.sent_ms, in_transaction=True)
    except ApiError:
        _require(log.log_end == end, "a refused batch was written")
        return
    _require(not appended.duplicate, f"sequence {promise.batch.sequence} was lost and is called a duplicate")


def _again(promise: Promised) -> bytearray:
    batch = promise.batch
    records = [(record.timestamp, record.key, record.value) for record in batch.records]
    producer = batch.producer_id, batch.producer_epoch, batch.sequence
    return encode(records, producer=producer, transactional=batch.is_transactional)


def _offsets_are_new(ledger: PartitionLedger, log: PartitionLog, state: CrashState) -> None:
    """No offset that a reader saw is given to another record, and the epoch is new."""
    seen = [promise.batch for promise in ledger.promised if promise.at <= state.at]
    batch = encode([(ledger.sent_ms, b"new-key", b"new")], producer=NO_PRODUCER)
    appended = log.append(memoryview(batch), ledger.sent_ms)
    used = max((batch.last_offset for batch in seen), default=-1)
    _require(appended.base_offset > used, f"offset {appended.base_offset} is used again, {used} had been seen")
    [stored] = read_once(log, appended.base_offset)
    _require(stored.records[0].value == b"new", f"the new record reads {stored}")
    epochs = max((batch.leader_epoch for batch in seen), default=-1)
    _require(stored.leader_epoch > epochs, f"leader epoch {stored.leader_epoch} after {epochs}")
    _require(stored.leader_epoch == log.leader_epoch, "the leader epoch is not the log's")


def _nothing_silently_deleted(
    ledger: PartitionLedger, log: PartitionLog, state: CrashState, before: list[bytes], disk: SimDisk
) -> None:
    """Whole batches that were on the disk are still on it, in the log or set aside."""
    if ledger.compacted_at < state.at:
        return
    after = _contents(disk)
    for promise in ledger.promised:
        raw = promise.batch.raw
        if promise.batch.last_offset >= log.log_start and any(raw in content for content in before):
            _require(any(raw in content for content in after), f"the batch at {promise.batch.base_offset} was deleted")


def _gone(ledger: PartitionLedger, disk: SimDisk) -> None:
    left = [path for path, _ in disk.image.walk() if ledger.topic_id.hex() in path]
    _require(not left, f"files of the deleted topic {ledger.topic} are left: {left}")


def _contents(disk: SimDisk) -> list[bytes]:
    return [content for _, content in disk.image.walk() if content]


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Violation(otherwise)
