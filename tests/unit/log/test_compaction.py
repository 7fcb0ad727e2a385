"""Compaction: the last value of each key stays, in its place."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from tests.unit.log.support import HOUR_MS, NOW, Home, keyed, read_all, read_batches, values

from lowwater.log import compaction
from lowwater.log.compaction import CompactionPlan, CompactionResult, execute
from lowwater.log.config import DAY_MS, LogConfig
from lowwater.log.partition_log import PartitionLog
from lowwater.system import SystemDisk
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.wire import compression
from lowwater.wire.records import BatchHeader, Record, build_batch, crc_ok

TABLE = LogConfig(
    segment_bytes=500, index_interval_bytes=128, compact=True, delete=False, min_cleanable_dirty_ratio=0.0
)


def table(**settings: int | float | bool) -> Home:
    fields = {name: getattr(TABLE, name) for name in TABLE.__slots__}
    return Home(config=LogConfig(**{**fields, **settings}))


def put(home: Home, *pairs: tuple[bytes, bytes | None], **fields: int) -> None:
    home.log().append(keyed(*pairs, time=home.now_ms, **fields), home.now_ms)


def fill(home: Home) -> None:
    """Enough of another key to seal what came before; flushed."""
    put(home, (b"filler", b"x" * 450))
    home.log().flush()


def compact(home: Home) -> CompactionResult:
    log = home.log()
    plan = log.plan_compaction(home.now_ms)
    assert plan is not None
    result = execute(plan)
    log.finish_compaction(result)
    assert result.error is None
    return result


def contents(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in read_all(log)}


def kept(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in read_all(log) if record.key != b"filler"]


def test_the_last_value_of_each_key_stays_at_its_offset() -> None:
    home = table()
    put(home, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    put(home, (b"c", b"4"), (b"b", b"5"))
    fill(home)
    compact(home)
    assert kept(home.log()) == [(2, b"3"), (3, b"4"), (4, b"5")]
    assert home.log().log_start == 0
    assert home.log().log_end == 6


def test_a_second_compaction_knows_the_first() -> None:
    home = table()
    put(home, (b"a", b"1"), (b"b", b"2"))
    fill(home)
    compact(home)
    put(home, (b"a", b"3"))
    fill(home)
    compact(home)
    assert kept(home.log()) == [(1, b"2"), (3, b"3")]
    assert home.log().plan_compaction(NOW) is None


def test_the_active_segment_is_not_touched() -> None:
    home = table()
    fill(home)
    put(home, (b"a", b"1"))
    put(home, (b"a", b"2"))
    home.log().flush()
    compact(home)
    assert kept(home.log()) == [(1, b"1"), (2, b"2")]


def test_batches_keep_their_offset_range_epoch_codec_and_crc() -> None:
    home = table()
    put(home, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), codec=compression.LZ4)
    put(home, (b"a", b"4"))
    fill(home)
    before = BatchHeader.parse(read_batches(home.log())[0])
    compact(home)
    [batch, *_] = read_batches(home.log())
    after = BatchHeader.parse(batch)
    assert (after.base_offset, after.last_offset, after.leader_epoch, after.codec) == (
        before.base_offset,
        before.last_offset,
        before.leader_epoch,
        compression.LZ4,
    )
    assert after.record_count == 1
    assert crc_ok(batch, after)


def test_a_batch_that_stays_whole_stays_byte_for_byte() -> None:
    home = table()
    put(home, (b"a", b"1"), (b"b", b"2"), codec=compression.ZSTD)
    put(home, (b"c", b"3"))
    fill(home)
    before = read_batches(home.log())
    compact(home)
    assert read_batches(home.log()) == before


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_is_compacted(codec: int) -> None:
    home = table()
    put(home, *[(b"k%d" % (number % 7), b"%d" % number) for number in range(50)], codec=codec)
    fill(home)
    compact(home)
    assert kept(home.log()) == [(number, b"%d" % number) for number in range(43, 50)]


def test_timestamps_of_what_stays_are_true() -> None:
    home = table()
    records = [Record(0, NOW + 50, b"a", b"1"), Record(1, NOW + 10, b"b", b"2"), Record(2, NOW + 20, b"c", b"3")]
    home.log().append(memoryview(build_batch(records)), NOW)
    put(home, (b"a", b"4"))
    fill(home)
    compact(home)
    [batch, *_] = read_batches(home.log())
    assert BatchHeader.parse(batch).max_timestamp == NOW + 20
    assert [record.timestamp for record in read_all(home.log())][:2] == [NOW + 10, NOW + 20]
    found = home.log().offset_for_time(NOW + 15, upto=home.log().log_end)
    assert found is not None
    assert found[:2] == (2, NOW + 20)


def test_append_time_stays_with_what_stays() -> None:
    home = table(log_append_time=True)
    put(home, (b"a", b"1"), (b"b", b"2"))
    home.now_ms += 1000
    put(home, (b"a", b"3"))
    fill(home)
    compact(home)
    assert [record.timestamp for record in read_all(home.log())][:2] == [NOW, NOW + 1000]


# -- tombstones


def test_a_tombstone_stays_until_its_time_is_over() -> None:
    home = table(delete_retention_ms=DAY_MS)
    put(home, (b"a", b"1"))
    put(home, (b"a", None), (b"b", b"2"))
    fill(home)
    compact(home)
    assert kept(home.log()) == [(1, None), (2, b"2")]
    tombstone = BatchHeader.parse(read_batches(home.log())[0])
    assert tombstone.delete_horizon_ms == NOW + DAY_MS
    home.now_ms = NOW + DAY_MS - 1
    fill(home)
    compact(home)
    assert kept(home.log()) == [(1, None), (2, b"2")]
    home.now_ms = NOW + DAY_MS
    fill(home)
    compact(home)
    assert kept(home.log()) == [(2, b"2")]


def test_the_time_of_a_tombstone_counts_from_its_first_compaction_only() -> None:
    home = table(delete_retention_ms=DAY_MS)
    put(home, (b"a", None))
    fill(home)
    compact(home)
    home.now_ms += HOUR_MS
    fill(home)
    compact(home)
    assert BatchHeader.parse(read_batches(home.log())[0]).delete_horizon_ms == NOW + DAY_MS


def test_records_beside_a_tombstone_keep_their_timestamps() -> None:
    home = table()
    records = [Record(0, NOW + 5, b"a", None), Record(1, NOW + 3, b"b", b"2"), Record(2, NOW + 9, b"c", b"3")]
    home.log().append(memoryview(build_batch(records, codec=compression.GZIP)), NOW)
    fill(home)
    compact(home)
    assert read_all(home.log())[:3] == records


def test_a_tombstone_that_is_superseded_goes_at_once() -> None:
    home = table()
    put(home, (b"a", None))
    put(home, (b"a", b"2"))
    fill(home)
    compact(home)
    assert kept(home.log()) == [(1, b"2")]


# -- what must stay for other reasons


def test_an_emptied_batch_of_a_live_producer_stays_as_an_empty_batch() -> None:
    home = table()
    put(home, (b"a", b"1"), producer_id=4, producer_epoch=0, base_sequence=0)
    put(home, (b"a", b"2"))
    fill(home)
    compact(home)
    [empty, *_] = read_batches(home.log())
    header = BatchHeader.parse(empty)
    assert (header.base_offset, header.record_count, header.producer_id, header.base_sequence) == (0, 0, 4, 0)
    assert crc_ok(empty, header)
    home.kill()
    again = home.log().append(keyed((b"a", b"1"), producer_id=4, producer_epoch=0, base_sequence=0), home.now_ms)
    assert (again.base_offset, again.duplicate) == (0, True)


def test_an_emptied_batch_of_a_forgotten_producer_goes() -> None:
    home = table(producer_expiration_ms=HOUR_MS)
    put(home, (b"a", b"1"), producer_id=4, producer_epoch=0, base_sequence=0)
    put(home, (b"a", b"2"))
    fill(home)
    home.now_ms += HOUR_MS
    home.log().expire_producers(home.now_ms)
    compact(home)
    assert BatchHeader.parse(read_batches(home.log())[0]).base_offset == 1


def test_the_log_end_survives_the_compaction_of_a_sealed_last_segment() -> None:
    home = table(segment_ms=HOUR_MS)
    put(home, (b"a", None))
    home.log().flush()
    home.now_ms += HOUR_MS + 1
    home.log().roll_if_due(home.now_ms)
    compact(home)
    home.now_ms += 2 * DAY_MS
    assert home.log().log_end == 1
    home.log().clean_until = 0
    compact(home)
    assert values(home.log()) == []
    assert home.kill().log_end == 1


def test_small_neighbours_become_one_segment() -> None:
    home = table()
    for number in range(12):
        put(home, (b"same", b"%d" % number * 100))
    fill(home)
    before = len(home.log().segments)
    compact(home)
    assert before > 5
    assert len(home.log().segments) == 2
    assert home.log().size_bytes == sum(segment.size for segment in home.log().segments)


def test_files_of_replaced_segments_are_not_kept_open() -> None:
    home = table()
    for number in range(12):
        put(home, (b"same", b"%d" % number * 100))
    fill(home)
    read_all(home.log())
    before, replaced = home.disk.open_files, len(home.log().segments) - 1
    compact(home)
    assert home.disk.open_files == before - replaced


def test_a_segment_of_which_nothing_stays_is_gone() -> None:
    home = table(segment_bytes=200)
    put(home, (b"a", b"1" * 100))
    put(home, (b"a", b"2" * 100))
    put(home, (b"a", b"3" * 100))
    home.log().flush()
    compact(home)
    assert kept(home.log()) == [(1, b"2" * 100), (2, b"3" * 100)]
    assert {name[:20] for name in home.names() if name.endswith(".log")} == {f"{base:020d}" for base in (1, 2)}


def test_reads_into_the_gaps_give_the_next_batch() -> None:
    home = table()
    for number in range(30):
        put(home, (b"key%d" % (number % 3), b"%d" % number * 50))
    fill(home)
    compact(home)
    assert [record.offset for record in read_all(home.log(), 0)][:3] == [27, 28, 29]
    assert [record.offset for record in read_all(home.log(), 13)][:1] == [27]


# -- when


def test_nothing_is_planned_below_the_dirty_ratio() -> None:
    home = table(min_cleanable_dirty_ratio=0.5)
    for number in range(10):
        put(home, (b"%d" % number, b"x" * 300))
    fill(home)
    compact(home)
    put(home, (b"new", b"y" * 300))
    fill(home)
    assert home.log().plan_compaction(NOW) is None
    home.log().update_config(LogConfig(compact=True, min_cleanable_dirty_ratio=0.01))
    assert home.log().plan_compaction(NOW) is not None


def test_max_compaction_lag_overrules_the_ratio() -> None:
    home = table(min_cleanable_dirty_ratio=0.99, max_compaction_lag_ms=HOUR_MS)
    for number in range(10):
        put(home, (b"%d" % number, b"x" * 300))
    fill(home)
    home.log().clean_until = 9
    assert home.log().plan_compaction(NOW + HOUR_MS) is None
    assert home.log().plan_compaction(NOW + HOUR_MS + 1) is not None


def test_young_segments_wait_for_min_compaction_lag() -> None:
    home = table(min_compaction_lag_ms=HOUR_MS)
    put(home, (b"a", b"1"))
    put(home, (b"a", b"2"))
    fill(home)
    assert home.log().plan_compaction(NOW + HOUR_MS - 1) is None
    home.now_ms = NOW + HOUR_MS
    compact(home)
    assert kept(home.log()) == [(1, b"2")]


def test_what_is_not_durable_is_not_compacted() -> None:
    home = table()
    put(home, (b"a", b"1"))
    put(home, (b"filler", b"x" * 450))
    assert home.log().plan_compaction(NOW) is None


def test_topics_that_are_not_compacted_are_left_alone() -> None:
    home = table(compact=False)
    put(home, (b"a", b"1"))
    fill(home)
    assert home.log().plan_compaction(NOW) is None


def test_one_compaction_at_a_time() -> None:
    home = table()
    put(home, (b"a", b"1"))
    fill(home)
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    assert home.log().plan_compaction(NOW) is None
    home.log().finish_compaction(execute(plan))
    fill(home)
    assert home.log().plan_compaction(NOW) is not None


def test_a_bounded_number_of_keys_is_compacted_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompactionPlan, "__init__", _with_few_keys(CompactionPlan.__init__))
    home = table()
    for number in range(40):
        put(home, (b"k%d" % (number % 10), b"%d" % number * 10))
    fill(home)
    rounds = 0
    while home.log().clean_until < home.log().segments[-1].base_offset:
        compact(home)
        rounds += 1
    assert rounds > 1
    assert kept(home.log()) == [(number, b"%d" % number * 10) for number in range(30, 40)]


def _with_few_keys(original):  # type: ignore[no-untyped-def]
    def make(self, *args, **fields):  # type: ignore[no-untyped-def]
        original(self, *args, **{**fields, "keys_max": 4})

    return make


def test_long_keys_are_told_apart() -> None:
    home = table()
    long = b"x" * 1000
    put(home, (long + b"1", b"a"), (long + b"2", b"b"), (long + b"1", b"c"))
    fill(home)
    compact(home)
    assert kept(home.log()) == [(1, b"b"), (2, b"c")]


# -- when something goes wrong or happens meanwhile


def test_records_deleted_meanwhile_stay_deleted() -> None:
    home = table(delete=True)
    for number in range(6):
        put(home, (b"k%d" % number, b"x" * 200))
    fill(home)
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    result = execute(plan)
    home.log().delete_before(3)
    home.log().finish_compaction(result)
    assert [offset for offset, _ in kept(home.log())] == [3, 4, 5]
    assert [record.offset for record in read_all(home.kill())] == [3, 4, 5, 6]


def test_appends_meanwhile_are_kept() -> None:
    home = table()
    put(home, (b"a", b"1"), (b"a", b"2"))
    fill(home)
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    put(home, (b"a", b"3"))
    result = execute(plan)
    put(home, (b"a", b"4"))
    home.log().finish_compaction(result)
    assert kept(home.log()) == [(1, b"2"), (3, b"3"), (4, b"4")]


def test_segments_that_retention_took_meanwhile_do_not_end_compaction_for_good() -> None:
    home = table(delete=True, retention_bytes=1000)
    for number in range(6):
        put(home, (b"k%d" % number, b"v" * 300))
    fill(home)
    log = home.log()
    plan = log.plan_compaction(home.now_ms)
    assert plan is not None
    assert log.apply_retention(home.now_ms)
    log.finish_compaction(execute(plan))
    assert log.plan_compaction(home.now_ms) is not None


def test_a_manifest_that_could_not_be_made_durable_takes_no_records_with_it() -> None:
    for nth in range(1, 30):
        home = table()
        for number in range(4):
            put(home, (b"k%d" % number, b"v" * 300))
        fill(home)
        log = home.log()
        log.update_config(replace(log.config, segment_bytes=5000))
        before = contents(log)
        plan = log.plan_compaction(home.now_ms)
        assert plan is not None
        disk = FaultyDisk(home.disk, Fault(FaultKind.SYNC, nth))
        log.finish_compaction(execute(replace(plan, disk=disk)))
        assert contents(home.kill()) == before
        if not disk.struck:
            assert nth > 5
            return
    raise AssertionError("every sync should have had its turn")


def test_a_damaged_segment_is_not_compacted_and_not_tried_again() -> None:
    home = table()
    put(home, (b"a", b"1"))
    put(home, (b"a", b"2"))
    fill(home)
    home.damage("00000000000000000000.log", 65, b"\xff")
    before = home.disk.read(f"{home.directory}/00000000000000000000.log")
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    result = execute(plan)
    assert result.error is not None
    home.log().finish_compaction(result)
    assert home.disk.read(f"{home.directory}/00000000000000000000.log") == before
    assert home.log().plan_compaction(NOW) is None
    assert not any("cleaned" in name for name in home.names())


def test_a_full_disk_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    home = table()
    put(home, (b"a", b"1"), (b"a", b"2"))
    fill(home)
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    with monkeypatch.context() as patched:
        patched.setattr("lowwater.testing.simdisk.SimFile.pwrite", lambda *_: 0)
        result = execute(plan)
    assert result.retriable
    home.log().finish_compaction(result)
    assert not any("cleaned" in name for name in home.names())
    compact(home)
    assert kept(home.log()) == [(1, b"2")]


@pytest.mark.parametrize("how", ["restart", "kill", "power_cut"])
def test_a_compacted_log_reads_the_same_after(how: str) -> None:
    home = table()
    for number in range(30):
        put(home, (b"key%d" % (number % 3), b"%d" % number * 50))
    fill(home)
    compact(home)
    before = read_all(home.log())
    log = getattr(home, how)()
    assert read_all(log) == before
    assert not any("cleaned" in name for name in home.names())


def test_a_segment_of_the_size_it_had_at_the_last_stop_is_not_taken_for_the_one_of_then() -> None:
    home = table()
    put(home, (b"a", b"1" * 50))
    home.restart()
    for number in range(2, 5):
        put(home, (b"a", b"%d" % number * 50))
    fill(home)
    compact(home)
    before = read_all(home.log())
    assert read_all(home.kill()) == before


def test_a_swap_that_was_decided_is_completed_by_the_next_start() -> None:
    home = table()
    for number in range(20):
        put(home, (b"a", b"%d" % number * 50))
    fill(home)
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    assert execute(plan).error is None
    home.kill()
    assert kept(home.log()) == [(19, b"19" * 50)]


def test_a_power_cut_while_a_start_completes_a_swap_costs_no_value() -> None:
    """Whatever it leaves: the manifest may go only when all that it tells of is durable."""
    home = table(segment_bytes=300)
    for number in range(8):
        put(home, (b"key%d" % (number % 3), b"%d" % number * 200))
    fill(home)
    before = contents(home.log())
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    result = execute(replace(plan, segment_bytes=10_000))  # it was raised: many become one
    assert len(result.segments) == 1
    began = home.disk.operations
    home.kill()
    for at in range(began, home.disk.operations + 1):
        for state in home.disk.crash_states(at, subsets=0, torn=False):
            assert contents(Home(home.config, home.disk.after(state)).log()) == before, state


def test_a_swap_that_was_not_decided_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    home = table()
    for number in range(20):
        put(home, (b"a", b"%d" % number * 50))
    fill(home)
    plan = home.log().plan_compaction(NOW)
    assert plan is not None

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(compaction, "write_manifest", killed)
    with pytest.raises(Killed):
        execute(plan)
    assert any("cleaned" in name for name in home.names())
    home.kill()
    assert len(kept(home.log())) == 20
    assert not any("cleaned" in name for name in home.names())


def test_readers_keep_what_they_hold_through_a_swap() -> None:
    home = table(segment_bytes=300_000)
    put(home, (b"a", b"1" * 100_000))
    put(home, (b"a", b"2" * 100_000))
    put(home, (b"b", b"3" * 250_000))
    home.log().flush()
    part = home.log().read(0, 1 << 20, upto=3, min_one=True)
    compact(home)
    assert b"1" * 100_000 in bytes(part.buffers[0])
    assert kept(home.log())[0] == (1, b"2" * 100_000)


def test_a_plan_can_be_sent_to_another_process() -> None:
    rules = compaction.Rules(NOW, DAY_MS, frozenset())
    plan = CompactionPlan(SystemDisk(), "/nowhere", "1-0", (), 0, rules, 1000, 100, "/nowhere/marks")
    assert pickle.loads(pickle.dumps(plan)).directory == "/nowhere"
    result = execute(pickle.loads(pickle.dumps(plan)))
    assert pickle.loads(pickle.dumps(result)) == result
