"""A transactional producer, as far as a log sees it, and what a reader of committed records gets."""

from __future__ import annotations

from tests.unit.log.support import Home, batches_in, keyed, read_bytes

from lowwater.log.partition_log import Appended, PartitionLog
from lowwater.wire.records import TRANSACTIONAL, BatchHeader, Record, read_records


class Writer:
    """Sends batches of its transaction, and ends it as its coordinator would: in the older way, without a new epoch."""

    def __init__(self, home: Home, producer_id: int = 1, epoch: int = 0) -> None:
        self.home = home
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def send(self, *values: bytes, key: bytes = b"k", in_transaction: bool = True, **fields: int) -> Appended:
        return self.put(*[(key, value) for value in values], in_transaction=in_transaction, **fields)

    def put(self, *pairs: tuple[bytes, bytes | None], in_transaction: bool = True, **fields: int) -> Appended:
        batch = keyed(*pairs, time=self.home.now_ms, **{**self.identity, "attributes": TRANSACTIONAL, **fields})
        appended = self.home.log().append(batch, self.home.now_ms, in_transaction=in_transaction)
        self.sequence += len(pairs)
        return appended

    @property
    def identity(self) -> dict[str, int]:
        return {"producer_id": self.producer_id, "producer_epoch": self.epoch, "base_sequence": self.sequence}

    def commit(self) -> Appended:
        return self.end(commit=True)

    def abort(self) -> Appended:
        return self.end(commit=False)

    def end(self, *, commit: bool, coordinator_epoch: int = 0) -> Appended:
        home = self.home
        return home.log().append_marker(self.producer_id, self.epoch, commit, coordinator_epoch, home.now_ms)

    def begin_epoch(self) -> None:
        self.epoch += 1
        self.sequence = 0


def committed(log: PartitionLog, offset: int | None = None, *, max_bytes: int = 1 << 20) -> list[Record]:
    """What a client reads that asks for committed records: it drops what it is told was aborted, and every marker."""
    offset = log.log_start if offset is None else offset
    found: list[Record] = []
    while offset < log.last_stable:
        aborted = log.aborted_in_read(offset, max_bytes)
        batches = batches_in(read_bytes(log, offset, max_bytes, upto=log.last_stable))
        if not batches:
            break
        found += _kept(batches, sorted(aborted, key=lambda one: one[1]), offset)
        offset = BatchHeader.parse(batches[-1]).next_offset
    return found


def _kept(batches: list[bytes], aborted: list[tuple[int, int]], offset: int) -> list[Record]:
    """By the rule of Kafka's clients: a producer is left out from a first offset up to its next marker."""
    found: list[Record] = []
    left_out: set[int] = set()
    for batch in batches:
        header = BatchHeader.parse(batch)
        while aborted and aborted[0][1] <= header.last_offset:
            left_out.add(aborted.pop(0)[0])
        if header.is_control:
            left_out.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in left_out:
            found += [record for record in read_records(batch) if record.offset >= offset]
    return found


def committed_values(log: PartitionLog, offset: int | None = None, *, max_bytes: int = 1 << 20) -> list[bytes | None]:
    return [record.value for record in committed(log, offset, max_bytes=max_bytes)]
