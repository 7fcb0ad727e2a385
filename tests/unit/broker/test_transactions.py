"""Transactions through the broker: whole or not at all, decided before they are told, and resumed after any crash."""

from __future__ import annotations

import pytest
from tests.unit.broker.group_talk import begin_fetch, commit, fetch, fetched
from tests.unit.broker.talk import create, delete, partition_of, placed, values_in
from tests.unit.broker.txn_talk import (
    OK,
    TxnProducer,
    added,
    committed_values,
    describe,
    last_stable,
    markers,
    states,
)

from lowwater.errors import ErrorCode
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import DeleteTopicsRequest

STATE_TOPIC = "__transaction_state"
BOTH = pytest.mark.parametrize("moves_on", [True, False], ids=["new", "old"])
SCAN_MS = 10_000
NEVER_STRIKES = 1 << 40


@pytest.fixture
def broker() -> VirtualBroker:
    started = VirtualBroker({})
    create(started, "t", 3)
    create(started, "u")
    return started


@pytest.fixture
def producer(broker: VirtualBroker) -> TxnProducer:
    return TxnProducer(broker).begin()


def restarted(broker: VirtualBroker) -> None:
    broker.kill()
    broker.start()
    broker.time.settle()


# -- the internal topic


def test_the_internal_topic_appears_with_the_first_transactional_id_and_is_compacted(broker: VirtualBroker) -> None:
    assert states(broker) == {}
    assert broker.broker.topics.get(STATE_TOPIC) is None
    TxnProducer(broker).begin()
    topic = broker.broker.topics.get(STATE_TOPIC)
    assert topic is not None
    assert topic.partition_count == 1
    assert topic.log_config.compact
    assert not topic.log_config.delete
    assert topic.is_internal


def test_any_number_of_partitions_serves_all_transactional_ids() -> None:
    broker = VirtualBroker({"transaction.state.log.num.partitions": "7"})
    create(broker, "t")
    for number in range(20):
        one = TxnProducer(broker, f"x{number}").begin()
        assert one.produce("t", b"%d" % number) is OK
        assert one.end(commit=True) is OK
    restarted(broker)
    assert states(broker) == {f"x{number}": "CompleteCommit" for number in range(20)}
    assert committed_values(broker, "t") == [b"%d" % number for number in range(20)]


def test_deleting_the_internal_topic_forgets_all_transactional_ids(broker: VirtualBroker) -> None:
    old = TxnProducer(broker).begin()
    delete(broker, STATE_TOPIC)
    assert states(broker) == {}
    assert old.produce("t", b"a") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    new = TxnProducer(broker).begin()
    assert new.producer_id != old.producer_id
    assert new.produce("t", b"b") is OK
    assert new.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"b"]


# -- whole or not at all


@BOTH
def test_a_committed_transaction_is_seen_as_a_whole_and_not_before(broker: VirtualBroker, moves_on: bool) -> None:
    producer = TxnProducer(broker, moves_on=moves_on).begin()
    assert producer.produce("t", b"a", b"b") is OK
    assert producer.produce("t", b"c", index=2) is OK
    assert committed_values(broker, "t") == []
    assert producer.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"a", b"b"]
    assert committed_values(broker, "t", 2) == [b"c"]
    assert states(broker) == {"x": "CompleteCommit"}


@BOTH
def test_an_aborted_transaction_is_never_seen_and_the_next_one_is(broker: VirtualBroker, moves_on: bool) -> None:
    producer = TxnProducer(broker, moves_on=moves_on).begin()
    assert producer.produce("t", b"gone") is OK
    assert producer.end(commit=False) is OK
    assert producer.produce("t", b"kept") is OK
    assert producer.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"kept"]
    assert [value for value in values_in(broker, "t") if value in (b"gone", b"kept")] == [b"gone", b"kept"]


def test_each_end_of_the_newer_kind_has_its_own_epoch_and_tells_the_next(producer: TxnProducer) -> None:
    producer.produce("t", b"a")
    producer.end(commit=True)
    producer.produce("t", b"b")
    producer.end(commit=False)
    assert producer.epoch == 2
    assert markers(producer.broker, "t") == [(producer.producer_id, 1, True), (producer.producer_id, 2, False)]


