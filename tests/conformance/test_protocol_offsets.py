"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords at the level of requests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.asking import batch_of, eventually, look_up, metadata, now_ms, produce
from tests.conformance.conftest import NewTopic, create_topic
from tests.conformance.raw import Wire

from lowwater.errors import ErrorCode
from lowwater.wire.messages import DeleteRecordsRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from lowwater.wire.messages.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from lowwater.wire.records import Record, build_batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
T = 1_700_000_000_000
READ_COMMITTED = 1


def stamped(*stamps: int, codec: int = 0) -> bytearray:
    records = [Record(offset, stamp, b"k", b"v", ()) for offset, stamp in enumerate(stamps)]
    return build_batch(records, codec=codec)


def found(answer: Any) -> tuple[int, int, int, int]:
    return answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch


def delete_before(wire: Wire, topic: str, offset: int, *, partition: int = 0, version: int = 2) -> tuple[int, int]:
    wanted = DeleteRecordsTopic(
        name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)]
    )
    answer = wire.ask(DeleteRecordsRequest(topics=[wanted], timeout_ms=10_000), version).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


@pytest.fixture
def filled(wire: Wire, new_topic: NewTopic) -> str:
    """Timestamps T+100, T+300 | T+200, T+500 | T+400."""
    topic = new_topic()
    for stamps in ((T + 100, T + 300), (T + 200, T + 500), (T + 400,)):
        assert produce(wire, topic, stamped(*stamps)).error_code == 0
    return topic


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_finds_both_ends_and_a_time(wire: Wire, version: int, filled: str) -> None:
    epoch = 0 if version >= 4 else -1
    assert found(look_up(wire, filled, EARLIEST, version=version)) == (0, 0, -1, epoch)
    assert found(look_up(wire, filled, LATEST, version=version)) == (0, 5, -1, epoch)
    assert found(look_up(wire, filled, T + 150, version=version)) == (0, 1, T + 300, epoch)
    assert found(look_up(wire, filled, T + 501, version=version)) == (0, -1, -1, -1)


@pytest.mark.parametrize("isolation", [0, READ_COMMITTED])
def test_look_ups_by_time_find_the_lowest_offset_at_or_after_it(wire: Wire, isolation: int, filled: str) -> None:
    expected = {0: 0, T + 100: 0, T + 101: 1, T + 300: 1, T + 301: 3, T + 500: 3, T + 501: -1, 2**62: -1}
    answers = {when: look_up(wire, filled, when, isolation_level=isolation).offset for when in expected}
    assert answers == expected


def test_the_maximum_timestamp_has_its_own_offset(wire: Wire, filled: str) -> None:
    assert found(look_up(wire, filled, MAX_TIMESTAMP)) == (0, 3, T + 500, 0)
    produce(wire, filled, stamped(T + 500))
    assert found(look_up(wire, filled, MAX_TIMESTAMP)) == (0, 3, T + 500, 0)
    produce(wire, filled, stamped(T + 450, T + 600))
    assert found(look_up(wire, filled, MAX_TIMESTAMP)) == (0, 7, T + 600, 0)


def test_the_local_start_is_the_start(wire: Wire, filled: str) -> None:
    assert found(look_up(wire, filled, EARLIEST_LOCAL)) == (0, 0, -1, 0)


def test_nothing_is_tiered(wire: Wire, filled: str) -> None:
    assert found(look_up(wire, filled, LATEST_TIERED)) == (0, -1, -1, -1)
    assert found(look_up(wire, filled, EARLIEST_PENDING_UPLOAD)) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("when", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (EARLIEST_PENDING_UPLOAD, 10), (-7, 11), (-100, 11)],
)
def test_a_special_time_unknown_to_the_version_is_refused(wire: Wire, when: int, version: int, filled: str) -> None:
    answer = look_up(wire, filled, when, version=version)
    assert found(answer) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)


