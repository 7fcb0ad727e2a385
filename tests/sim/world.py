"""A log store on a simulated disk, driven as the broker drives it, with every promise noted in a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tests.sim.batches import NO_PRODUCER, Batch, decode_all, encode
from tests.sim.ledger import NEVER, PartitionLedger, Promised, Start

from lowwater.errors import StorageError
from lowwater.log import flush, marks
from lowwater.log.compaction import execute
from lowwater.log.config import LogConfig
from lowwater.log.partition_log import Appended, FlushTicket, PartitionLog, run_tickets
from lowwater.log.store import LogStore
from lowwater.ports import Disk
from lowwater.testing.simdisk import SimDisk, SimIds

T = TypeVar("T")

DATA = "/data"
CEILING = 16
SMALL = LogConfig(segment_bytes=4096, index_interval_bytes=256)


@contextmanager
def low_ceilings() -> Iterator[None]:
    """Ceilings low enough for a short script to pass them."""
    usual, marks.CEILING_DEFAULT = marks.CEILING_DEFAULT, CEILING
    try:
        yield
    finally:
        marks.CEILING_DEFAULT = usual


def open_store(disk: Disk, ids: SimIds, now_ms: int, live: set[bytes]) -> LogStore:
    """`live`: the topic ids that the metadata log would know."""
    store = LogStore.open(disk, DATA, now_ms=now_ms, ids=ids, files_max=8)
    store.remove_leftovers(lambda topic_id: topic_id in live)
    return store


def open_partition(store: LogStore, ledger: PartitionLedger) -> PartitionLog:
    return store.partition(ledger.topic, ledger.topic_id, ledger.partition, ledger.config, ledger.created_boot)


def read_log(log: PartitionLog, start: int | None = None) -> list[Batch]:
    """Every batch from `start` (default: log start) to the log end, as a reader gets them."""
    offset, batches = log.log_start if start is None else start, []
    while offset < log.log_end:
        found = read_once(log, offset)
        if not found:
            break
        batches += found
        offset = found[-1].last_offset + 1
    return batches


def read_once(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> list[Batch]:
    part = log.read(offset, max_bytes, upto=log.log_end, min_one=True)
    part.warm()
    return list(decode_all(b"".join(bytes(buffer) for buffer in part.buffers)))


class World:
    """One simulated machine. Each method is one thing a broker does; what it promises is noted when it returns."""

    def __init__(self, disk: SimDisk | None = None) -> None:
        self.disk = disk or SimDisk()
        self.face: Disk = self.disk  # the disk as the store sees it
        self.clock = self.disk.clock
        self.partitions: dict[str, PartitionLedger] = {}
        self._values = 0
        self.ids = SimIds(self.disk, seed=7)

    def attempt(self, step: Callable[[], T]) -> T:
        """Every step that touches the disk goes through here, so that a faulty disk can be met."""
        return step()

    # -- the process

    def start(self) -> None:
        self.attempt(self._start)

    def _start(self) -> None:
        self.disk.drop_process()
        live = {ledger.topic_id for ledger in self.living()}
        self.store = open_store(self.face, self.ids, self.clock.now_ms(), live)
        # After an unclean stop a broker opens every partition before it serves any.
        for ledger in self.living():
            self.log(ledger)

    def kill(self) -> None:
        """The process dies and starts again: the page cache keeps what was written, nothing more is synced."""
        self.start()

    def close(self) -> None:
        """A clean stop: what it flushed is durable after it."""
        logs = [(ledger, self.log(ledger)) for ledger in self.living()]
        self.stop()
        for ledger, log in logs:
            self._note_durable(ledger, log.flushed_end if log.offline is None else 0)

    def stop(self) -> None:
        self.store.close(self.clock.now_ms())

    def living(self) -> list[PartitionLedger]:
        return [ledger for ledger in self.partitions.values() if ledger.deleted_at == NEVER]

    # -- topics

    def create(self, name: str, config: LogConfig = SMALL) -> PartitionLedger:
        return self._add(name, self.ids.uuid(), 0, config)

    def add_partition(self, beside: PartitionLedger) -> PartitionLedger:
        return self._add(beside.topic, beside.topic_id, beside.partition + 1, beside.config)

    def _add(self, name: str, topic_id: bytes, partition: int, config: LogConfig) -> PartitionLedger:
        ledger = PartitionLedger(name, topic_id, partition, config, self.store.boot_count)
        ledger.created_at = self.disk.operations
        self.partitions[f"{name}-{partition}-{ledger.topic_id.hex()[:6]}"] = ledger
        return ledger

    def log(self, ledger: PartitionLedger) -> PartitionLog:
        return open_partition(self.store, ledger)

    def delete_topic(self, ledger: PartitionLedger) -> None:
        """The metadata log has already forgotten the topic, durably, when its files go."""
        ledger.deleted_at = self.disk.operations
        self.attempt(lambda: self.store.begin_delete_topic(ledger.topic_id)())

    # -- records

    def append(
        self,
        ledger: PartitionLedger,
        count: int = 1,
        *,
        size: int = 40,
        keys: list[bytes | None] | None = None,
        values: list[bytes | None] | None = None,
        producer: tuple[int, int, int] = NO_PRODUCER,
        transactional: bool = False,
        flush: bool = False,
        times: list[int] | None = None,
    ) -> Promised:
        """Append one batch of `count` records; with `flush` it is acks=all, else acks=1."""
        keys = keys or [None] * count
        values = values or [self._value(size) for _ in keys]
        times = times or [self.clock.now_ms() + index for index in range(len(keys))]
        records, began = list(zip(times, keys, values, strict=True)), self.disk.operations

        def append() -> Appended:
            batch = encode(records, producer=producer, transactional=transactional)
            return self.log(ledger).append(memoryview(batch), self.clock.now_ms(), in_transaction=transactional)

        appended = self.attempt(append)
        assert not appended.duplicate
        return self._note(ledger, appended, began, flush=flush)

    def end(self, ledger: PartitionLedger, producer: tuple[int, int], *, commit: bool, flush: bool = False) -> Promised:
        """Append the marker that ends a transaction of (producer id, epoch)."""
        began, now_ms = self.disk.operations, self.clock.now_ms()
        appended = self.attempt(lambda: self.log(ledger).append_marker(*producer, commit, 0, now_ms))
        return self._note(ledger, appended, began, flush=flush)

    def _note(self, ledger: PartitionLedger, appended: Appended, began: int, *, flush: bool) -> Promised:
        stored = self.attempt(lambda: read_once(self.log(ledger), appended.base_offset))[0]
        assert (stored.base_offset, stored.last_offset) == (appended.base_offset, appended.last_offset)
        promise = Promised(self.disk.operations, stored, began)
        ledger.promised.append(promise)
        ledger.sent_ms = max(ledger.sent_ms, self.clock.now_ms())
        if flush:
            self.flush(ledger)
        return promise

    def _value(self, size: int) -> bytes:
        self._values += 1
        return f"value-{self._values}-".encode().ljust(size, b".")

    def begin_flush(self, ledger: PartitionLedger) -> FlushTicket | None:
        return self.log(ledger).begin_flush()

    def end_flush(self, ledger: PartitionLedger, ticket: FlushTicket | None) -> None:
        self.attempt(lambda: self._run_flush(ledger, ticket))
        self._note_durable(ledger, self.log(ledger).flushed_end)

    def _run_flush(self, ledger: PartitionLedger, ticket: FlushTicket | None) -> None:
        if ticket is None:
            return
        [error] = run_tickets(self.face, [ticket])
        self.log(ledger).finish_flush(ticket, error)
        if error is not None:
            raise error

    def flush(self, ledger: PartitionLedger) -> None:
        self.end_flush(ledger, self.begin_flush(ledger))
        assert self.log(ledger).flushed_end == self.log(ledger).log_end

    def flush_together(self, ledgers: list[PartitionLedger]) -> None:
        """Many logs share one sync of the whole file system."""
        self.disk.can_sync_all = True
        tickets = [(ledger, ticket) for ledger in ledgers if (ticket := self.begin_flush(ledger)) is not None]
        usual, flush.SHARED_FROM = flush.SHARED_FROM, 2
        try:
            self.attempt(lambda: self._run_together(tickets))
        finally:
            flush.SHARED_FROM = usual
        for ledger in ledgers:
            self._note_durable(ledger, self.log(ledger).flushed_end)

    def _run_together(self, tickets: list[tuple[PartitionLedger, FlushTicket]]) -> None:
        errors = run_tickets(self.face, [ticket for _, ticket in tickets])
        for (ledger, ticket), error in zip(tickets, errors, strict=True):
            self.log(ledger).finish_flush(ticket, error)
        for error in errors:
            if error is not None:
                raise error

    def _note_durable(self, ledger: PartitionLedger, end: int) -> None:
        for promise in ledger.promised:
            if promise.durable_at == NEVER and promise.batch.last_offset < end:
                promise.durable_at = self.disk.operations

    # -- housekeeping

    def delete_before(self, ledger: PartitionLedger, offset: int) -> None:
        began = self.disk.operations
        with self._deleting(ledger, began):
            self.attempt(lambda: self.log(ledger).delete_before(offset))
        assert self.log(ledger).log_start == offset

    def retention(self, ledger: PartitionLedger) -> None:
        began, before = self.disk.operations, self.log(ledger).log_start
        with self._deleting(ledger, began):
            self.attempt(lambda: self.log(ledger).apply_retention(self.clock.now_ms()))
        assert self.log(ledger).log_start > before, "the script means to delete something here"

    @contextmanager
    def _deleting(self, ledger: PartitionLedger, began: int) -> Iterator[None]:
        """The log start that results is promised; when the deletion fails it may have moved, or not."""
        end = self.log(ledger).log_end
        try:
            yield
        except Exception:
            ledger.starts.append(Start(began, NEVER, end))
            raise
        ledger.starts.append(Start(began, self.disk.operations, self.log(ledger).log_start))

    def compact(self, ledger: PartitionLedger) -> None:
        began, before = self.disk.operations, self.log(ledger).size_bytes
        ledger.compacted_at = min(ledger.compacted_at, began)
        self.attempt(lambda: self._compact(ledger))
        assert self.log(ledger).size_bytes < before, "the script means something to be superseded here"

    def _compact(self, ledger: PartitionLedger) -> None:
        log = self.log(ledger)
        if log.offline is None:  # else the swap of an earlier attempt is still to be made
            plan = log.plan_compaction(self.clock.now_ms())
            assert plan is not None, "the script means to compact here"
            result = execute(plan)
            log.finish_compaction(result)
            if result.error is not None:
                raise StorageError(result.error, retriable=result.retriable)
        if (failure := log.failure()) is not None:
            raise failure

    def expire_tombstones(self, ledger: PartitionLedger) -> None:
        """From here on compaction may drop tombstones that were there at the last one."""
        ledger.tombstones_expire_at = self.disk.operations

    def roll(self, ledger: PartitionLedger) -> None:
        assert self.log(ledger).roll_if_due(self.clock.now_ms())

    def begin_ceilings(self) -> None:
        """Higher ceilings are written and not yet synced."""
        assert self.attempt(lambda: self.store.begin_ceilings()) is not None

    def checkpoint(self) -> None:
        self.attempt(self.store.checkpoint)

    def raise_ceilings(self) -> None:
        """What the broker does off its loop when logs want higher ceilings."""
        self.attempt(self.store.raise_ceilings)