def test_the_older_kind_keeps_its_epoch_and_goes_on_with_its_sequence(broker: VirtualBroker) -> None:
    producer = TxnProducer(broker, moves_on=False).begin()
    for number in range(3):
        assert producer.produce("t", b"%d" % number) is OK
        assert producer.end(commit=True) is OK
    assert producer.epoch == 0
    assert markers(broker, "t") == [(producer.producer_id, 0, True)] * 3
    assert committed_values(broker, "t") == [b"0", b"1", b"2"]


def test_a_marker_goes_to_every_partition_of_the_transaction_and_nowhere_else(producer: TxnProducer) -> None:
    producer.produce("t", b"a")
    producer.produce("u", b"b")
    producer.end(commit=True)
    written = [(producer.producer_id, 1, True)]
    assert [markers(producer.broker, "t", index) for index in range(3)] == [written, [], []]
    assert markers(producer.broker, "u") == written


def test_a_transaction_without_any_record_ends_at_once(broker: VirtualBroker) -> None:
    producer = TxnProducer(broker, moves_on=False).begin()
    assert producer.add("t") is OK
    assert producer.end(commit=True) is OK
    assert states(broker) == {"x": "CompleteCommit"}
    assert committed_values(broker, "t") == []


def test_offsets_become_visible_with_the_transaction_that_commits_them(broker: VirtualBroker) -> None:
    assert commit(broker, "g", 3) is OK
    producer = TxnProducer(broker).begin()
    assert producer.commit_offset("g", 5) is OK
    assert fetch(broker, "g") == 3
    assert producer.end(commit=True) is OK
    assert fetch(broker, "g") == 5
    restarted(broker)
    assert fetch(broker, "g") == 5


@BOTH
def test_offsets_of_an_aborted_transaction_are_dropped(broker: VirtualBroker, moves_on: bool) -> None:
    producer = TxnProducer(broker, moves_on=moves_on).begin()
    assert producer.produce("t", b"a") is OK
    assert producer.commit_offset("g", 5) is OK
    assert producer.end(commit=False) is OK
    assert fetch(broker, "g") == -1
    restarted(broker)
    assert fetch(broker, "g") == -1


# -- durable before it is told


