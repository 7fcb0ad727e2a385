"""After a stop that was not clean: what is kept, what is cut off, what is set aside."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from tests.unit.log.support import NOW, SMALL, Home, batch_of, read_all, read_bytes, values

from lowwater.log.marks import CEILING_DEFAULT
from lowwater.testing.disk_image import Truncate

FIRST = "00000000000000000000.log"


def quarantined(home: Home) -> list[bytes]:
    folder = f"{home.directory}/quarantine"
    if not home.disk.exists(folder):
        return []
    return [home.disk.read(f"{folder}/{name}") for name in sorted(home.disk.listdir(folder))]


def size_of(home: Home, name: str = FIRST) -> int:
    return len(home.disk.read(f"{home.directory}/{name}"))


def test_a_killed_broker_loses_nothing_and_leaves_no_gap() -> None:
    home = Home()
    for number in range(100):
        home.append(b"%d" % number * 20)
    log = home.kill()
    assert not home.store.was_clean
    assert len(values(log)) == 100
    assert home.append(b"next").base_offset == 100


def test_a_torn_tail_is_cut_at_the_first_bad_batch() -> None:
    home = Home()
    home.append(b"a")
    end = size_of(home)
    home.append(b"b" * 100)
    home.store.abandon()
    home.cut(FIRST, end + 90)
    home.start()
    assert values(home.log()) == [b"a"]
    assert size_of(home) == end
    assert quarantined(home) == []


def test_a_tail_of_zeros_is_cut() -> None:
    home = Home()
    home.append(b"a")
    end = size_of(home)
    home.store.abandon()
    home.damage(FIRST, end, bytes(500))
    home.start()
    assert values(home.log()) == [b"a"]
    assert size_of(home) == end
    assert quarantined(home) == []


def test_good_batches_behind_a_bad_one_are_set_aside_loudly(caplog: pytest.LogCaptureFixture) -> None:
    home = Home()
    home.append(b"a")
    hole = size_of(home)
    home.append(b"b" * 50)
    home.append(b"c" * 50)
    stored = home.disk.read(f"{home.directory}/{FIRST}")
    home.store.abandon()
    home.damage(FIRST, hole + 70, b"\xff")
    home.start()
    with caplog.at_level(logging.ERROR):
        assert values(home.log()) == [b"a"]
    damaged = bytearray(stored[hole:])
    damaged[70] = 0xFF
    assert quarantined(home) == [bytes(damaged)]
    assert "quarantine" in caplog.text


def test_segments_behind_a_bad_batch_are_set_aside_whole() -> None:
    home = Home()
    for letter in (b"a", b"b", b"c"):
        home.append(letter * 1500)
    names = [name for name in home.names() if name.endswith(".log")]
    later = [home.disk.read(f"{home.directory}/{name}") for name in names[1:]]
    home.store.abandon()
    home.damage(names[0], 100, b"\xff")
    home.start()
    assert values(home.log()) == []
    assert [content for content in quarantined(home) if content in later] == later


def test_offsets_of_set_aside_batches_are_not_given_out_again() -> None:
    home = Home()
    home.append(b"a")
    hole = size_of(home)
    home.append(b"b")
    home.append(b"c")
    home.store.abandon()
    home.damage(FIRST, hole + 62, b"\xff")
    home.start()
    assert home.log().log_end == 1
    log = home.kill()  # also when the first recovery is followed by another one
    assert log.next_offset >= 3
    assert home.append(b"d").base_offset >= 3
    assert values(home.log()) == [b"a", b"d"]


def test_a_missing_segment_ends_the_log_before_it() -> None:
    home = Home()
    for letter in (b"a", b"b", b"c"):
        home.append(letter * 1500)
    home.store.abandon()
    home.disk.unlink(f"{home.directory}/{1:020d}.log")
    home.start()
    assert values(home.log()) == [b"a" * 1500]
    assert len(quarantined(home)) == 1


def test_durable_batches_behind_damaged_records_stay_readable() -> None:
    """Damage in what was durable at the last checkpoint is the reader's to find; nothing behind it is given up."""
    home = Home()
    home.append(b"a" * 50)
    home.append(b"b")
    home.restart()
    home.append(b"c")
    home.store.abandon()
    home.damage(FIRST, 80, b"\xff")
    home.start()
    assert values(home.log(), 1) == [b"b", b"c"]


def test_only_what_was_not_durable_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    for _ in range(30):
        home.append(b"x" * 400)
    home.restart()
    home.append(b"new")
    home.store.abandon()
    scanned = []
    from lowwater.log import recovery

    original = recovery.Recovery._scan

    def noting(self: recovery.Recovery, segment: object, size: int, following: int | None) -> object:
        scanned.append(segment)
        return original(self, segment, size, following)  # type: ignore[arg-type]

    monkeypatch.setattr(recovery.Recovery, "_scan", noting)
    home.start()
    assert home.log().log_end == 31
    assert len(scanned) == 1
    assert len(home.log().segments) > 5


def test_a_checkpoint_while_running_shortens_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    for _ in range(30):
        home.append(b"x" * 400)
    home.log().flush()
    home.store.checkpoint()
    home.store.abandon()
    from lowwater.log import recovery

    monkeypatch.setattr(recovery.Recovery, "_scan", None)
    home.start()
    assert len(values(home.log())) == 30


def test_an_index_of_the_last_clean_stop_is_not_taken_for_that_of_a_segment_that_has_grown_since() -> None:
    home = Home(replace(SMALL, segment_bytes=1 << 20))
    for number in range(8):
        home.append(b"%d" % number * 100)
    home.restart()
    assert any(name.endswith(".index") for name in home.names())
    for number in range(8, 16):
        home.append(b"%d" % number * 50)
    home.log().flush()
    home.store.checkpoint()
    log = home.kill()
    assert len(log.segments) == 1, "all of it is one segment, and durable by the checkpoint"
    for number in range(16):
        assert read_all(log, number)[0].offset == number
    assert len(values(log)) == 16


