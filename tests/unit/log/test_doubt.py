"""After a failed fsync the page cache shows what no disk has: the next process on the same boot must not build on it.

And what a compacted log may lack after a power cut: only what compaction took, or its end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.log.support import NOW, SMALL, Home, batch_of, keyed, values

from lowwater.errors import StorageError
from lowwater.log import flush
from lowwater.log.compaction import execute
from lowwater.log.flush import run_tickets
from lowwater.log.marks import CEILING_DEFAULT
from lowwater.testing.disk_image import Write
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState

TABLE = replace(SMALL, compact=True, delete=False, segment_bytes=400, min_cleanable_dirty_ratio=0.0)


def home_with_failed_sync(path_contains: str) -> Home:
    """Started through a disk whose next sync of such a file fails."""
    home = Home(start=False)
    home.start(FaultyDisk(home.disk, Fault(FaultKind.SYNC, 1, path_contains=path_contains)))
    return home


def all_lost(home: Home) -> Home:
    """The machine after a power cut that took everything it may take."""
    lost = max(home.disk.crash_states(subsets=0, torn=False), key=lambda state: len(state.lost))
    after = Home(home.config, home.disk.after(lost), start=False)
    after.start()
    return after


def test_records_of_a_failed_sync_are_written_again_before_others_are_acked_behind_them() -> None:
    home = home_with_failed_sync(".log")
    home.append(b"in doubt")
    with pytest.raises(StorageError):
        home.log().flush()
    home.kill()
    home.append(b"acked")
    home.log().flush()
    assert values(all_lost(home).log()) == [b"in doubt", b"acked"]


def test_a_failed_sync_makes_the_next_stop_unclean_and_a_good_run_settles_it() -> None:
    home = home_with_failed_sync(".log")
    home.append(b"in doubt")
    with pytest.raises(StorageError):
        home.log().flush()
    home.restart()
    assert not home.store.was_clean
    assert home.disk.exists(f"{home.path}/in-doubt")
    home.restart()
    assert home.store.was_clean
    assert not home.disk.exists(f"{home.path}/in-doubt")
    assert values(home.log()) == [b"in doubt"]


@pytest.mark.parametrize("shared", [False, True])
def test_a_process_that_dies_before_it_hears_of_its_failed_sync_leaves_the_doubt_behind(
    monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """Syncs run in threads: between the failure and the event loop there is time for a kill."""
    monkeypatch.setattr(flush, "SHARED_FROM", 1 if shared else 1000)
    home = Home(start=False)
    home.disk.can_sync_all = True
    faulty = FaultyDisk(home.disk, Fault(FaultKind.SYNC, 1, path_contains="/topics"))
    home.start(faulty)
    home.append(b"in doubt")
    ticket = home.log().begin_flush()
    assert ticket is not None
    assert run_tickets(faulty, [ticket]) != [None]
    home.kill()
    home.append(b"acked")
    home.log().flush()
    assert values(all_lost(home).log()) == [b"in doubt", b"acked"]


def test_a_ceiling_of_a_failed_sync_is_durable_before_it_is_used() -> None:
    home = Home()
    home.store.abandon()
    faulty = FaultyDisk(home.disk, Fault(FaultKind.SYNC, 2, path_contains="/marks"))  # the first is that of the start
    home.start(faulty)
    home.log().start_at(0)
    home.log().set_ceiling(CEILING_DEFAULT)
    home.log().log_end = CEILING_DEFAULT - 1
    with pytest.raises(StorageError):
        home.append(b"a", b"b")
    assert faulty.struck
    home.store.abandon()
    home.start()
    ceiling = home.store._marks.ceiling_of(home.log().key)
    assert ceiling > CEILING_DEFAULT, "it is read from the page cache"
    after = all_lost(home)
    assert after.store._marks.ceiling_of(after.log().key) == ceiling


def test_a_stop_is_not_clean_when_the_marks_are_in_doubt() -> None:
    home = home_with_failed_sync("nothing")
    home.append(b"a")
    home.store._marks._journal.failure = "fsync failed"
    home.restart()
    assert not home.store.was_clean


def test_a_broker_starts_on_a_full_disk() -> None:
    home = Home()
    home.append(b"a")
    home.store.abandon()
    faulty = FaultyDisk(home.disk, Fault(FaultKind.ENOSPC, 1, lasting=True, path_contains="marks.new"))
    home.start(faulty)
    assert faulty.struck
    assert values(home.log()) == [b"a"]
    assert home.append(b"b").base_offset == 1


def test_a_compacted_log_ends_where_a_power_cut_tore_a_hole_and_its_producer_can_go_on() -> None:
    home = Home(TABLE)
    for sequence in range(4):
        value = b"%d" % sequence * 250
        home.log().append(
            keyed((b"key-%d" % sequence, value), producer_id=7, producer_epoch=0, base_sequence=sequence), NOW
        )
    assert [segment.base_offset for segment in home.log().segments] == [0, 1, 2, 3]
    lost = {
        index
        for index, operation in enumerate(home.disk.journal)
        if isinstance(operation, Write) and b"1" * 250 in operation.data
    }
    after = Home(TABLE, home.disk.after(CrashState(home.disk.operations, frozenset(lost))))
    assert values(after.log()) == [b"0" * 250]
    again = keyed((b"key-1", b"again"), producer_id=7, producer_epoch=0, base_sequence=1)
    assert not after.log().append(again, NOW).duplicate
    assert values(after.log()) == [b"0" * 250, b"again"]


def compacted() -> Home:
    """Six values of one key, of which compaction has left the last and a gap before it."""
    home = Home(TABLE)
    for number in range(6):
        home.log().append(keyed((b"k", b"%d" % number * 250)), NOW)
    home.log().flush()
    plan = home.log().plan_compaction(NOW)
    assert plan is not None
    home.log().finish_compaction(execute(plan))
    assert len(values(home.log())) < 6
    return home


def test_the_gaps_of_compaction_are_no_loss_whatever_a_power_cut_leaves(caplog: pytest.LogCaptureFixture) -> None:
    home = compacted()
    left = values(home.log())
    for state in home.disk.crash_states(torn=False):
        after = Home(TABLE, home.disk.after(state))
        assert values(after.log()) == left
    assert "are lost" not in caplog.text


def test_the_gaps_of_compaction_end_no_log_also_when_nothing_but_the_marks_tells_of_them() -> None:
    home = compacted()
    left = values(home.log())
    home.store.abandon()
    for name in home.names():
        if name.endswith(".sums"):
            home.disk.unlink(f"{home.directory}/{name}")
    home.start()
    assert values(home.log()) == left
    assert home.log().append(batch_of(b"next"), NOW).base_offset == 6