def test_an_end_is_answered_when_the_decision_is_durable_and_before_the_markers_are(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    broker.offload.held = True
    sent = producer.send_end(commit=True)
    broker.time.settle()
    assert not sent.is_answered
    assert markers(broker, "t") == []
    broker.offload.step()
    broker.time.settle()
    assert sent.response.error_code == OK
    assert describe(broker).transaction_state == "PrepareCommit"
    assert len(markers(broker, "t")) == 1
    broker.offload.release()
    broker.time.settle()
    assert describe(broker).transaction_state == "CompleteCommit"


def test_a_transaction_is_complete_only_when_every_marker_is_durable(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    producer.produce("u", b"b")
    broker.offload.held = True
    producer.send_end(commit=True)
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    assert broker.offload.waiting == 2
    broker.offload.do(0)
    broker.time.settle()
    assert describe(broker).transaction_state == "PrepareCommit"
    broker.offload.release()
    broker.time.settle()
    assert describe(broker).transaction_state == "CompleteCommit"


def test_a_transaction_is_complete_only_when_its_offsets_are_durable(producer: TxnProducer) -> None:
    broker = producer.broker
    assert producer.commit_offset("g", 5) is OK
    broker.offload.held = True
    producer.send_end(commit=True)
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    assert broker.offload.waiting == 1
    assert describe(broker).transaction_state == "PrepareCommit"
    asked = begin_fetch(broker, "g")
    assert not asked.is_answered, "who sees the new offset waits until it is durable"
    broker.offload.release()
    broker.time.settle()
    assert describe(broker).transaction_state == "CompleteCommit"
    assert fetched(asked) == 5


def test_a_partition_is_durably_in_the_transaction_before_its_first_record_is_written(producer: TxnProducer) -> None:
    broker = producer.broker
    broker.offload.held = True
    sent = producer.send("t", b"a")
    broker.time.settle()
    assert values_in(broker, "t") == []
    broker.offload.step()
    broker.time.settle()
    assert values_in(broker, "t") == [b"a"]
    assert not sent.is_answered
    broker.offload.release()
    broker.time.settle()
    assert placed(sent).error_code == OK


@pytest.mark.parametrize("acks", [1, -1])
def test_records_of_a_transaction_are_durable_before_they_are_acknowledged(producer: TxnProducer, acks: int) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    broker.offload.held = True
    sent = producer.send("t", b"b", acks=acks)
    broker.time.settle()
    assert values_in(broker, "t") == [b"a", b"b"]
    assert not sent.is_answered
    broker.offload.release()
    broker.time.settle()
    assert placed(sent).base_offset == 1


def test_pipelined_batches_keep_their_order_while_the_first_one_waits(producer: TxnProducer) -> None:
    broker = producer.broker
    broker.offload.held = True
    sent = [producer.send("t", b"%d" % number) for number in range(5)]
    broker.time.settle()
    broker.offload.release()
    broker.time.settle()
    assert [placed(one).error_code for one in sent] == [OK] * 5
    assert [placed(one).base_offset for one in sent] == list(range(5))
    assert values_in(broker, "t") == [b"0", b"1", b"2", b"3", b"4"]


def test_a_batch_that_comes_later_does_not_overtake_those_that_still_stand_in_line(producer: TxnProducer) -> None:
    broker = producer.broker
    log = partition_of(broker, "t").log
    broker.offload.held = True
    sent = [producer.send("t", b"%d" % number) for number in range(3)]
    broker.time.settle()
    broker.offload.release()
    while log.log_end < 1:
        assert broker.time.turn()
    assert log.log_end == 1
    sent.append(producer.send("t", b"3"))
    broker.time.settle()
    assert [placed(one).base_offset for one in sent] == [0, 1, 2, 3]


def test_a_batch_whose_topic_is_deleted_while_it_waits_is_refused(producer: TxnProducer) -> None:
    broker = producer.broker
    broker.offload.held = True
    sent = [producer.send("t", b"a"), producer.send("t", b"b")]
    broker.time.settle()
    deleted = broker.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    broker.offload.do(1)
    broker.time.settle()
    assert deleted.is_answered
    assert not any(one.is_answered for one in sent)
    broker.offload.release()
    broker.time.settle()
    assert [placed(one).error_code for one in sent] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert producer.end(commit=True) is OK


def test_that_a_transaction_is_complete_is_written_with_what_comes_next(producer: TxnProducer) -> None:
    broker = producer.broker
    log = partition_of(broker, STATE_TOPIC).log
    producer.produce("t", b"a")
    producer.end(commit=True)
    before = log.log_end
    broker.time.settle()
    assert log.log_end == before, "nobody waits for it"
    producer.produce("t", b"b")
    assert log.log_end == before + 2
    producer.end(commit=True)
    before = log.log_end
    broker.time.advance(1_000)
    assert log.log_end == before + 1, "or by itself, after a while"


# -- crashes


@BOTH
def test_an_open_transaction_survives_a_kill_and_can_be_committed(broker: VirtualBroker, moves_on: bool) -> None:
    producer = TxnProducer(broker, moves_on=moves_on).begin()
    producer.produce("t", b"a")
    restarted(broker)
    assert states(broker) == {"x": "Ongoing"}
    assert producer.produce("t", b"b") is OK
    assert producer.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"a", b"b"]


@pytest.mark.parametrize("commits", [True, False])
def test_a_decided_end_is_carried_out_after_a_kill(producer: TxnProducer, commits: bool) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    producer.produce("u", b"b")
    producer.commit_offset("g", 5)
    broker.offload.held = True
    producer.send_end(commit=commits)
    broker.time.settle()
    broker.offload.step(1)  # the decision alone is durable
    restarted(broker)
    broker.time.advance(1000)
    assert states(broker) == {"x": "CompleteCommit" if commits else "CompleteAbort"}
    assert committed_values(broker, "t") == ([b"a"] if commits else [])
    assert committed_values(broker, "u") == ([b"b"] if commits else [])
    assert fetch(broker, "g") == (5 if commits else -1)
    assert last_stable(broker, "t") == broker.broker.partition("t", 0).log.log_end


def worst(disk: SimDisk) -> CrashState:
    """Everything that no sync covered is lost."""
    return max(disk.crash_states(), key=lambda state: len(state.lost))


def test_after_a_power_cut_before_the_decision_was_durable_the_transaction_is_still_open() -> None:
    disk = SimDisk()
    broker = VirtualBroker({}, disk=disk)
    create(broker, "t")
    producer = TxnProducer(broker).begin()
    producer.produce("t", b"a")
    broker.offload.held = True
    sent = producer.send_end(commit=True)
    broker.time.settle()
    assert not sent.is_answered
    after = VirtualBroker({}, disk=disk.after(worst(disk)))
    after.time.settle()
    assert states(after) == {"x": "Ongoing"}
    assert committed_values(after, "t") == []
    producer.broker = after
    assert producer.end(commit=True) is OK
    assert committed_values(after, "t") == [b"a"]


def test_markers_go_on_without_a_topic_that_was_deleted_meanwhile(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    producer.produce("u", b"b")
    delete(broker, "u")
    assert producer.end(commit=True) is OK
    assert states(broker) == {"x": "CompleteCommit"}
    assert committed_values(broker, "t") == [b"a"]


def test_a_topic_that_is_deleted_while_its_marker_is_made_durable_does_not_hold_up_the_end(
    producer: TxnProducer,
) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    broker.offload.held = True
    producer.send_end(commit=True)
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    broker.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    broker.offload.do(broker.offload.waiting - 1)
    broker.time.settle()
    broker.offload.release()
    broker.time.settle()
    assert states(broker) == {"x": "CompleteCommit"}


def broken_disk(kind: FaultKind, path: str) -> tuple[VirtualBroker, FaultyDisk]:
    disk = FaultyDisk(SimDisk(), Fault(kind, NEVER_STRIKES, lasting=True, path_contains=path))
    broker = VirtualBroker({}, disk=disk)
    create(broker, "t", 3)
    return broker, disk


def break_now(disk: FaultyDisk) -> None:
    disk.fault.nth = disk.met + 1


def test_a_marker_that_cannot_be_written_now_is_tried_again_until_it_is() -> None:
    broker, disk = broken_disk(FaultKind.ENOSPC, "topics/t-")
    producer = TxnProducer(broker).begin()
    producer.produce("t", b"a")
    producer.produce("t", b"b", index=1)
    break_now(disk)
    assert producer.end(commit=True) is OK
    broker.time.advance(60_000)
    assert states(broker) == {"x": "PrepareCommit"}
    assert committed_values(broker, "t") == []
    disk.heal()
    broker.time.advance(60_000)
    assert states(broker) == {"x": "CompleteCommit"}
    assert (committed_values(broker, "t"), committed_values(broker, "t", 1)) == ([b"a"], [b"b"])
    assert len(markers(broker, "t")) == len(markers(broker, "t", 1)) == 1


def test_a_partition_that_is_offline_holds_up_its_transaction_until_a_restart() -> None:
    broker, disk = broken_disk(FaultKind.SYNC, "topics/t-")
    producer = TxnProducer(broker).begin()
    producer.produce("t", b"a")
    break_now(disk)
    assert producer.end(commit=True) is OK
    disk.heal()
    broker.time.advance(60_000)
    assert states(broker) == {"x": "PrepareCommit"}
    restarted(broker)
    broker.time.advance(1_000)
    assert states(broker) == {"x": "CompleteCommit"}
    assert committed_values(broker, "t") == [b"a"]


def test_when_the_state_cannot_be_written_everyone_is_told_and_the_end_is_decided_anew_later() -> None:
    broker, disk = broken_disk(FaultKind.ENOSPC, STATE_TOPIC)
    producer = TxnProducer(broker).begin()
    producer.produce("t", b"a")
    break_now(disk)
    assert producer.end(commit=True) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    sent = producer.send("t", b"b", index=1)
    broker.time.settle()
    assert placed(sent).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    disk.heal()
    broker.time.advance(2_000)
    assert states(broker) == {"x": "Ongoing"}
    assert producer.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"a"]


def test_markers_begin_anew_when_the_state_was_lost_between_them_and_the_completion() -> None:
    broker, disk = broken_disk(FaultKind.ENOSPC, STATE_TOPIC)
    producer = TxnProducer(broker, moves_on=False).begin()
    producer.produce("t", b"a")
    broker.offload.held = True
    producer.send_end(commit=True)
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    break_now(disk)
    broker.offload.release()
    broker.time.settle()
    disk.heal()
    broker.time.advance(5_000)
    assert states(broker) == {"x": "CompleteCommit"}
    assert committed_values(broker, "t") == [b"a"]
    assert producer.produce("t", b"b") is OK
    broker.time.advance(5_000)
    assert committed_values(broker, "t") == [b"a"], "no late marker ends the next transaction"


def test_markers_of_a_shard_that_went_down_do_not_end_the_next_transaction() -> None:
    broker, disk = broken_disk(FaultKind.ENOSPC, "topics")
    producer = TxnProducer(broker, moves_on=False).begin()
    producer.produce("t", b"a")
    broker.offload.held = True
    producer.send_end(commit=True)
    broker.time.settle()
    break_now(disk)
    broker.offload.release()
    broker.time.advance(20_000)  # the markers are tried less and less often
    assert TxnProducer(broker, "other").init() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    disk.heal()
    broker.time.advance(2_000)
    assert states(broker) == {"x": "CompleteCommit"}
    assert producer.produce("t", b"b") is OK
    broker.time.advance(50_000)
    assert committed_values(broker, "t") == [b"a"]
    assert producer.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"a", b"b"]