def test_a_special_time_is_judged_before_the_partition_and_its_epoch(wire: Wire, fresh_name: str, filled: str) -> None:
    assert look_up(wire, fresh_name, -7).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert look_up(wire, filled, -7, leader_epoch=5).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_partition_has_both_ends_at_its_start(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert found(look_up(wire, topic, EARLIEST)) == (0, 0, -1, 0)
    assert found(look_up(wire, topic, LATEST)) == (0, 0, -1, 0)
    assert found(look_up(wire, topic, MAX_TIMESTAMP)) == (0, -1, -1, -1)
    assert found(look_up(wire, topic, 0)) == (0, -1, -1, -1)


def test_an_unknown_topic_or_partition_is_refused(wire: Wire, fresh_name: str, filled: str) -> None:
    expected = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    assert found(look_up(wire, fresh_name, LATEST)) == expected
    assert found(look_up(wire, filled, LATEST, partition=3)) == expected


@pytest.mark.parametrize("when", [LATEST, EARLIEST, T])
def test_a_newer_leader_epoch_is_unknown(wire: Wire, when: int, filled: str) -> None:
    answer = look_up(wire, filled, when, leader_epoch=5)
    assert found(answer) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1, -1)
    assert look_up(wire, filled, when, leader_epoch=0).error_code == 0
    assert look_up(wire, filled, when, leader_epoch=-2).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_partition_asked_twice_is_refused_for_that_partition_alone(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    wishes = [ListOffsetsPartition(partition_index=each, timestamp=LATEST) for each in (0, 1, 0)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=wishes)])
    answers = wire.ask(request, 7).topics[0].partitions
    assert sorted((each.partition_index, each.error_code) for each in answers) == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, 0),
    ]


def test_look_ups_stay_above_the_log_start(wire: Wire, filled: str) -> None:
    assert delete_before(wire, filled, 2) == (0, 2)
    assert found(look_up(wire, filled, EARLIEST)) == (0, 2, -1, 0)
    assert found(look_up(wire, filled, 0)) == (0, 2, T + 200, 0)
    assert found(look_up(wire, filled, T + 300)) == (0, 3, T + 500, 0)
    assert found(look_up(wire, filled, MAX_TIMESTAMP)) == (0, 3, T + 500, 0)


@pytest.mark.parametrize("codec", range(5))
def test_times_within_a_compressed_batch_are_found(wire: Wire, codec: int, new_topic: NewTopic) -> None:
    topic = new_topic()
    produce(wire, topic, stamped(T + 3, T + 1, T + 2, T + 9, T + 4, codec=codec))
    answers = [look_up(wire, topic, T + each).offset for each in range(11)]
    assert answers == [0, 0, 0, 0, 3, 3, 3, 3, 3, 3, -1]
    assert found(look_up(wire, topic, MAX_TIMESTAMP)) == (0, 3, T + 9, 0)


def test_with_log_append_time_the_maximum_is_the_last_batch(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    before_ms = now_ms()
    produce(wire, topic, stamped(T + 500, T + 1))
    answer = look_up(wire, topic, MAX_TIMESTAMP)
    assert (answer.error_code, answer.offset) == (0, 0)
    assert before_ms <= answer.timestamp <= now_ms()
    assert look_up(wire, topic, T + 500).offset == 0


# ---- version 0, which Apache Kafka no longer serves: docs/differences.md


def old_style(wire: Wire, topic: str, when: int, count: int) -> list[int]:
    wish = ListOffsetsPartition(partition_index=0, timestamp=when, max_num_offsets=count)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wish])])
    return list(wire.ask(request, 0).topics[0].partitions[0].old_style_offsets)


