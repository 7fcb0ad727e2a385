"""What the coordinator counts."""

from __future__ import annotations

from tests.unit.transactions.transaction_world import HOUR_MS, SCAN_MS, TIMEOUT_MS, WEEK_MS, World

from lowwater.transactions.metrics import TransactionMetrics
from lowwater.transactions.state import State


def test_ends_are_counted_when_they_are_complete_by_their_cause():
    world = World()
    metrics = world.shard.metrics
    identity = world.in_state(State.ONGOING)
    assert (metrics.active_ids, metrics.ongoing) == (1, 1)
    identity = world.commit(identity)
    assert (metrics.ongoing, metrics.committed) == (0, 0)
    world.finish()
    assert (metrics.committed, metrics.aborted) == (1, 0)
    world.add(identity)
    identity = world.abort(identity)
    world.finish()
    assert (metrics.committed, metrics.aborted) == (1, 1)
    world.add(identity)
    world.init()
    world.finish()
    assert (metrics.aborted, metrics.fenced, metrics.timed_out) == (2, 1, 0)
    world.add(world.init())
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    world.finish()
    assert (metrics.aborted, metrics.fenced, metrics.timed_out) == (3, 1, 1)
    assert (metrics.active_ids, metrics.ongoing) == (1, 0)


def test_totals_of_shards_add_up():
    total = TransactionMetrics()
    for _ in range(2):
        world = World()
        world.add(world.begun())
        world.commit(world.identity())
        world.finish()
        world.add(world.identity())
        world.init()
        world.finish()
        world.add(world.init())
        world.pass_time(TIMEOUT_MS + SCAN_MS)
        world.finish()
        world.pass_time(WEEK_MS + HOUR_MS)
        total.add_totals(world.shard.metrics)
    assert (total.committed, total.aborted, total.fenced, total.timed_out, total.expired_ids) == (2, 4, 2, 2, 2)
    assert (total.active_ids, total.ongoing) == (0, 0)