def test_offsets_wait_for_a_group_coordinator_that_is_down() -> None:
    broker, disk = broken_disk(FaultKind.ENOSPC, "__consumer_offsets")
    producer = TxnProducer(broker).begin()
    producer.produce("t", b"a")
    assert producer.commit_offset("g", 5) is OK
    break_now(disk)
    assert producer.end(commit=True) is OK
    broker.time.advance(1_000)
    assert states(broker) == {"x": "PrepareCommit"}
    disk.heal()
    broker.time.advance(60_000)
    assert states(broker) == {"x": "CompleteCommit"}
    assert fetch(broker, "g") == 5


def test_while_the_state_is_loaded_nobody_is_answered(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    broker.kill()
    broker.start()
    assert producer.send_end(commit=True).response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.time.settle()
    assert producer.end(commit=True) is OK


# -- who comes again


def test_a_new_instance_fences_the_old_one_and_aborts_what_it_left_open(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"left")
    new = TxnProducer(broker)
    assert new.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert new.init() is OK
    assert producer.produce("t", b"zombie") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.produce("u", b"zombie") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(commit=True) is ErrorCode.PRODUCER_FENCED
    assert new.produce("t", b"new") is OK
    assert new.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"new"]
    assert b"zombie" not in values_in(broker, "t") + values_in(broker, "u")


