"""The workloads of the crash enumeration: what a broker does with its log, each a short story of its own.

Every script ends with something unsynced, so that the last states are interesting too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.sim.world import SMALL, World

HOUR_MS = 3_600_000
TABLE = replace(SMALL, compact=True, delete=False, segment_bytes=600, min_cleanable_dirty_ratio=0.01)


def appends(world: World) -> None:
    """acks=1 and acks=all on two partitions, small and multi-sector batches, a flush that overlaps an append."""
    orders = world.create("orders")
    other = world.add_partition(orders)
    world.append(orders, flush=True)
    world.append(orders, 3)
    world.append(other, 2, size=900)
    world.append(orders, size=1200, flush=True)
    ticket = world.begin_flush(other)
    world.append(other, size=700)
    world.end_flush(other, ticket)
    world.append(other, flush=True)
    world.append(orders, 2)
    world.append(orders)
    world.append(orders, size=600)


def overlapping_flushes(world: World) -> None:
    """Two flushes of one log under way at once, finished in the other order."""
    orders = world.create("orders", replace(SMALL, segment_bytes=400))
    world.append(orders, size=300)
    first = world.begin_flush(orders)
    world.append(orders, size=300)
    second = world.begin_flush(orders)
    world.append(orders, size=300)
    world.end_flush(orders, second)
    world.append(orders, size=100)
    world.end_flush(orders, first)
    world.append(orders)


def shared_syncs(world: World) -> None:
    """Several logs flushed by one sync of the file system, some of their files closed meanwhile."""
    orders = world.create("orders", replace(SMALL, segment_bytes=500))
    other, third = world.add_partition(orders), world.create("payments")
    for _ in range(3):
        world.append(orders, size=300)
        world.append(other, size=100)
    world.append(third, 2, size=200)
    world.flush_together([orders, other, third])
    world.append(orders, size=300)
    world.append(third)
    world.kill()
    world.append(other, size=400)
    world.flush_together([orders, other, third])
    world.append(third)
    world.append(orders)


def many_segments(world: World) -> None:
    """More unsynced segments than files may be open: the flush has to open some of them again."""
    orders = world.create("orders", replace(SMALL, segment_bytes=100))
    for _ in range(20):
        world.append(orders, size=60)
    world.flush(orders)
    world.append(orders, size=60)


def rolls(world: World) -> None:
    """Segments fill up and seal, flushed and not; timestamps out of order; a roll by age."""
    orders = world.create("orders", replace(SMALL, segment_bytes=1000, segment_ms=HOUR_MS))
    now = world.clock.now_ms()
    for step in range(4):
        world.append(orders, 2, size=200, times=[now - 500 * step, now + 100 - 70 * step], flush=step % 2 == 0)
    world.clock.advance(2 * HOUR_MS)
    world.roll(orders)
    world.append(orders, size=300)
    world.append(orders, 3, size=250, flush=True)
    world.append(orders, size=800)
    world.append(orders, size=900)
    world.append(orders)


def deletions(world: World) -> None:
    """DeleteRecords within a segment, across segments and up to the end; retention by size and by time."""
    orders = world.create("orders", replace(SMALL, segment_bytes=700, retention_bytes=1400, retention_ms=24 * HOUR_MS))
    for _ in range(5):
        world.append(orders, 2, size=200)
    world.flush(orders)
    world.delete_before(orders, 1)
    world.delete_before(orders, 5)
    world.append(orders, 2, size=300)
    world.retention(orders)
    world.append(orders, size=500, flush=True)
    world.delete_before(orders, world.log(orders).log_end)
    world.append(orders, 2, size=200)
    world.append(orders, 2, size=500)
    world.clock.advance(48 * HOUR_MS)
    world.append(orders, size=100)
    world.retention(orders)
    world.append(orders, size=60)


def all_expired(world: World) -> None:
    """Retention takes every record, the active segment included; the next offset goes on."""
    orders = world.create("orders", replace(SMALL, segment_bytes=700, retention_ms=HOUR_MS))
    world.append(orders, 3, size=200)
    world.append(orders, 3, size=200, flush=True)
    world.clock.advance(5 * HOUR_MS)
    world.retention(orders)
    world.kill()
    world.append(orders)
    world.append(orders, flush=True)
    world.clock.advance(5 * HOUR_MS)
    world.retention(orders)
    world.close()
    world.start()
    world.append(orders)


def compactions(world: World) -> None:
    """Values are superseded and deleted, segments cleaned twice, the tombstones' time passes."""
    table = world.create("table", replace(TABLE, delete_retention_ms=HOUR_MS))
    for step in range(4):
        world.append(table, keys=[b"a", b"b", f"k{step}".encode()], size=120, flush=True)
    world.append(table, keys=[b"b"], values=[None], flush=True)
    world.append(table, keys=[b"c", b"a"], size=150)
    world.append(table, keys=[b"c"], size=300, flush=True)
    world.append(table, keys=[b"d"], size=300)
    world.compact(table)
    world.append(table, keys=[b"a", b"e"], size=200, flush=True)
    world.append(table, keys=[b"e"], size=300, flush=True)
    world.clock.advance(3 * HOUR_MS)
    world.expire_tombstones(table)
    world.compact(table)
    world.append(table, keys=[b"f"], size=100)
    world.kill()
    world.append(table, keys=[b"a"], size=100)


