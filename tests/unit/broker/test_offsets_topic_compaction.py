"""`__consumer_offsets` is compacted by the same cleaning as any topic, and a compacted log gives the same groups."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.broker.group_talk import (
    beat,
    begin_commit,
    commit,
    fetch,
    list_groups,
    stable_member,
)
from tests.unit.broker.talk import create, delete, values_in

from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import DeleteGroupsRequest

OFFSETS = "__consumer_offsets"
SMALL_SEGMENTS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.segment.bytes": "20000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.delete.retention.ms": "60000",
}


@pytest.fixture
def broker() -> VirtualBroker:
    started = VirtualBroker(SMALL_SEGMENTS)
    create(started, "t", 10)
    return started


def commit_much(broker: VirtualBroker, rounds: int, groups: int = 5) -> None:
    for number in range(rounds):
        for group in range(groups):
            for index in range(10):
                begin_commit(broker, f"g{group}", number, index=index)
        broker.time.settle()


def state(broker: VirtualBroker) -> dict[str, Any]:
    groups = list_groups(broker)
    return {name: (told, [fetch(broker, name, index=index) for index in range(10)]) for name, told in groups.items()}


def test_the_log_stays_small_and_reloads_to_the_same_state(broker: VirtualBroker) -> None:
    member_id, generation = stable_member(broker, "alive")
    commit_much(broker, 100)
    before, size = state(broker), broker.broker.partition(OFFSETS, 0).log.size_bytes
    for _ in range(3):
        broker.time.advance(2_000)
        assert beat(broker, "alive", member_id, generation) == 0
    log = broker.broker.partition(OFFSETS, 0).log
    assert log.size_bytes < size / 5, "of 5,000 commits the last 50 and what is in the active segment stay"
    assert state(broker) == before
    broker.kill()
    broker.start()
    broker.time.settle()
    assert state(broker) == before
    assert beat(broker, "alive", member_id, generation) == 0


def test_tombstones_go_after_their_retention_and_nothing_rises_again(broker: VirtualBroker) -> None:
    commit_much(broker, 30)
    answer = broker.ask(DeleteGroupsRequest(groups_names=["g0", "g1"]))
    assert [one.error_code for one in answer.results] == [0, 0]
    assert values_in(broker, OFFSETS).count(None) >= 20
    for _ in range(10):
        commit_much(broker, 10, groups=3)
        broker.ask(DeleteGroupsRequest(groups_names=["g0", "g1"]))
        broker.time.advance(20_000)
    for _ in range(5):
        broker.time.advance(70_000)
        commit_much(broker, 20, groups=4)
    before = state(broker)
    assert set(before) == {"g0", "g1", "g2", "g3", "g4"}
    assert None not in values_in(broker, OFFSETS)
    broker.kill()
    broker.start()
    broker.time.settle()
    assert state(broker) == before


def test_offsets_of_a_deleted_topic_do_not_come_back_by_compaction(broker: VirtualBroker) -> None:
    commit_much(broker, 60)
    delete(broker, "t")
    create(broker, "t", 10)
    for _ in range(10):
        commit(broker, "other", 1)
        broker.time.advance(60_000)
    broker.kill()
    broker.start()
    broker.time.settle()
    assert {fetch(broker, f"g{group}", index=index) for group in range(5) for index in range(10)} == {-1}
