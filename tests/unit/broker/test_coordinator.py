"""The driver of the shards: what is answered is durable, what cannot be written is not answered, what was is back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.broker.group_talk import (
    beat,
    begin_commit,
    begin_fetch,
    begin_join,
    commit,
    committed,
    fetch,
    fetched,
    list_groups,
    stable_member,
)
from tests.unit.broker.talk import create, delete, values_in

from lowwater.broker import coordinator_shard, group_driver
from lowwater.broker.coordinator import shard_of
from lowwater.broker.coordinator_load import SLICE_BYTES
from lowwater.errors import ErrorCode
from lowwater.groups.records import read_offset_key, read_offset_value
from lowwater.groups.shard import GroupShard
from lowwater.outcome import StateRecord
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ListGroupsRequest,
    MetadataRequest,
)
from lowwater.wire.records import read_records

OFFSETS = "__consumer_offsets"
OK = ErrorCode.NONE
AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
NEVER_STRIKES = 1 << 40


@pytest.fixture
def broker() -> VirtualBroker:
    started = VirtualBroker(AT_ONCE)
    create(started, "t", 3)
    return started


def stored(broker: VirtualBroker) -> list[StateRecord]:
    """The records of `__consumer_offsets`, in order."""
    log = broker.broker.partition(OFFSETS, 0).log
    offset, found = log.log_start, []
    while offset < log.log_end:
        piece = log.read(offset, 1 << 20, upto=log.log_end, min_one=True)
        piece.warm()
        data = b"".join(bytes(part) for part in piece.buffers)
        while data:
            size = 12 + int.from_bytes(data[8:12], "big")
            records = list(read_records(data[:size]))
            found += [StateRecord(one.key or b"", one.value) for one in records]
            offset = int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big") + 1
            data = data[size:]
    return found


# -- the internal topic


def test_the_internal_topic_appears_with_the_first_commit_and_is_compacted(broker: VirtualBroker) -> None:
    assert fetch(broker, "g") == -1
    assert list_groups(broker) == {}
    assert broker.broker.topics.get(OFFSETS) is None
    assert commit(broker, "g", 5) == OK
    topic = broker.broker.topics.get(OFFSETS)
    assert topic is not None
    assert topic.partition_count == 1
    assert topic.log_config.compact
    assert not topic.log_config.delete
    assert topic.log_config.segment_bytes == 100 * 2**20
    [told] = [one for one in broker.ask(MetadataRequest(topics=None)).topics if one.name == OFFSETS]
    assert told.is_internal


def test_a_commit_is_a_record_in_kafkas_schema(broker: VirtualBroker) -> None:
    commit(broker, "g", 5, index=2)
    [record] = stored(broker)
    assert read_offset_key(record.key) == ("g", "t", 2)
    assert record.value is not None
    assert read_offset_value(record.value).offset == 5


def test_any_consumer_can_read_the_internal_topic(broker: VirtualBroker) -> None:
    commit(broker, "g", 5)
    assert len(values_in(broker, OFFSETS)) == 1


def test_the_first_commits_wait_together_until_the_topic_is_there(broker: VirtualBroker) -> None:
    broker.offload.held = True
    waiting = [begin_commit(broker, f"g{number}", number) for number in range(3)]
    broker.time.settle()
    assert not any(one.is_answered for one in waiting)
    broker.offload.release()
    broker.time.settle()
    assert [committed(one) for one in waiting] == [OK] * 3


def test_deleting_the_internal_topic_forgets_all_groups_and_releases_who_waits(broker: VirtualBroker) -> None:
    member_id, generation = stable_member(broker, "g")
    parked = begin_join(broker, "g")
    delete(broker, OFFSETS)
    assert parked.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert beat(broker, "g", member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert list_groups(broker) == {}
    assert commit(broker, "g", 6) == OK
    assert fetch(broker, "g") == 6


def test_groups_are_spread_over_partitions_as_in_kafka() -> None:
    # What Java makes of these names; the hash of the last has no positive counterpart.
    assert shard_of("my-group", 50) == 12
    assert shard_of("café", 50) == 21
    assert shard_of("😀", 50) == 49
    assert shard_of("polygenelubricants", 50) == 0


def test_any_number_of_partitions_serves_all_groups() -> None:
    broker = VirtualBroker({**AT_ONCE, "offsets.topic.num.partitions": "7"})
    create(broker, "t", 3)
    for number in range(30):
        assert commit(broker, f"g{number}", number) == OK
    broker.kill()
    broker.start()
    broker.time.settle()
    assert [fetch(broker, f"g{number}") for number in range(30)] == list(range(30))
    assert len(list_groups(broker)) == 30


# -- one batch and one sync for many


def test_commits_of_one_turn_share_one_batch_and_one_sync(broker: VirtualBroker) -> None:
    commit(broker, "g", 0)
    log = broker.broker.partition(OFFSETS, 0).log
    rounds, size = broker.broker.commits.rounds, log.size_bytes
    waiting = [begin_commit(broker, f"g{number}", number) for number in range(100)]
    broker.time.settle()
    assert [committed(one) for one in waiting] == [OK] * 100
    assert broker.broker.commits.rounds == rounds + 1
    assert log.size_bytes - size < 100 * 100, "one header for all"
    assert len(stored(broker)) == 101


def test_a_commit_sees_the_one_before_it_in_the_same_turn(broker: VirtualBroker) -> None:
    member_id, generation = stable_member(broker, "g")
    waiting = [
        begin_commit(broker, "g", number, member_id=member_id, generation_id_or_member_epoch=generation)
        for number in range(3)
    ]
    broker.time.settle()
    assert [committed(one) for one in waiting] == [OK] * 3
    assert fetch(broker, "g") == 2


# -- durable before it is answered


def test_a_commit_is_answered_when_it_is_durable_and_not_before(broker: VirtualBroker) -> None:
    commit(broker, "g", 1)
    broker.offload.held = True
    asked = begin_commit(broker, "g", 2)
    broker.time.settle()
    assert not asked.is_answered
    broker.offload.release()
    broker.time.settle()
    assert committed(asked) == OK


def test_who_sees_a_commit_is_answered_when_that_is_durable(broker: VirtualBroker) -> None:
    commit(broker, "g", 1)
    commit(broker, "h", 1)
    broker.offload.held = True
    begin_commit(broker, "g", 2)
    seen, listed, other = begin_fetch(broker, "g"), begin_fetch(broker, "g"), begin_fetch(broker, "h")
    broker.time.settle()
    assert not seen.is_answered
    assert not listed.is_answered
    assert fetched(other) == 1, "another group does not wait"
    broker.offload.release()
    broker.time.settle()
    assert fetched(seen) == 2


def test_an_acked_commit_survives_a_power_cut(broker: VirtualBroker) -> None:
    for number in range(5):
        assert commit(broker, "g", number) == OK
    at = broker.sim_disk.operations
    begin_commit(broker, "g", 99)
    broker.kill()
    after = VirtualBroker(AT_ONCE, disk=broker.sim_disk.after(worst(broker.sim_disk, at)))
    after.time.settle()
    assert fetch(after, "g") == 4


def worst(disk: SimDisk, at: int) -> CrashState:
    """Everything that no sync covered is lost."""
    return max(disk.crash_states(at), key=lambda state: len(state.lost))


def test_without_flushing_a_commit_is_answered_when_it_is_written() -> None:
    broker = VirtualBroker({**AT_ONCE, "log.flush.policy": "never"})
    create(broker, "t")
    commit(broker, "g", 1)
    broker.offload.held = True
    assert commit(broker, "g", 2) == OK
    broker.kill()
    broker.start()
    broker.time.settle()
    assert fetch(broker, "g") == 2


# -- loading


def test_groups_are_loaded_after_a_kill_and_members_carry_on(broker: VirtualBroker) -> None:
    member_id, generation = stable_member(broker, "g")
    commit(broker, "g", 7, member_id=member_id, generation_id_or_member_epoch=generation)
    commit(broker, "simple", 8)
    broker.kill()
    broker.start()
    assert fetched(begin_fetch(broker, "g")) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.time.settle()
    assert list_groups(broker) == {"g": "Stable", "simple": "Empty"}
    assert beat(broker, "g", member_id, generation) == OK
    assert (fetch(broker, "g"), fetch(broker, "simple")) == (7, 8)


def test_loading_takes_many_turns_in_which_others_are_served(broker: VirtualBroker) -> None:
    long_name = "x" * 200  # all of them are more than is read at a time
    for number in range(50):
        [begin_commit(broker, f"g{number}-{one}-{long_name}", one) for one in range(100)]
        broker.time.settle()
    assert broker.broker.partition(OFFSETS, 0).log.size_bytes > SLICE_BYTES
    broker.stop()
    broker.start()
    turns = 0
    while fetched(begin_fetch(broker, f"g0-0-{long_name}")) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        assert broker.time.turn()
        turns += 1
        assert broker.send(MetadataRequest(topics=None)).is_answered
    assert turns >= 5
    assert len(list_groups(broker)) == 5000
    assert fetch(broker, f"g49-99-{long_name}") == 99


# -- failing


def break_now(disk: FaultyDisk) -> None:
    disk.fault.nth = disk.met + 1


def full_disk() -> tuple[VirtualBroker, FaultyDisk]:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.ENOSPC, NEVER_STRIKES, lasting=True))
    broker = VirtualBroker(AT_ONCE, disk=disk)
    create(broker, "t", 3)
    return broker, disk


def test_on_a_full_disk_everyone_is_told_and_the_groups_are_back_when_there_is_room() -> None:
    broker, disk = full_disk()
    member_id, generation = stable_member(broker, "g")
    commit(broker, "h", 5)
    parked = begin_join(broker, "g")
    break_now(disk)
    refused = begin_commit(broker, "h", 6)
    broker.time.settle()
    assert committed(refused) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert parked.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fetch(broker, "h") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    disk.heal()
    broker.time.advance(2_000)
    assert fetch(broker, "h") == 5, "what was not acknowledged is not there"
    assert commit(broker, "h", 7) == OK
    assert beat(broker, "g", member_id, generation) in (OK, ErrorCode.REBALANCE_IN_PROGRESS)


def test_what_is_read_again_is_told_when_it_is_durable() -> None:
    broker, disk = full_disk()
    commit(broker, "h", 5)
    broker.offload.held = True
    written = begin_commit(broker, "h", 6)
    broker.time.settle()
    break_now(disk)
    begin_commit(broker, "h", 7)
    broker.time.settle()
    assert committed(written) == ErrorCode.COORDINATOR_NOT_AVAILABLE, "nobody can say yet"
    disk.heal()
    broker.time.advance(2_000)
    assert fetch(broker, "h") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.offload.release()
    broker.time.settle()
    assert fetch(broker, "h") == 6


def test_as_long_as_the_disk_is_full_commits_fail_and_reads_come_back() -> None:
    broker, disk = full_disk()
    commit(broker, "h", 5)
    break_now(disk)
    for _ in range(3):
        assert commit(broker, "h", 6) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        broker.time.advance(60_000)
        assert fetch(broker, "h") == 5
    disk.heal()
    assert commit(broker, "h", 8) == OK


def test_after_a_failed_sync_the_coordinator_stays_down_until_a_restart() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.SYNC, NEVER_STRIKES, lasting=True, path_contains="topics"))
    broker = VirtualBroker(AT_ONCE, disk=disk)
    create(broker, "t", 3)
    commit(broker, "g", 1)
    break_now(disk)
    assert commit(broker, "g", 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    disk.heal()
    broker.time.advance(600_000)
    assert fetch(broker, "g") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.kill()
    broker.start()
    broker.time.settle()
    assert fetch(broker, "g") in (1, 2)


def test_the_internal_topic_that_cannot_be_created_is_tried_again() -> None:
    broker, disk = full_disk()
    break_now(disk)
    assert commit(broker, "g", 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    disk.heal()
    broker.time.advance(2_000)
    assert commit(broker, "g", 1) == OK


# -- time


def test_a_silent_member_times_out_and_the_next_one_leads(broker: VirtualBroker) -> None:
    stable_member(broker, "g")
    broker.time.advance(9_999)
    assert list_groups(broker) == {"g": "Stable"}
    broker.time.advance(1)
    assert list_groups(broker) == {"g": "Empty"}
    assert broker.broker.groups.metrics.member_timeouts == 1


def test_when_many_members_fall_silent_at_once_others_are_served_meanwhile(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_shard, "TICKS_PER_TURN", 3)
    for number in range(10):
        stable_member(broker, f"g{number}")
    ends = []
    end_turn = coordinator_shard.ShardDriver._end_turn
    monkeypatch.setattr(
        coordinator_shard.ShardDriver,
        "_end_turn",
        lambda driver: (ends.append(driver.shard.metrics.member_timeouts), end_turn(driver)),
    )
    broker.time.advance(10_000)
    assert ends == [3, 6, 9, 10]
    assert set(list_groups(broker).values()) == {"Empty"}


def test_offsets_expire_by_themselves() -> None:
    broker = VirtualBroker({**AT_ONCE, "offsets.retention.minutes": "60"})
    create(broker, "t")
    commit(broker, "g", 5)
    broker.time.advance(60 * 60_000 - 1)
    assert fetch(broker, "g") == 5
    broker.time.advance(10 * 60_000)
    assert fetch(broker, "g") == -1
    assert list_groups(broker) == {}


def test_a_deleted_topic_takes_its_offsets_along_also_when_the_process_is_killed_then(broker: VirtualBroker) -> None:
    commit(broker, "g", 5)
    delete(broker, "t")
    broker.kill()
    broker.start()
    broker.time.settle()
    create(broker, "t")
    assert fetch(broker, "g") == -1


def test_offsets_of_a_deleted_topic_go_over_several_turns_and_are_not_seen_meanwhile(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_driver, "OFFSETS_PER_TURN", 4)
    for number in range(10):
        commit(broker, f"g{number}", 5)
    before = len(stored(broker))
    ends, end_turn = [], coordinator_shard.ShardDriver._end_turn
    monkeypatch.setattr(
        coordinator_shard.ShardDriver,
        "_end_turn",
        lambda driver: (ends.append(len(driver.shard.offsets)), end_turn(driver)),
    )
    delete(broker, "t")
    create(broker, "t")
    assert commit(broker, "g9", 6) == OK
    assert [fetch(broker, f"g{number}") for number in (0, 8, 9)] == [-1, -1, 6]
    broker.time.settle()
    assert ends[0] == 8
    assert len(stored(broker)) == before + 10 + 1
    broker.kill()
    broker.start()
    broker.time.settle()
    assert [fetch(broker, f"g{number}") for number in (0, 8, 9)] == [-1, -1, 6]


def test_nothing_is_left_to_do_after_a_stop(broker: VirtualBroker) -> None:
    stable_member(broker, "g")
    broker.stop()
    assert broker.time.timers == 0


# -- counting


def test_the_coordinator_counts(broker: VirtualBroker) -> None:
    member_id, generation = stable_member(broker, "g")
    for _ in range(3):
        beat(broker, "g", member_id, generation)
    commit(broker, "h", 5)
    metrics = broker.broker.groups.metrics
    assert (metrics.active_groups, metrics.total_members) == (2, 1)
    assert (metrics.heartbeats_total, metrics.offset_commits_total) == (3, 1)
    assert metrics.rebalances_total == sum(metrics.rebalance_duration_buckets) == 1


def test_a_crowd_of_groups_is_warned_of_once(broker: VirtualBroker, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(51):
        [begin_commit(broker, f"g{number}-{one}", 1) for one in range(100)]
        broker.time.settle()
    with caplog.at_level("WARNING"):
        broker.time.advance(60_000)
    assert [record.message for record in caplog.records if "groups are coordinated" in record.message] == [
        "5100 groups are coordinated by one broker; up to 5000 are known to go well"
    ]


# -- a decision that breaks


def test_a_decision_that_breaks_is_not_built_upon(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(broker, "g", 5)
    stable_member(broker, "h")
    parked = begin_join(broker, "h")
    monkeypatch.setattr(GroupShard, "decide", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        begin_fetch(broker, "g")
    monkeypatch.undo()
    assert fetched(begin_fetch(broker, "g")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert parked.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.time.advance(1_000)
    assert fetch(broker, "g") == 5


def test_a_timer_that_breaks_does_not_stop_the_others(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    stable_member(broker, "g")
    monkeypatch.setattr(GroupShard, "tick", lambda *_: 1 / 0)
    broker.time.advance(10_000)
    monkeypatch.undo()
    assert fetched(begin_fetch(broker, "g")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.time.advance(1_000)
    assert list_groups(broker) == {"g": "Stable"}
    broker.time.advance(10_000)
    assert list_groups(broker) == {"g": "Empty"}


def test_a_list_of_groups_that_waits_when_the_disk_fills_is_refused_as_a_whole() -> None:
    broker, disk = full_disk()
    commit(broker, "h", 5)
    break_now(disk)
    refused, listed = begin_commit(broker, "h", 6), broker.send(ListGroupsRequest())
    broker.time.settle()
    assert committed(refused) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert listed.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_record_that_breaks_the_loading_takes_the_groups_down_instead_of_loading_for_ever(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(broker, "g", 5)
    broker.stop()
    monkeypatch.setattr(GroupShard, "replay", lambda *_: 1 / 0)
    broker.start()
    broker.time.settle()
    assert fetch(broker, "g") == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_who_begins_to_wait_when_the_write_fails_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.ENOSPC, NEVER_STRIKES, lasting=True))
    broker = VirtualBroker({"group.initial.rebalance.delay.ms": "3000"}, disk=disk)
    create(broker, "t", 1)
    leave = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
    assert broker.ask(consumer_join("t")).error_code == OK
    assert broker.ask(leave).error_code == OK
    monkeypatch.setattr(coordinator_shard, "ROUND_RECORDS_MAX", 1)
    break_now(disk)
    joined = begin_join(broker, "g")
    broker.time.settle()
    assert joined.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# -- work for another process


def consumer_join(topic: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


def consumer_beat(broker: VirtualBroker, epoch: int) -> ConsumerGroupHeartbeatResponse:
    later = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    asked = broker.send(later if epoch else consumer_join("many"))
    broker.time.turn()
    broker.time.turn()
    answer = asked.response
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error_code == OK
    return answer


def test_a_large_assignment_is_made_elsewhere_while_others_are_served() -> None:
    broker = VirtualBroker({**AT_ONCE, "log.flush.policy": "never"})
    for name in ("many", "t"):
        create(broker, name, 10_000 if name == "many" else 1)
    commit(broker, "other", 2)
    broker.broker.groups.config = replace(broker.broker.groups.config, assignments_inline_max=100)
    delete(broker, OFFSETS)  # begins anew with the settings above
    commit(broker, "other", 3)
    broker.offload.held = True
    joined = consumer_beat(broker, 0)
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions == []
    assert fetch(broker, "other") == 3
    broker.offload.release()
    broker.time.settle()
    answer = consumer_beat(broker, joined.member_epoch)
    assert answer.assignment is not None
    [topic] = answer.assignment.topic_partitions
    assert sorted(topic.partitions) == list(range(10_000))