def test_a_zombie_that_waits_for_the_coordinator_is_stopped_when_its_turn_comes(producer: TxnProducer) -> None:
    broker = producer.broker
    broker.offload.held = True
    zombie = producer.send("t", b"zombie")
    ended = producer.send_end(commit=False)
    broker.time.settle()
    broker.offload.release()
    broker.time.settle()
    assert ended.response.error_code == OK
    assert placed(zombie).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert b"zombie" not in values_in(broker, "t")
    assert last_stable(broker, "t") == broker.broker.partition("t", 0).log.log_end


def test_a_repeated_end_is_answered_as_the_first_was(producer: TxnProducer) -> None:
    producer.produce("t", b"a")
    before = producer.epoch
    assert producer.end(commit=True) is OK
    after = producer.epoch
    producer.epoch = before
    assert producer.end(commit=True) is OK
    assert producer.epoch == after
    producer.epoch = before
    assert producer.end(commit=False) is ErrorCode.INVALID_TXN_STATE
    assert len(markers(producer.broker, "t")) == 1


def test_a_repeated_batch_is_written_once(producer: TxnProducer) -> None:
    producer.produce("t", b"a")
    again = producer.send_from(0, "t", b"a")
    producer.broker.time.settle()
    assert placed(again).base_offset == 0
    assert values_in(producer.broker, "t") == [b"a"]


# -- one transaction after the other


