"""ListOffsets through the router: the ends, times, the old form, and what cannot be answered."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.fuzz.hostile_batches import NOW_MS, bomb, crumbs, garbage_body
from tests.sim.batches import encode
from tests.unit.broker.talk import PRODUCE_BY_NAME, WRITTEN, create, partition_of, produce, produce_request

from lowwater.errors import ErrorCode
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import ListOffsetsRequest
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NEWEST = 11


@pytest.fixture
def broker() -> VirtualBroker:
    made = VirtualBroker()
    create(made, "t", 2)
    return made


def append(broker: VirtualBroker, *times: int, topic: str = "t") -> None:
    """One batch with a record per time."""
    records = bytes(encode([(time, b"k", b"v" * 50) for time in times]))
    answer = broker.ask(produce_request({(topic, 0): records}, acks=WRITTEN), PRODUCE_BY_NAME)
    assert answer.responses[0].partition_responses[0].error_code == 0


def ask(broker: VirtualBroker, timestamp: int, version: int = NEWEST, *, topic: str = "t", **fields: Any) -> Any:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp, **fields)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    return broker.ask(request, version).topics[0].partitions[0]


def found(broker: VirtualBroker, timestamp: int, **fields: Any) -> tuple[int, int]:
    answer = ask(broker, timestamp, **fields)
    assert answer.error_code == 0, answer
    return answer.offset, answer.timestamp


def delete_before(broker: VirtualBroker, offset: int, topic: str = "t") -> None:
    wanted = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    broker.ask(DeleteRecordsRequest(topics=[wanted], timeout_ms=1000))


# -- the ends and special times


def test_an_empty_partition_begins_and_ends_at_its_log_start(broker: VirtualBroker) -> None:
    assert found(broker, LATEST) == found(broker, EARLIEST) == (0, -1)
    assert found(broker, MAX_TIMESTAMP) == found(broker, 0) == (-1, -1)


def test_the_ends(broker: VirtualBroker) -> None:
    append(broker, 10, 20, 30)
    assert found(broker, LATEST) == (3, -1)
    assert found(broker, EARLIEST) == (0, -1)
    delete_before(broker, 2)
    assert found(broker, EARLIEST) == found(broker, EARLIEST_LOCAL) == (2, -1)
    assert found(broker, LATEST) == (3, -1)


def test_nothing_is_tiered(broker: VirtualBroker) -> None:
    append(broker, 10)
    assert found(broker, LATEST_TIERED) == found(broker, PENDING_UPLOAD) == (-1, -1)


@pytest.mark.parametrize(
    ("timestamp", "since"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)]
)
def test_a_special_time_is_refused_before_its_version(broker: VirtualBroker, timestamp: int, since: int) -> None:
    assert ask(broker, timestamp, since - 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ask(broker, timestamp, since).error_code == 0


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_an_answer_can_be_said_in_every_version(broker: VirtualBroker, version: int) -> None:
    append(broker, 10, 20)
    answer = ask(broker, 15, version)
    assert (answer.error_code, answer.offset, answer.timestamp) == (0, 1, 20)


# -- by time


def test_the_lowest_offset_at_or_after_a_time_also_when_times_are_out_of_order(broker: VirtualBroker) -> None:
    append(broker, 50, 10)
    append(broker, 5)
    append(broker, 60)
    append(broker, 45)
    assert [found(broker, time) for time in (0, 50, 51, 60)] == [(0, 50), (0, 50), (3, 60), (3, 60)]
    assert found(broker, 61) == (-1, -1)


def test_deleted_records_are_not_found(broker: VirtualBroker) -> None:
    append(broker, 90, 10)
    append(broker, 20, 30)
    delete_before(broker, 1)
    assert found(broker, 0) == (1, 10)
    assert found(broker, 80) == (-1, -1)


def test_the_maximum_is_the_first_record_that_has_it(broker: VirtualBroker) -> None:
    append(broker, 10, 70)
    append(broker, 70, 20)
    assert found(broker, MAX_TIMESTAMP) == (1, 70)
    delete_before(broker, 2)
    assert found(broker, MAX_TIMESTAMP) == (2, 70)
    delete_before(broker, 3)
    assert found(broker, MAX_TIMESTAMP) == (3, 20)
    delete_before(broker, 4)
    assert found(broker, MAX_TIMESTAMP) == (-1, -1)


def test_the_leader_epoch_of_a_record_is_that_of_its_time(broker: VirtualBroker) -> None:
    append(broker, 10)
    broker.stop()
    broker.start()
    append(broker, 20)
    assert [ask(broker, time).leader_epoch for time in (10, 20)] == [0, 1]


# -- the old form


def old_form(broker: VirtualBroker, timestamp: int, count: int, topic: str = "t") -> list[int]:
    answer = ask(broker, timestamp, 0, topic=topic, max_num_offsets=count)
    assert answer.error_code == 0
    return list(answer.old_style_offsets)


def two_segments(broker: VirtualBroker) -> tuple[int, int]:
    """Segments at 0 and 7, log end 8; the times between which each was last modified."""
    create(broker, "old", segment_bytes="500")
    for _ in range(7):
        produce(broker, "old", b"")
    first = broker.clock.now_ms()
    broker.time.advance(1000)
    produce(broker, "old", b"x" * 200)
    assert [one.base_offset for one in partition_of(broker, "old").log.segments] == [0, 7]
    second = broker.clock.now_ms()
    broker.time.advance(1000)
    return first, second


@pytest.mark.parametrize(
    ("count", "latest", "earliest", "at_first", "at_second"),
    [(1, [8], [0], [0], [7]), (2, [8, 7], [0], [0], [7, 0])],
)
def test_the_old_form_names_segments(
    broker: VirtualBroker, count: int, latest: list[int], earliest: list[int], at_first: list[int], at_second: list[int]
) -> None:
    first, second = two_segments(broker)
    assert old_form(broker, LATEST, count, "old") == latest
    assert old_form(broker, EARLIEST, count, "old") == earliest
    assert old_form(broker, first, count, "old") == at_first
    assert old_form(broker, second, count, "old") == at_second
    assert old_form(broker, first - 1, count, "old") == []


def test_the_old_form_begins_at_the_log_start(broker: VirtualBroker) -> None:
    size = len(encode([(0, b"k", b"v")]))
    create(broker, "old", segment_bytes=str(2 * size))
    for _ in range(20):
        produce(broker, "old", b"v")
    delete_before(broker, 3, "old")
    assert old_form(broker, LATEST, 15, "old") == [20, 18, 16, 14, 12, 10, 8, 6, 4, 3]


def test_the_old_form_of_an_empty_partition(broker: VirtualBroker) -> None:
    assert old_form(broker, LATEST, 5) == [0]
    assert old_form(broker, LATEST, 0) == []


# -- what cannot be answered


def test_a_partition_asked_twice_is_refused(broker: VirtualBroker) -> None:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 0, 1)]
    answer = broker.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=wanted)]), NEWEST)
    codes = {one.partition_index: one.error_code for one in answer.topics[0].partitions}
    assert codes == {0: ErrorCode.INVALID_REQUEST, 1: 0}


def test_partitions_that_are_not_there(broker: VirtualBroker) -> None:
    assert ask(broker, LATEST, topic="missing").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wanted = ListOffsetsPartition(partition_index=9, timestamp=LATEST)
    answer = broker.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])]), NEWEST)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_leader_epoch_is_checked(broker: VirtualBroker) -> None:
    assert ask(broker, LATEST, current_leader_epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    broker.stop()
    broker.start()
    assert ask(broker, LATEST, current_leader_epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(broker, LATEST, current_leader_epoch=1).error_code == 0


def test_a_log_that_cannot_be_read_says_so_at_its_partition() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.READ, 10**9, lasting=True, path_contains="/topics/"))
    broker = VirtualBroker(disk=disk)
    create(broker, "t")
    append(broker, 10, 20)
    broker.stop()
    broker.start()
    disk.met, disk.fault.nth = 0, 1
    assert ask(broker, 15).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("build", [crumbs, bomb, garbage_body])
def test_a_batch_of_which_no_record_can_be_told_is_answered_as_a_whole(
    broker: VirtualBroker, build: Any, seed: int
) -> None:
    """Its producer lied with a right CRC; whoever looks up that time is led to its start, not to an error."""
    append(broker, NOW_MS - 10)
    records = build(random.Random(seed))
    answer = broker.ask(produce_request({("t", 0): records}, acks=WRITTEN), PRODUCE_BY_NAME)
    assert answer.responses[0].partition_responses[0].error_code == 0
    append(broker, NOW_MS + 2000)
    assert found(broker, NOW_MS + 500) == (1, NOW_MS + 1000)
    assert found(broker, NOW_MS - 10) == (0, NOW_MS - 10)
    assert found(broker, NOW_MS + 2000)[1] == NOW_MS + 2000