def test_after_a_power_cut_appends_resume_at_the_ceiling() -> None:
    home = Home()
    home.append(b"durable")
    home.log().flush()
    home.append(b"seen by a reader, then lost")
    log = home.power_cut()
    assert (log.log_start, log.log_end) == (0, 1)
    assert home.append(b"new").base_offset == CEILING_DEFAULT
    assert [record.offset for record in read_all(log)] == [0, CEILING_DEFAULT]


def test_after_a_power_cut_a_reader_behind_the_end_waits_instead_of_being_refused() -> None:
    home = Home()
    home.append(b"a")
    home.append(b"b")
    log = home.power_cut()
    assert log.log_end == 0
    assert log.read(2, 1000, upto=log.log_end, min_one=True).size == 0
    home.append(b"c")
    assert b"c" in read_bytes(log, 2)


def test_after_a_power_cut_the_old_epoch_ends_where_the_new_one_will_begin() -> None:
    home = Home()
    home.append(b"a")
    home.log().flush()
    log = home.power_cut()
    assert log.end_offset_for_epoch(0) == (0, CEILING_DEFAULT)
    home.append(b"b")
    assert log.end_offset_for_epoch(0) == (0, CEILING_DEFAULT)


def test_the_gap_is_taken_once() -> None:
    home = Home()
    home.append(b"a")
    home.power_cut()
    home.append(b"b")
    home.log().flush()
    home.restart()
    assert home.append(b"c").base_offset == CEILING_DEFAULT + 1
    home.kill()
    assert home.append(b"d").base_offset == CEILING_DEFAULT + 2


def test_the_gap_is_not_forgotten_by_a_clean_stop_before_the_next_append() -> None:
    home = Home()
    home.append(b"a")
    home.power_cut()
    home.restart()
    assert home.append(b"b").base_offset == CEILING_DEFAULT


def test_a_partition_created_after_the_power_cut_begins_at_zero() -> None:
    home = Home()
    home.append(b"a")
    home.power_cut()
    home.created_boot = home.store.boot_count
    home.store.abandon()
    home.start()
    fresh = home.store.partition("fresh", b"f" * 16, 0, home.config, home.created_boot)
    assert fresh.append(batch_of(b"a"), NOW).base_offset == 0


def test_an_unknown_boot_id_counts_as_a_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    monkeypatch.setattr("lowwater.testing.simdisk.SimIds.boot_id", lambda _: "")
    home.kill()
    assert home.append(b"b").base_offset == CEILING_DEFAULT


def test_ceilings_rise_ahead_of_use() -> None:
    home = Home()
    log = home.log()
    log.start_at(CEILING_DEFAULT // 2 - 2)
    home.append(b"a")
    assert home.store.begin_ceilings() is None
    home.append(b"b")
    home.append(b"c")
    ticket = home.store.begin_ceilings()
    assert ticket is not None
    ticket.run()
    home.store.finish_ceilings(ticket, None)
    home.power_cut()
    assert home.append(b"d").base_offset >= CEILING_DEFAULT * 3 // 2 - 2


def test_an_append_past_the_ceiling_raises_it_first() -> None:
    home = Home()
    home.log().start_at(CEILING_DEFAULT - 1)
    home.append(b"a", b"b", b"c")
    home.power_cut()
    assert home.append(b"d").base_offset > CEILING_DEFAULT + 2


def test_half_written_files_are_removed() -> None:
    home = Home()
    home.append(b"a")
    home.store.abandon()
    for name in ("00000000000000000005.snapshot.new", "00000000000000000009.index", "00000000000000000009.timeindex"):
        home.disk.open(f"{home.directory}/{name}", create=True).close()
    home.start()
    assert values(home.log()) == [b"a"]
    assert home.names() == [FIRST]


@pytest.mark.parametrize("what", ["checkpoint", "clean"])
def test_a_damaged_checkpoint_or_marker_means_a_full_recovery(what: str) -> None:
    home = Home()
    for _ in range(20):
        home.append(b"x" * 300)
    home.store.close(NOW)
    file = home.disk.open(f"{home.path}/{what}")
    file.pwrite(b"\xff", file.size() - 1)
    home.start()
    assert not home.store.was_clean
    assert len(values(home.log())) == 20
    assert home.append(b"y").base_offset == 20


def test_files_that_changed_after_a_clean_stop_are_recovered() -> None:
    home = Home()
    home.append(b"a")
    end = size_of(home)
    home.append(b"b")
    home.store.close(NOW)
    home.cut(FIRST, end + 10)
    home.start()
    assert values(home.log()) == [b"a"]
    assert home.append(b"c").base_offset >= 2


def test_a_log_that_is_gone_after_a_clean_stop_does_not_begin_again_at_zero() -> None:
    home = Home()
    home.append(b"a")
    home.append(b"b")
    home.store.close(NOW)
    home.disk.unlink(f"{home.directory}/{FIRST}")
    home.start()
    assert values(home.log()) == []
    assert home.append(b"c").base_offset >= 2


def test_room_that_a_killed_broker_had_reserved_is_given_back() -> None:
    home = Home(replace(SMALL, segment_bytes=1 << 24, max_message_bytes=1 << 22))
    home.append(b"x" * (1 << 20))
    home.append(b"y" * (1 << 20))
    home.store.abandon()
    began, size = home.disk.operations, size_of(home)
    home.start()
    assert len(values(home.log())) == 2
    assert size in [one.size for one in home.disk.journal[began:] if isinstance(one, Truncate)]
