"""What a crash takes, it takes from the end: no record stays that was sent after one that is gone."""

from __future__ import annotations

from tests.unit.broker.talk import WRITTEN, create, partition_of, produce, values_in

from lowwater.errors import ErrorCode
from lowwater.testing.disk_image import Write
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import CreateTopicsRequest
from lowwater.wire.messages.create_topics import CreatableTopic


def killed(broker: VirtualBroker) -> VirtualBroker:
    """The next process on the same machine."""
    disk = broker.sim_disk
    return VirtualBroker(disk=disk.after(CrashState(disk.operations, power_cut=False)))


def without(broker: VirtualBroker, lost: set[int]) -> VirtualBroker:
    """The next process after a power cut that took these operations."""
    disk = broker.sim_disk
    return VirtualBroker(disk=disk.after(CrashState(disk.operations, frozenset(lost))))


def writes_since(disk: SimDisk, begin: int, content: bytes) -> set[int]:
    found = {
        index
        for index, operation in enumerate(disk.journal)
        if index >= begin and isinstance(operation, Write) and content in operation.data
    }
    assert found
    return found


def test_what_a_killed_process_wrote_is_durable_before_anything_follows_it() -> None:
    broker = VirtualBroker()
    create(broker, "t")
    produce(broker, "t", b"first", acks=WRITTEN)
    after_kill = killed(broker)
    everything = without(after_kill, set(range(after_kill.sim_disk.operations)) - synced(after_kill.sim_disk))
    assert values_in(everything, "t") == [b"first"]


def synced(disk: SimDisk) -> set[int]:
    lost = max(disk.crash_states(subsets=0, torn=False), key=lambda state: len(state.lost)).lost
    return set(range(disk.operations)) - lost


def test_a_record_behind_a_lost_one_in_another_segment_is_lost_too_and_both_can_be_sent_again() -> None:
    broker = VirtualBroker()
    create(broker, "t", segment_bytes="350")
    produce(broker, "t", b"kept" * 20, producer=(7, 0, 0))
    broker.stop()
    broker.start()  # the lost record is the first of its leader epoch
    begin = broker.sim_disk.operations
    produce(broker, "t", b"lost" * 20, producer=(7, 0, 1), acks=WRITTEN)
    produce(broker, "t", b"behind" * 20, producer=(7, 0, 2), acks=WRITTEN)
    bases = [segment.base_offset for segment in partition_of(broker, "t").log.segments]
    assert bases == [0, 2], "the last record has to be in a segment of its own"
    after = without(broker, writes_since(broker.sim_disk, begin, b"lost"))
    assert values_in(after, "t") == [b"kept" * 20]
    for number, value in ((1, b"lost"), (2, b"behind")):
        assert produce(after, "t", value * 20, producer=(7, 0, number)).error_code == 0
    assert values_in(after, "t") == [b"kept" * 20, b"lost" * 20, b"behind" * 20]


def test_a_gap_left_on_purpose_ends_no_log() -> None:
    """After a power cut offsets go on at a ceiling; the next power cut finds that gap and what was acked behind it."""
    broker = VirtualBroker()
    create(broker, "t")
    produce(broker, "t", b"acked")
    produce(broker, "t", b"taken", acks=WRITTEN)
    for number in range(3):
        disk = broker.sim_disk
        broker = without(broker, set(range(disk.operations)) - synced(disk))
        assert produce(broker, "t", b"acked %d" % number).error_code == 0
        produce(broker, "t", b"taken too", acks=WRITTEN)
    disk = broker.sim_disk
    broker = without(broker, set(range(disk.operations)) - synced(disk))
    assert values_in(broker, "t") == [b"acked", b"acked 0", b"acked 1", b"acked 2"]


def test_a_topic_whose_sync_failed_is_durable_before_the_next_process_acks_records_for_it() -> None:
    """It was refused, but it reads well from the page cache: the next process on this boot has it."""
    disk = SimDisk()
    faulty = FaultyDisk(disk, Fault(FaultKind.SYNC, 1 << 30, path_contains="/metadata"))
    broker = VirtualBroker(disk=faulty)
    faulty.fault.nth = faulty.met + 1
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    refused = broker.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000)).topics[0]
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    broker.kill()
    disk.drop_process()
    broker = VirtualBroker(disk=disk)
    assert produce(broker, "t", b"acked").error_code == 0
    after = without(broker, set(range(disk.operations)) - synced(disk))
    assert values_in(after, "t") == [b"acked"]