def producers(world: World) -> None:
    """Idempotent producers across rolls, snapshots, a kill and a clean stop; an epoch that rises."""
    orders = world.create("orders", replace(SMALL, segment_bytes=900))
    for step in range(4):
        world.append(orders, 2, size=150, producer=(7, 0, 2 * step), flush=step == 1)
        world.append(orders, size=100, producer=(8, 0, step))
    world.kill()
    world.append(orders, 2, size=150, producer=(7, 0, 8))
    world.append(orders, size=150, producer=(8, 1, 0), flush=True)
    world.close()
    world.start()
    world.append(orders, size=150, producer=(7, 0, 10))
    world.append(orders, size=500, producer=(8, 1, 1), flush=True)
    world.append(orders, size=500, producer=(8, 1, 2))
    world.append(orders, size=90, producer=(7, 0, 11))


def transactions(world: World) -> None:
    """Two producers commit and abort over segments, through a kill, a clean stop and a deletion; one never ends."""
    orders = world.create("orders", replace(SMALL, segment_bytes=500, index_interval_bytes=4096))
    world.append(orders, size=60)
    world.append(orders, size=150, producer=(7, 0, 0), transactional=True, flush=True)
    world.append(orders, size=100, producer=(8, 0, 0), transactional=True)
    world.end(orders, (7, 0), commit=False, flush=True)
    world.append(orders, size=150, producer=(7, 0, 1), transactional=True)
    world.checkpoint()
    world.end(orders, (8, 0), commit=False)
    world.kill()
    world.append(orders, size=60, flush=True)
    world.end(orders, (7, 1), commit=True, flush=True)
    world.append(orders, size=100, producer=(8, 0, 1), transactional=True)
    world.append(orders, size=150, producer=(7, 1, 0), transactional=True)
    world.close()
    world.start()
    world.end(orders, (7, 1), commit=False)
    world.delete_before(orders, world.log(orders).last_stable + 1)
    world.append(orders, size=300, flush=True)
    world.end(orders, (8, 0), commit=True, flush=True)
    world.append(orders, size=60, producer=(9, 0, 0), transactional=True)
    world.append(orders, size=400)
    world.append(orders, size=60, producer=(9, 0, 1), transactional=True)


