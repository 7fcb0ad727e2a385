"""Rolling, retention and ceilings as time passes; nobody asks for any of it."""

from __future__ import annotations

import pytest
from tests.unit.broker.talk import WRITTEN, begin_fetch, codes, create, delete, partition_of, produce, values_in

from lowwater.broker.housekeeping import LOGS_PER_TURN
from lowwater.errors import ErrorCode
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import IncrementalAlterConfigsRequest
from lowwater.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

HOUR_MS = 3_600_000
CHECK_MS = 300_000
TOPIC, SET = 2, 0


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker({"log.retention.check.interval.ms": str(CHECK_MS)})


def bases(broker: VirtualBroker, topic: str, index: int = 0) -> list[int]:
    return [segment.base_offset for segment in partition_of(broker, topic, index).log.segments]


def alter(broker: VirtualBroker, topic: str, name: str, value: str) -> None:
    change = AlterableConfig(name=name, config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[change])
    answer = broker.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))
    assert answer.responses[0].error_code == 0


# -- retention


def test_old_records_go_at_the_first_look_after_their_time(broker: VirtualBroker) -> None:
    create(broker, "t", retention_ms=str(HOUR_MS))
    produce(broker, "t", b"old")
    broker.time.advance(HOUR_MS)
    assert values_in(broker, "t") == [b"old"]
    broker.time.advance(CHECK_MS)
    assert values_in(broker, "t") == []
    assert partition_of(broker, "t").log.log_start == 1


def test_records_that_are_not_old_stay(broker: VirtualBroker) -> None:
    create(broker, "t", retention_ms=str(HOUR_MS), segment_bytes="200")
    produce(broker, "t", b"old" * 40)
    broker.time.advance(HOUR_MS - CHECK_MS)
    produce(broker, "t", b"new" * 40)
    broker.time.advance(2 * CHECK_MS)
    assert values_in(broker, "t") == [b"new" * 40]
    assert produce(broker, "t", b"next").base_offset == 2


def test_offsets_go_on_after_everything_was_deleted(broker: VirtualBroker) -> None:
    create(broker, "t", retention_ms="1000")
    for _ in range(5):
        produce(broker, "t", b"x")
    broker.time.advance(2 * CHECK_MS)
    assert values_in(broker, "t") == []
    broker.stop()
    broker.start()
    assert produce(broker, "t", b"y").base_offset == 5


def test_large_logs_shrink_to_their_size(broker: VirtualBroker) -> None:
    create(broker, "t", retention_bytes="1000", segment_bytes="500", retention_ms="-1")
    for _ in range(20):
        produce(broker, "t", b"x" * 150)
    before = len(bases(broker, "t"))
    broker.time.advance(CHECK_MS)
    log = partition_of(broker, "t").log
    assert len(log.segments) < before
    assert 1000 <= log.size_bytes < 1000 + 500
    assert log.log_start == bases(broker, "t")[0]


def test_a_reader_below_the_new_log_start_is_told(broker: VirtualBroker) -> None:
    create(broker, "t", retention_ms="1000")
    produce(broker, "t", b"x")
    produce(broker, "t", b"y")
    broker.time.advance(2 * CHECK_MS)
    assert codes(begin_fetch(broker, "t", 1).response) == {("t", 0): ErrorCode.OFFSET_OUT_OF_RANGE}


def test_settings_altered_while_running_count_at_the_next_look(broker: VirtualBroker) -> None:
    create(broker, "t", retention_ms="-1")
    produce(broker, "t", b"x")
    broker.time.advance(10 * HOUR_MS)
    assert values_in(broker, "t") == [b"x"]
    alter(broker, "t", "retention.ms", str(HOUR_MS))
    broker.time.advance(CHECK_MS)
    assert values_in(broker, "t") == []


def test_logs_that_nobody_used_since_the_start_are_looked_at_too(broker: VirtualBroker) -> None:
    create(broker, "t", retention_ms=str(HOUR_MS))
    produce(broker, "t", b"x")
    broker.stop()
    broker.start()
    broker.time.advance(HOUR_MS + CHECK_MS)
    assert partition_of(broker, "t").log.log_start == 1


