"""What a broker does without being asked, when something is in its way."""

from __future__ import annotations

from lowwater.broker.housekeeping import CHECKPOINT_EVERY_MS
from lowwater.log.partition_log import PartitionLog
from lowwater.pending import run
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.generated import ensure_topic
from lowwater.testing.simdisk import SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.records import TRANSACTIONAL, Record, build_batch

COMPACTED = {"log.cleanup.policy": "compact", "log.segment.bytes": "500", "log.cleaner.min.cleanable.ratio": "0"}
BACKOFF_MS = 15_000


def with_topics(broker: VirtualBroker, *names: str) -> None:
    for name in names:
        run(ensure_topic(broker.broker, name, 1))
        broker.time.settle()
        for _ in range(4):
            batch = build_batch([Record(0, broker.clock.now_ms(), b"key", b"v" * 200)])
            log_of(broker, name).append(memoryview(batch), broker.clock.now_ms())


def log_of(broker: VirtualBroker, name: str) -> PartitionLog:
    return broker.broker.partition(name, 0).log


def test_a_checkpoint_is_written_off_the_loop() -> None:
    broker = VirtualBroker()
    with_topics(broker, "orders")
    broker.offload.held = True
    broker.time.advance(CHECKPOINT_EVERY_MS)
    assert not broker.disk.exists("/data/checkpoint")
    broker.offload.release()
    assert broker.disk.exists("/data/checkpoint")


def test_a_checkpoint_that_failed_is_tried_again() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.ENOSPC, 1, path_contains="checkpoint"))
    broker = VirtualBroker(disk=disk)
    with_topics(broker, "orders")
    broker.time.advance(CHECKPOINT_EVERY_MS)
    assert disk.struck
    assert not disk.exists("/data/checkpoint")
    broker.time.advance(CHECKPOINT_EVERY_MS)
    assert disk.exists("/data/checkpoint")


def test_compaction_gives_a_full_disk_time() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.ENOSPC, 1, lasting=True, path_contains=".cleaned"))
    broker = VirtualBroker(COMPACTED, disk=disk)
    with_topics(broker, "table")
    broker.time.advance(2 * BACKOFF_MS)
    assert len(disk.struck) == 1
    broker.time.advance(BACKOFF_MS)
    assert len(disk.struck) == 2
    disk.heal()
    broker.time.advance(BACKOFF_MS)
    assert log_of(broker, "table").clean_until > 0


def test_a_log_that_cannot_be_opened_does_not_keep_the_others_from_compaction() -> None:
    broker = VirtualBroker(COMPACTED)
    with_topics(broker, "bad", "good")
    broker.stop()
    [bad] = [f"/data/topics/{name}/0" for name in broker.disk.listdir("/data/topics") if name.startswith("bad")]
    for name in broker.disk.listdir(bad):
        broker.disk.unlink(f"{bad}/{name}")
    broker.disk.rmdir(bad)
    broker.start()
    broker.time.advance(2 * BACKOFF_MS)
    assert log_of(broker, "good").clean_until > 0


def test_idle_producers_are_forgotten_but_not_those_in_a_transaction() -> None:
    hour_ms = 3_600_000
    broker = VirtualBroker(
        {"producer.id.expiration.ms": str(hour_ms), "producer.id.expiration.check.interval.ms": "60000"}
    )
    run(ensure_topic(broker.broker, "orders", 1))
    broker.time.settle()
    log = log_of(broker, "orders")
    for producer_id in (7, 8):
        batch = build_batch(
            [Record(0, broker.clock.now_ms(), b"key", b"v")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            attributes=TRANSACTIONAL if producer_id == 8 else 0,
        )
        log.append(memoryview(batch), broker.clock.now_ms(), in_transaction=True)
    broker.time.advance(hour_ms - 1)
    assert [producer_id for producer_id, _ in log.producers()] == [7, 8]
    broker.time.advance(60_000)
    assert [producer_id for producer_id, _ in log.producers()] == [8]