def compacted_transactions(world: World) -> None:
    """Aborted values displace nothing, and go; markers stay until their time is over."""
    table = world.create("table", replace(TABLE, delete_retention_ms=HOUR_MS, index_interval_bytes=4096))
    world.append(table, keys=[b"a", b"b"], size=60)
    world.append(table, keys=[b"a"], size=60, producer=(7, 0, 0), transactional=True)
    world.append(table, keys=[b"b"], size=60, producer=(8, 0, 0), transactional=True)
    world.end(table, (7, 0), commit=False)
    world.append(table, keys=[b"c"], size=200, flush=True)
    world.end(table, (8, 0), commit=True)
    world.append(table, keys=[b"d"], size=300)
    world.append(table, keys=[b"d"], size=300, flush=True)
    world.compact(table)
    for step in range(6):
        world.append(table, keys=[b"e"], size=60, producer=(7, 0, 1 + step), transactional=True)
    world.end(table, (7, 0), commit=True)
    world.append(table, keys=[b"d"], size=300)
    world.append(table, keys=[b"d"], size=300, flush=True)
    world.compact(table)
    world.kill()
    world.append(table, keys=[b"b"], size=100, producer=(8, 0, 1), transactional=True, flush=True)


def restarts(world: World) -> None:
    """Clean stops, kills, and power that stays on all the while; what was unsynced before a kill stays in doubt."""
    orders = world.create("orders", replace(SMALL, segment_bytes=800))
    world.append(orders, size=200, flush=True)
    world.append(orders, size=200)
    world.kill()
    world.append(orders, size=200)
    world.append(orders, size=200, flush=True)
    world.close()
    world.start()
    world.close()
    world.start()
    world.append(orders, size=300)
    world.kill()
    world.kill()
    world.append(orders, size=300)
    world.flush(orders)
    world.append(orders, size=50)


def checkpoints(world: World) -> None:
    """Checkpoints while the broker runs: of durable and of unsynced batches, before deletions and before kills."""
    orders = world.create("orders", replace(SMALL, segment_bytes=700))
    world.checkpoint()
    world.append(orders, 2, size=200, producer=(7, 0, 0), flush=True)
    world.append(orders, size=200, producer=(7, 0, 2))
    world.checkpoint()
    world.append(orders, size=300, producer=(7, 0, 3), flush=True)
    world.checkpoint()
    world.append(orders, size=300, producer=(7, 0, 4))
    world.kill()
    world.append(orders, size=300, producer=(7, 0, 5), flush=True)
    world.checkpoint()
    world.delete_before(orders, 3)
    world.append(orders, size=200, producer=(7, 0, 6))
    world.checkpoint()
    world.kill()
    world.checkpoint()
    world.append(orders, size=200, producer=(7, 0, 7))


def topics(world: World) -> None:
    """A topic is deleted and another of its name takes over; a third one lives beside them."""
    first, other = world.create("orders"), world.create("payments")
    world.append(first, 2, size=200, flush=True)
    world.append(other, size=200, flush=True)
    world.append(first, size=100)
    world.delete_topic(first)
    second = world.create("orders")
    world.append(second, flush=True)
    world.append(other)
    world.delete_topic(other)
    world.append(second)


def ceilings(world: World) -> None:
    """The offset ceiling is passed and raised, ahead of use and at once."""
    orders = world.create("orders", replace(SMALL, segment_bytes=800))
    world.append(orders, 10, size=9)
    world.raise_ceilings()
    world.append(orders, 10, size=9)
    world.append(orders, 10, size=9, flush=True)
    world.append(orders, 18, size=9)
    world.append(orders, 25, size=9)
    world.kill()
    world.append(orders, 13, size=9)
    world.begin_ceilings()
    world.kill()
    world.append(orders, 15, size=9)
    world.append(orders, flush=True)
    world.append(orders, 15, size=9)


SCRIPTS: dict[str, Callable[[World], None]] = {
    script.__name__: script
    for script in (
        appends,
        overlapping_flushes,
        shared_syncs,
        many_segments,
        rolls,
        deletions,
        all_expired,
        compactions,
        producers,
        transactions,
        compacted_transactions,
        restarts,
        checkpoints,
        topics,
        ceilings,
    )
}