@pytest.mark.only_against("lowwater")
def test_version_0_answers_segment_bases_and_the_log_end(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(**{"segment.bytes": str(2 * len(batch_of(b"v")))})
    for _ in range(20):
        assert produce(wire, topic, batch_of(b"v")).error_code == 0
    assert delete_before(wire, topic, 3) == (0, 3)
    assert old_style(wire, topic, LATEST, 15) == [20, 18, 16, 14, 12, 10, 8, 6, 4, 3]
    assert old_style(wire, topic, LATEST, 1) == [20]
    assert old_style(wire, topic, EARLIEST, 15) == [3]
    assert old_style(wire, topic, 0, 15) == []


# ---- DeleteRecords


@pytest.mark.parametrize("version", range(3))
def test_deleting_records_moves_the_log_start(wire: Wire, version: int, filled: str) -> None:
    assert delete_before(wire, filled, 3, version=version) == (0, 3)
    assert look_up(wire, filled, EARLIEST).offset == 3
    assert delete_before(wire, filled, 1, version=version) == (0, 3)
    assert delete_before(wire, filled, -1, version=version) == (0, 5)
    assert look_up(wire, filled, LATEST).offset == 5


@pytest.mark.parametrize("offset", [6, 1000, -2])
def test_deleting_beyond_the_end_is_out_of_range(wire: Wire, offset: int, filled: str) -> None:
    assert delete_before(wire, filled, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert look_up(wire, filled, EARLIEST).offset == 0


def test_records_of_an_unknown_partition_cannot_be_deleted(wire: Wire, fresh_name: str, filled: str) -> None:
    expected = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete_before(wire, fresh_name, 0) == expected
    assert delete_before(wire, filled, 0, partition=4) == expected


def test_records_of_a_compacted_topic_cannot_be_deleted(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(**{"cleanup.policy": "compact"})
    produce(wire, topic, batch_of(b"v"))
    assert delete_before(wire, topic, 1) == (ErrorCode.POLICY_VIOLATION, -1)
    both = new_topic(**{"cleanup.policy": "compact,delete"})
    produce(wire, both, batch_of(b"v"))
    assert delete_before(wire, both, 1) == (0, 1)


# ---- OffsetForLeaderEpoch


def end_of_epoch(
    wire: Wire, topic: str, epoch: int, *, partition: int = 0, current: int = -1, version: int = 4
) -> tuple[int, int, int]:
    wish = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wish])])
    answer = wire.ask(request, version).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_present_epoch_ends_at_the_log_end(wire: Wire, version: int, filled: str) -> None:
    assert end_of_epoch(wire, filled, 0, version=version) == (0, 0, 5)
    assert end_of_epoch(wire, filled, 0, current=0, version=version) == (0, 0, 5)


def test_an_epoch_that_never_was_has_no_end(wire: Wire, filled: str, new_topic: NewTopic) -> None:
    assert end_of_epoch(wire, filled, 7) == (0, -1, -1)
    assert end_of_epoch(wire, new_topic(), 0) == (0, 0, 0)
    assert end_of_epoch(wire, filled, -1) == (0, -1, -1)


def test_epoch_questions_are_fenced_and_need_a_known_partition(wire: Wire, filled: str, fresh_name: str) -> None:
    assert end_of_epoch(wire, filled, 0, current=3) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert end_of_epoch(wire, filled, 0, partition=8) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert end_of_epoch(wire, fresh_name, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_after_a_restart_the_old_epoch_is_fenced_and_its_end_known(own_broker: Any) -> None:
    broker = own_broker()
    create_topic(broker.address, "epochs")
    with Wire(broker.address) as wire:
        produce(wire, "epochs", batch_of(b"1", b"2"))
        old = look_up(wire, "epochs", LATEST).leader_epoch
    broker.restart()
    with Wire(broker.address) as wire:
        new = epoch_after(wire, "epochs", old)
        assert look_up(wire, "epochs", LATEST, leader_epoch=old).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert look_up(wire, "epochs", LATEST, leader_epoch=new).error_code == 0
        assert look_up(wire, "epochs", LATEST, leader_epoch=new + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        produce(wire, "epochs", batch_of(b"3"))
        assert end_of_epoch(wire, "epochs", old) == (0, old, 2)
        assert end_of_epoch(wire, "epochs", new) == (0, new, 3)
        # The record before the restart was written in the old epoch, the one after it in the new.
        assert look_up(wire, "epochs", 0).leader_epoch == old
        assert look_up(wire, "epochs", LATEST).leader_epoch == new


def epoch_after(wire: Wire, topic: str, old: int) -> int:
    """The leader epoch once the restarted broker leads again."""

    def present() -> Any:
        return metadata(wire, topic).topics[0].partitions[0]

    eventually(lambda: present().leader_epoch > old and look_up(wire, topic, LATEST).error_code == 0)
    return int(present().leader_epoch)