def test_many_logs_are_looked_at_over_many_turns_and_none_is_left_out(broker: VirtualBroker) -> None:
    count = 3 * LOGS_PER_TURN
    create(broker, "t", count, retention_ms="1000")
    for index in range(count):
        produce(broker, "t", b"x", index=index, acks=WRITTEN)
    broker.time.advance(2 * CHECK_MS)
    assert {partition_of(broker, "t", index).log.log_start for index in range(count)} == {1}


def test_a_topic_deleted_between_two_turns_does_not_come_back(broker: VirtualBroker) -> None:
    create(broker, "a", 2 * LOGS_PER_TURN)
    create(broker, "b", LOGS_PER_TURN)
    broker.broker._housekeeping.sweep_logs()
    delete(broker, "b")
    broker.time.settle()
    assert {log.topic_partition.topic for log in broker.broker.store.logs()} == {"a"}


def test_a_log_whose_retention_fails_does_not_hold_up_the_others_and_is_tried_again() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.ENOSPC, 10**9, path_contains="/marks"))
    broker = VirtualBroker({"log.retention.check.interval.ms": str(CHECK_MS)}, disk=disk)
    for topic in ("a", "b"):
        create(broker, topic, retention_ms="1000")
        produce(broker, topic, b"x")
    disk.met, disk.fault.nth = 0, 1
    broker.time.advance(CHECK_MS)
    assert disk.struck
    assert sorted(len(values_in(broker, topic)) for topic in ("a", "b")) == [0, 1]
    broker.time.advance(CHECK_MS)
    assert values_in(broker, "a") == values_in(broker, "b") == []


def test_nothing_runs_after_the_stop(broker: VirtualBroker) -> None:
    create(broker, "t", retention_ms="1000")
    produce(broker, "t", b"x")
    time = broker.time
    broker.stop()
    assert time.timers == 0


# -- rolling


def test_a_segment_is_sealed_when_it_is_old_and_the_next_record_begins_another(broker: VirtualBroker) -> None:
    create(broker, "t", segment_ms=str(HOUR_MS), retention_ms="-1")
    produce(broker, "t", b"x")
    broker.time.advance(HOUR_MS + CHECK_MS)
    assert partition_of(broker, "t").log.segments[-1].is_sealed
    produce(broker, "t", b"y")
    assert bases(broker, "t") == [0, 1]


def test_a_young_segment_goes_on(broker: VirtualBroker) -> None:
    create(broker, "t", segment_ms=str(10 * HOUR_MS), retention_ms="-1")
    for _ in range(5):
        produce(broker, "t", b"x")
        broker.time.advance(HOUR_MS)
    assert bases(broker, "t") == [0]


# -- ceilings


def test_ceilings_rise_off_the_loop_and_no_append_waits_for_them(broker: VirtualBroker) -> None:
    create(broker, "t")
    log = partition_of(broker, "t").log
    first = log._ceiling
    values = [b""] * 5000
    broker.offload.held = True
    while log.log_end < first - 10_000:
        assert produce(broker, "t", *values, acks=WRITTEN).error_code == 0
    assert broker.offload.waiting == 1
    assert log._ceiling == first
    broker.offload.release()
    broker.time.settle()
    assert log._ceiling > first


def test_an_append_beyond_a_ceiling_that_could_not_rise_waits_for_it_and_no_offset_is_used_twice() -> None:
    broker = VirtualBroker()
    create(broker, "t")
    log = partition_of(broker, "t").log
    values = [b""] * 5000
    broker.offload.held = True
    while log.log_end < 100_000:
        assert produce(broker, "t", *values, acks=WRITTEN).error_code == 0
    seen = log.log_end
    after = broker.sim_disk.after(max(broker.sim_disk.crash_states(subsets=0), key=lambda state: len(state.lost)))
    assert produce(VirtualBroker(disk=after), "t", b"next").base_offset >= seen
