"""Produce through the router: what each kind of acks waits for, and what goes wrong at which scope."""

from __future__ import annotations

import pytest
from tests.sim.batches import encode
from tests.unit.broker.talk import (
    ALL,
    NO_REPLY,
    PRODUCE_BY_NAME,
    WRITTEN,
    batch,
    begin_fetch,
    create,
    fetched,
    partition_of,
    placed,
    produce,
    produce_request,
    send,
    values_in,
)

from lowwater.errors import ErrorCode, WireError
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import DeleteTopicsRequest, ProduceRequest
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData

HOUR_MS = 3_600_000


@pytest.fixture
def broker() -> VirtualBroker:
    made = VirtualBroker()
    create(made, "t", 3)
    return made


# -- acks


def test_acks_1_is_answered_when_the_record_is_written(broker: VirtualBroker) -> None:
    broker.offload.held = True
    sent = send(broker, "t", b"a", b"b", acks=WRITTEN)
    assert sent.is_answered
    answer = placed(sent)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (0, 0, 0)
    assert placed(send(broker, "t", b"c", acks=WRITTEN)).base_offset == 2


def test_acks_all_is_answered_only_after_the_fsync(broker: VirtualBroker) -> None:
    broker.offload.held = True
    sent = send(broker, "t", b"a")
    broker.time.settle()
    assert not sent.is_answered
    assert values_in(broker, "t") == [b"a"]
    broker.offload.step()
    broker.time.settle()
    assert placed(sent).base_offset == 0


def test_an_acked_record_survives_a_power_cut_and_an_unacked_one_may_not(broker: VirtualBroker) -> None:
    produce(broker, "t", b"durable", acks=ALL)
    produce(broker, "t", b"written", acks=WRITTEN)
    after = broker.sim_disk.after(max(broker.sim_disk.crash_states(subsets=0), key=lambda state: len(state.lost)))
    assert values_in(VirtualBroker(disk=after), "t") == [b"durable"]
    killed = broker.sim_disk.after(CrashState(broker.sim_disk.operations, power_cut=False))
    assert values_in(VirtualBroker(disk=killed), "t") == [b"durable", b"written"]


def test_acks_0_has_no_answer_but_its_record_is_written(broker: VirtualBroker) -> None:
    sent = send(broker, "t", b"a", acks=NO_REPLY)
    assert sent.is_answered
    assert sent.response is None
    assert values_in(broker, "t") == [b"a"]


def test_a_failing_produce_with_acks_0_ends_the_connection(broker: VirtualBroker) -> None:
    with pytest.raises(WireError, match="acks=0"):
        send(broker, "missing", b"a", acks=NO_REPLY)


@pytest.mark.parametrize("acks", [-2, 2, 7, 32767])
def test_other_acks_are_refused_and_nothing_is_written(broker: VirtualBroker, acks: int) -> None:
    answer = produce(broker, "t", b"a", acks=acks)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert values_in(broker, "t") == []


@pytest.mark.parametrize(
    ("policy", "acks", "waits"),
    [
        ("acks", ALL, True),
        ("acks", WRITTEN, False),
        ("always", ALL, True),
        ("always", WRITTEN, True),
        ("never", ALL, False),
        ("never", WRITTEN, False),
    ],
)
def test_the_flush_policy_decides_who_waits(policy: str, acks: int, waits: bool) -> None:
    broker = VirtualBroker({"log.flush.policy": policy})
    create(broker, "t")
    broker.offload.held = True
    sent = send(broker, "t", b"a", acks=acks)
    broker.time.settle()
    assert sent.is_answered is not waits
    broker.offload.release()
    broker.time.settle()
    assert placed(sent).error_code == 0


# -- sharing fsyncs


def test_requests_of_one_turn_share_one_fsync(broker: VirtualBroker) -> None:
    sent = [send(broker, "t", b"%d" % number) for number in range(50)]
    broker.time.settle()
    assert all(placed(one).error_code == 0 for one in sent)
    assert broker.broker.commits.rounds == 1


def test_requests_that_come_during_an_fsync_share_the_next(broker: VirtualBroker) -> None:
    broker.offload.held = True
    first = send(broker, "t", b"first")
    broker.time.settle()
    later = [send(broker, "t", b"%d" % number) for number in range(50)]
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    assert first.is_answered
    assert not any(one.is_answered for one in later)
    broker.offload.step(1)
    broker.time.settle()
    assert all(one.is_answered for one in later)
    assert broker.broker.commits.rounds == 2


