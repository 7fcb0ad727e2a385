"""Log starts move off the event loop: many with one sync, and none before what it needs is durable."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.broker.talk import create, delete, partition_of, produce, values_in

from lowwater.errors import ErrorCode
from lowwater.testing.disk_image import Sync
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import ListOffsetsRequest
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

PARTITIONS = 5


@pytest.fixture
def broker() -> VirtualBroker:
    made = VirtualBroker()
    create(made, "t", PARTITIONS, segment_bytes="200")
    for index in range(PARTITIONS):
        for number in range(3):
            produce(made, "t", b"%d" % number * 80, index=index, producer=(7, 0, number))
    return made


def deletion(offset: int, *indexes: int) -> DeleteRecordsRequest:
    wanted = [DeleteRecordsPartition(partition_index=index, offset=offset) for index in indexes]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=wanted)], timeout_ms=1000)


def results(response: Any) -> list[tuple[int, int]]:
    return [(one.error_code, one.low_watermark) for one in response.topics[0].partitions]


def syncs_of_marks(disk: SimDisk, since: int) -> int:
    inode = disk._file("/data/marks")
    return sum(isinstance(operation, Sync) and operation.inode == inode for operation in disk.journal[since:])


def test_many_partitions_and_requests_share_one_sync(broker: VirtualBroker) -> None:
    disk = broker.sim_disk
    began = disk.operations
    asked = [broker.send(deletion(1, 0, 1, 2)), broker.send(deletion(2, 2, 3))]
    broker.time.settle()
    assert [results(one.response) for one in asked] == [[(0, 1), (0, 1), (0, 2)], [(0, 2), (0, 2)]]
    assert syncs_of_marks(disk, began) == 1


def test_nothing_is_deleted_and_nobody_answered_before_the_sync(broker: VirtualBroker) -> None:
    broker.offload.held = True
    asked = broker.send(deletion(2, 0))
    broker.time.settle()
    assert not asked.is_answered
    assert len(values_in(broker, "t")) == 3
    broker.offload.release()
    broker.time.settle()
    assert results(asked.response) == [(0, 2)]
    assert partition_of(broker, "t").log.log_start == 2


def test_what_producers_did_is_known_whenever_power_fails(broker: VirtualBroker) -> None:
    """A repeated batch is no new one, also when the segment that held it is gone."""
    disk = broker.sim_disk
    began = disk.operations
    broker.ask(deletion(3, 0))
    for at in range(began, disk.operations + 1):
        for state in disk.telling_states(at):
            after = VirtualBroker(disk=disk.after(state))
            assert produce(after, "t", b"2" * 80, producer=(7, 0, 2)).base_offset == 2, state


def test_a_topic_that_goes_meanwhile_is_answered_and_stays_gone(broker: VirtualBroker) -> None:
    broker.offload.held = True
    asked = broker.send(deletion(2, 0))
    broker.time.settle()
    broker.offload.held = False
    delete(broker, "t")
    broker.offload.release()
    broker.time.settle()
    assert results(asked.response) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]
    assert not [path for path, _ in broker.sim_disk.image.walk() if "/t-" in path]


def test_a_failed_sync_stops_the_log_and_later_requests_are_answered_too() -> None:
    disk = SimDisk()
    faulty = FaultyDisk(disk, Fault(FaultKind.SYNC, 1 << 30, path_contains="/marks"))
    broker = VirtualBroker(disk=faulty)
    create(broker, "t")
    produce(broker, "t", b"a")
    faulty.fault.nth = faulty.met + 1
    for _ in range(2):
        assert results(broker.ask(deletion(1, 0))) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]
    assert partition_of(broker, "t").log.offline is not None


def test_a_lost_snapshot_is_made_anew_before_older_ones_go(broker: VirtualBroker) -> None:
    log, disk = partition_of(broker, "t").log, broker.sim_disk
    disk.unlink(f"{log.directory}/{2:020d}.snapshot")
    broker.ask(deletion(2, 0))
    after = VirtualBroker(disk=disk.after(CrashState(disk.operations, power_cut=False)))
    assert produce(after, "t", b"1" * 80, producer=(7, 0, 1)).base_offset == 1, "the batch is deleted, not forgotten"


def test_a_cold_look_up_by_time_waits_off_the_loop() -> None:
    broker = VirtualBroker()
    create(broker, "t")
    for number in range(200):
        broker.clock.advance(1000)
        produce(broker, "t", b"%d" % number * 100)
    broker.stop()
    broker.start()
    broker.sim_disk.cached = False
    broker.offload.held = True
    wanted = ListOffsetsPartition(partition_index=0, timestamp=broker.clock.now_ms() - 50_000)
    asked = broker.send(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])]))
    broker.time.settle()
    assert not asked.is_answered
    broker.offload.release()
    broker.time.settle()
    assert asked.response.topics[0].partitions[0].offset == 149
