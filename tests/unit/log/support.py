"""A log store in memory, and batches to put into it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lowwater.log.config import LogConfig
from lowwater.log.partition_log import Appended, PartitionLog
from lowwater.log.store import LogStore
from lowwater.ports import Disk
from lowwater.testing.simdisk import CLOCK_START_MS, SimDisk, SimIds
from lowwater.wire.records import BatchHeader, Record, build_batch, read_records

NOW = CLOCK_START_MS
TOPIC_ID = bytes(range(16))
SMALL = LogConfig(segment_bytes=2048, index_interval_bytes=256)
HOUR_MS = 3_600_000


def batch_of(
    *values: bytes | None, key: bytes | None = b"k", times: list[int] | None = None, **fields: Any
) -> memoryview:
    """One batch as a producer sends it: base offset 0, one record per value."""
    stamps = times or [NOW] * len(values)
    records = [
        Record(place, stamp, key, value) for place, (value, stamp) in enumerate(zip(values, stamps, strict=True))
    ]
    return memoryview(build_batch(records, **fields))


def keyed(*pairs: tuple[bytes, bytes | None], time: int = NOW, **fields: Any) -> memoryview:
    records = [Record(place, time, key, value) for place, (key, value) in enumerate(pairs)]
    return memoryview(build_batch(records, **fields))


class Home:
    """One data directory on a simulated machine, through restarts of the broker."""

    def __init__(self, config: LogConfig = SMALL, disk: SimDisk | None = None, *, start: bool = True) -> None:
        self.disk = disk or SimDisk()
        self.config = config
        self.path = "/data"
        self.now_ms = NOW
        self.created_boot = 1
        self.store: LogStore
        if start:
            self.start()

    def start(self, through: Disk | None = None, **options: Any) -> LogStore:
        disk = through or self.disk
        self.store = LogStore.open(disk, self.path, now_ms=self.now_ms, ids=SimIds(self.disk), **options)
        return self.store

    def log(self, partition: int = 0, **changes: Any) -> PartitionLog:
        config = replace(self.config, **changes) if changes else self.config
        return self.store.partition("orders", TOPIC_ID, partition, config, self.created_boot)

    def append(self, *values: bytes | None, partition: int = 0, **fields: Any) -> Appended:
        return self.log(partition).append(batch_of(*values, **fields), self.now_ms)

    def restart(self) -> PartitionLog:
        """Stop cleanly and start again."""
        self.store.close(self.now_ms)
        self.start()
        return self.log()

    def kill(self) -> PartitionLog:
        """End like a killed process, and start again on the same boot of the machine."""
        self.store.abandon()
        self.start()
        return self.log()

    def power_cut(self, *, keep_unsynced: bool = False) -> PartitionLog:
        """Lose everything that was not synced, or by luck nothing, and start on another boot."""
        states = list(self.disk.crash_states(subsets=0, torn=False))
        self.disk = self.disk.after(states[1 if keep_unsynced and len(states) > 1 else 0])
        self.start()
        return self.log()

    @property
    def directory(self) -> str:
        return f"{self.path}/topics/orders-{TOPIC_ID.hex()}/0"

    def names(self) -> list[str]:
        return sorted(self.disk.listdir(self.directory))

    def damage(self, name: str, position: int, content: bytes) -> None:
        file = self.disk.open(f"{self.directory}/{name}")
        file.pwrite(content, position)
        file.close()

    def cut(self, name: str, size: int) -> None:
        file = self.disk.open(f"{self.directory}/{name}")
        file.truncate(size)
        file.close()


def read_bytes(log: PartitionLog, offset: int, max_bytes: int = 1 << 20, *, upto: int | None = None) -> bytes:
    part = log.read(offset, max_bytes, upto=log.log_end if upto is None else upto, min_one=True)
    part.warm()
    return b"".join(bytes(one) for one in part.buffers)


def batches_in(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = BatchHeader.parse(data).size
        found.append(data[:size])
        data = data[size:]
    return found


def read_batches(log: PartitionLog, offset: int | None = None) -> list[bytes]:
    """Every batch from `offset` on, fetch by fetch."""
    offset = log.log_start if offset is None else offset
    found: list[bytes] = []
    while offset < log.log_end:
        some = batches_in(read_bytes(log, offset))
        if not some:
            break
        found += some
        offset = BatchHeader.parse(some[-1]).next_offset
    return found


def read_all(log: PartitionLog, offset: int | None = None) -> list[Record]:
    """Every record from `offset` (default: the log start) on."""
    first = log.log_start if offset is None else offset
    records = [record for batch in read_batches(log, offset) for record in read_records(batch)]
    return [record for record in records if record.offset >= first]


def values(log: PartitionLog, offset: int | None = None) -> list[bytes | None]:
    return [record.value for record in read_all(log, offset)]