def test_a_request_over_several_partitions_waits_for_all_of_them(broker: VirtualBroker) -> None:
    broker.offload.held = True
    request = produce_request({("t", index): batch(broker, b"x") for index in range(3)})
    sent = broker.send(request, PRODUCE_BY_NAME)
    broker.time.settle()
    while broker.offload.waiting > 1:
        broker.offload.step(1)
        broker.time.settle()
    assert not sent.is_answered
    broker.offload.release()
    broker.time.settle()
    assert [one.error_code for one in sent.response.responses[0].partition_responses] == [0, 0, 0]


# -- each partition by itself


def test_partitions_are_refused_each_by_itself(broker: VirtualBroker) -> None:
    good, broken = batch(broker, b"x"), bytearray(batch(broker, b"y"))
    broken[-1] ^= 1
    request = produce_request(
        {
            ("t", 0): good,
            ("t", 1): bytes(broken),
            ("t", 2): None,
            ("t", 3): batch(broker, b"x"),
            ("u", 0): batch(broker, b"x"),
        }
    )
    answer = broker.ask(request, PRODUCE_BY_NAME)
    assert {
        (topic.name, one.index): (one.error_code, one.base_offset)
        for topic in answer.responses
        for one in topic.partition_responses
    } == {
        ("t", 0): (0, 0),
        ("t", 1): (ErrorCode.CORRUPT_MESSAGE, -1),
        ("t", 2): (ErrorCode.INVALID_RECORD, -1),
        ("t", 3): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("u", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }
    assert values_in(broker, "t", 1) == []


def by_id(topic_id: bytes, records: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=memoryview(records))
    topics = [TopicProduceData(topic_id=topic_id, partition_data=[data])]
    return ProduceRequest(acks=ALL, timeout_ms=1000, topic_data=topics)


def test_topics_go_by_id_from_version_13_on(broker: VirtualBroker) -> None:
    topic_id = create(broker, "named")
    known = broker.ask(by_id(topic_id, batch(broker, b"x")), 13).responses[0]
    assert (known.topic_id, known.partition_responses[0].error_code) == (topic_id, 0)
    unknown = broker.ask(by_id(b"\7" * 16, batch(broker, b"x")), 13).responses[0]
    assert (unknown.topic_id, unknown.partition_responses[0].error_code) == (b"\7" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


def test_an_answer_can_be_said_in_every_version(broker: VirtualBroker) -> None:
    for version in range(3, 13):
        answer = broker.ask(produce_request({("t", 0): batch(broker, b"x")}), version)
        assert answer.responses[0].partition_responses[0].base_offset == version - 3
        refused = broker.ask(produce_request({("t", 9): batch(broker, b"x")}), version)
        assert refused.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_time_of_arrival_is_told_where_it_counts(broker: VirtualBroker) -> None:
    create(broker, "stamped", message_timestamp_type="LogAppendTime")
    broker.time.advance(12_345)
    assert produce(broker, "stamped", b"x").log_append_time_ms == broker.clock.now_ms()
    assert produce(broker, "t", b"x").log_append_time_ms == -1


def test_records_stamped_too_far_ahead_are_refused(broker: VirtualBroker) -> None:
    ahead = encode([(broker.clock.now_ms() + HOUR_MS + 1, None, b"x")])
    answer = broker.ask(produce_request({("t", 0): bytes(ahead)}), PRODUCE_BY_NAME)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TIMESTAMP


# -- idempotent producers


def test_a_repeated_batch_gets_its_first_answer_and_wakes_nobody(broker: VirtualBroker) -> None:
    assert produce(broker, "t", b"a", producer=(5, 0, 0)).base_offset == 0
    assert produce(broker, "t", b"b", producer=(5, 0, 1)).base_offset == 1
    parked = begin_fetch(broker, "t", 2, wait_ms=1000)
    assert produce(broker, "t", b"a", producer=(5, 0, 0)).base_offset == 0
    assert not parked.is_answered
    assert values_in(broker, "t") == [b"a", b"b"]


def test_a_repeated_batch_waits_for_the_fsync_of_the_first(broker: VirtualBroker) -> None:
    broker.offload.held = True
    first = send(broker, "t", b"a", producer=(5, 0, 0))
    broker.time.settle()
    again = send(broker, "t", b"a", producer=(5, 0, 0))
    broker.time.settle()
    assert not again.is_answered
    broker.offload.release()
    broker.time.settle()
    assert placed(first).base_offset == placed(again).base_offset == 0


# -- when the disk fails


def faulty(kind: FaultKind, **fields: object) -> tuple[VirtualBroker, FaultyDisk]:
    """A broker with a topic, on a disk that breaks at the first operation on a record file."""
    disk = FaultyDisk(SimDisk(), Fault(kind, 10**9, path_contains="/topics/", **fields))  # type: ignore[arg-type]
    broker = VirtualBroker(disk=disk)
    create(broker, "t", 2)
    produce(broker, "t", b"before")
    produce(broker, "t", b"other", index=1)
    return broker, disk


def break_next(disk: FaultyDisk) -> None:
    disk.met, disk.fault.nth = 0, 1


def test_a_failing_fsync_answers_storage_error_and_takes_the_log_offline() -> None:
    broker, disk = faulty(FaultKind.SYNC)
    break_next(disk)
    assert produce(broker, "t", b"lost").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition_of(broker, "t").log.offline is not None
    assert produce(broker, "t", b"later", acks=WRITTEN).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(broker, "t", b"fine", index=1).error_code == 0


def test_a_failed_fsync_is_never_tried_again_until_a_restart() -> None:
    broker, disk = faulty(FaultKind.SYNC)
    break_next(disk)
    produce(broker, "t", b"lost")
    disk.heal()
    assert produce(broker, "t", b"later").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    broker.stop()
    broker.start()
    assert produce(broker, "t", b"after").error_code == 0


def test_everyone_who_waits_for_a_failing_fsync_is_told() -> None:
    broker, disk = faulty(FaultKind.SYNC)
    broker.offload.held = True
    sent = [send(broker, "t", b"%d" % number) for number in range(10)]
    broker.time.settle()
    late = send(broker, "t", b"late")
    break_next(disk)
    broker.offload.release()
    broker.time.settle()
    assert {placed(one).error_code for one in (*sent, late)} == {ErrorCode.KAFKA_STORAGE_ERROR}


@pytest.mark.parametrize("kind", [FaultKind.ENOSPC, FaultKind.SHORT_WRITE])
def test_a_full_disk_refuses_for_now_and_service_resumes_when_there_is_room(kind: FaultKind) -> None:
    broker, disk = faulty(kind, lasting=True)
    break_next(disk)
    for acks in (ALL, WRITTEN):
        answer = produce(broker, "t", b"no room", acks=acks)
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert ErrorCode(answer.error_code).retriable
    assert partition_of(broker, "t").log.offline is None
    assert values_in(broker, "t") == [b"before"]
    disk.heal()
    assert produce(broker, "t", b"room again").base_offset == 1
    assert values_in(broker, "t") == [b"before", b"room again"]


def test_an_input_output_error_takes_the_log_offline() -> None:
    broker, disk = faulty(FaultKind.EIO)
    break_next(disk)
    assert produce(broker, "t", b"lost", acks=WRITTEN).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition_of(broker, "t").log.offline is not None
    assert produce(broker, "t", b"fine", index=1).error_code == 0


# -- deletion


def test_a_produce_whose_topic_is_deleted_before_its_fsync_is_answered_and_holds_up_nobody(
    broker: VirtualBroker,
) -> None:
    create(broker, "doomed")
    broker.offload.held = True
    sent = send(broker, "doomed", b"x")
    other = send(broker, "t", b"x")
    broker.time.settle()
    deletion = broker.send(DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=1000), 5)
    broker.offload.do(2)  # the deletion is durable before the fsyncs are
    broker.time.settle()
    assert deletion.is_answered
    broker.offload.release()
    broker.time.settle()
    assert placed(sent).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert placed(other).error_code == 0
    assert produce(broker, "t", b"y").error_code == 0


# -- ceilings


def test_offset_ceilings_rise_ahead_of_use_without_anyone_waiting(broker: VirtualBroker) -> None:
    log = partition_of(broker, "t").log
    before = log._ceiling
    values = [b""] * 5000
    for _ in range(30):
        assert produce(broker, "t", *values).error_code == 0
    assert log.log_end == 150_000
    assert log._ceiling > max(before, log.log_end)


def test_a_full_disk_while_ceilings_rise_does_not_fail_the_produce() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.ENOSPC, 10**9, lasting=True, path_contains="/marks"))
    broker = VirtualBroker(disk=disk)
    create(broker, "t")
    disk.met, disk.fault.nth = 0, 1
    values = [b""] * 5000
    while partition_of(broker, "t").log.log_end < 60_000:
        answer = produce(broker, "t", *values, acks=WRITTEN)
        assert answer.error_code == 0
    assert disk.struck
    disk.heal()
    while partition_of(broker, "t").log.log_end < 120_000:
        assert produce(broker, "t", *values, acks=WRITTEN).error_code == 0


def test_a_produce_wakes_a_parked_fetch_once(broker: VirtualBroker) -> None:
    parked = begin_fetch(broker, "t", wait_ms=10_000)
    produce(broker, "t", b"a")
    assert fetched(parked.response) == {("t", 0): [b"a"]}
    produce(broker, "t", b"b")
    assert not partition_of(broker, "t").waiting_fetches