def test_a_produce_waits_for_the_end_of_the_transaction_before(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    broker.offload.held = True
    ended = producer.send_end(commit=True)
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    producer._became(ended.response)
    sent = producer.send("t", b"b")
    broker.time.advance(50)
    assert not sent.is_answered
    broker.offload.release()
    broker.time.settle()
    assert placed(sent).error_code == OK
    assert committed_values(broker, "t") == [b"a"]
    producer.end(commit=True)
    assert committed_values(broker, "t") == [b"a", b"b"]


def test_a_produce_waits_for_that_only_so_long(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    broker.offload.held = True
    ended = producer.send_end(commit=True)
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    producer._became(ended.response)
    sent = producer.send("t", b"b")
    broker.time.advance(99)
    assert not sent.is_answered
    broker.time.advance(1)
    assert placed(sent).error_code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_older_client_waits_for_it_with_the_partitions_it_adds(broker: VirtualBroker) -> None:
    producer = TxnProducer(broker, moves_on=False).begin()
    producer.produce("t", b"a")
    broker.offload.held = True
    producer.send_end(commit=True)
    broker.time.settle()
    broker.offload.step(1)
    broker.time.settle()
    sent = producer.send_add("t")
    broker.time.settle()
    assert not sent.is_answered
    broker.offload.release()
    broker.time.settle()
    assert added(sent) is OK


# -- what is not part of a transaction


@pytest.mark.parametrize(
    ("version", "code"), [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_an_older_client_may_not_write_to_a_partition_it_did_not_add(
    broker: VirtualBroker, version: int, code: ErrorCode
) -> None:
    producer = TxnProducer(broker, moves_on=False).begin()
    assert producer.add("t", 1) is OK
    sent = producer.send("t", b"a", version=version)
    broker.time.settle()
    assert placed(sent).error_code == code
    assert values_in(broker, "t") == []
    assert last_stable(broker, "t") == 0


def test_without_verification_an_older_client_may(broker: VirtualBroker) -> None:
    broker = VirtualBroker({"transaction.partition.verification.enable": "false"})
    create(broker, "t")
    producer = TxnProducer(broker, moves_on=False).begin()
    sent = producer.send("t", b"a")
    broker.time.settle()
    assert placed(sent).error_code == OK


@pytest.mark.parametrize("version", [3, 4])
def test_offsets_of_a_group_that_was_not_added_are_refused(broker: VirtualBroker, version: int) -> None:
    producer = TxnProducer(broker, moves_on=False).begin()
    assert producer.add("t") is OK
    sent = producer.send_offset("g", 5, version=version)
    broker.time.settle()
    code = ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_TXN_STATE
    assert sent.response.topics[0].partitions[0].error_code == code


def test_nothing_is_added_when_one_of_the_partitions_does_not_exist(broker: VirtualBroker) -> None:
    producer = TxnProducer(broker, moves_on=False).begin()
    [topic] = (producer.send_add("t", 0, 9)).response.results_by_topic_v3_and_below
    codes = {one.partition_index: one.partition_error_code for one in topic.results_by_partition}
    assert codes == {0: ErrorCode.OPERATION_NOT_ATTEMPTED, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert states(broker) == {"x": "Empty"}


# -- time


@BOTH
def test_a_transaction_that_runs_out_of_time_is_aborted_and_its_producer_fenced(
    broker: VirtualBroker, moves_on: bool
) -> None:
    producer = TxnProducer(broker, moves_on=moves_on)
    assert producer.init(timeout_ms=5_000) is OK
    producer.produce("t", b"a")
    assert last_stable(broker, "t") == 0
    broker.time.advance(5_000 + SCAN_MS)
    assert states(broker) == {"x": "CompleteAbort"}
    assert last_stable(broker, "t") == 2
    assert producer.end(commit=True) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
    assert committed_values(broker, "t") == []
    assert broker.broker.transactions.metrics.timed_out == 1


def test_a_timeout_that_passed_while_the_broker_was_down_is_noticed_after_the_start(broker: VirtualBroker) -> None:
    producer = TxnProducer(broker)
    producer.init(timeout_ms=5_000)
    producer.produce("t", b"a")
    broker.kill()
    broker.clock.advance(60_000)
    broker.start()
    broker.time.advance(SCAN_MS)
    assert states(broker) == {"x": "CompleteAbort"}


def test_a_transactional_id_that_nobody_uses_is_forgotten() -> None:
    broker = VirtualBroker({"transactional.id.expiration.ms": "60000"})
    create(broker, "t")
    TxnProducer(broker).begin()
    broker.time.advance(2 * 3_600_000)
    assert states(broker) == {}
    restarted(broker)
    assert states(broker) == {}


def test_a_timeout_beyond_the_broker_s_is_refused(broker: VirtualBroker) -> None:
    assert TxnProducer(broker).init(timeout_ms=900_001) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


# -- metrics


def test_transactions_are_counted(producer: TxnProducer) -> None:
    producer.produce("t", b"a")
    metrics = producer.broker.broker.transactions.metrics
    assert (metrics.active_ids, metrics.ongoing, metrics.committed, metrics.aborted) == (1, 1, 0, 0)
    producer.end(commit=True)
    producer.produce("t", b"a")
    producer.end(commit=False)
    metrics = producer.broker.broker.transactions.metrics
    assert (metrics.active_ids, metrics.ongoing, metrics.committed, metrics.aborted) == (1, 0, 1, 1)


def test_nothing_is_left_to_do_after_a_stop(producer: TxnProducer) -> None:
    producer.produce("t", b"a")
    broker = producer.broker
    broker.stop()
    assert broker.time.timers == 0
