"""The simulated disk loses exactly what a power cut may lose."""

from __future__ import annotations

import pytest

from lowwater.testing.simdisk import CrashState, MappedRangeTruncatedError, SimDisk


def contents_after_power_cuts(disk: SimDisk, path: str) -> set[bytes | None]:
    """Every content of `path` that a power cut now may leave; None: the name is gone."""
    afters = [disk.after(state) for state in disk.crash_states()]
    return {after.read(path) if after.exists(path) else None for after in afters}


@pytest.fixture
def disk() -> SimDisk:
    """A disk with a durable, empty file `/d/f`."""
    disk = SimDisk()
    disk.mkdir("/d")
    disk.open("/d/f", create=True).close()
    disk.sync_dir("/d")
    disk.sync_dir("/")
    return disk


def test_an_unsynced_write_is_lost_or_kept(disk: SimDisk) -> None:
    disk.open("/d/f").pwrite(b"hello", 0)
    assert contents_after_power_cuts(disk, "/d/f") == {b"", b"hello"}


def test_a_synced_write_is_kept_in_every_state(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.pwrite(b"hello", 0)
    file.sync()
    assert contents_after_power_cuts(disk, "/d/f") == {b"hello"}


def test_a_sync_covers_only_its_own_file(disk: SimDisk) -> None:
    other = disk.open("/d/g", create=True)
    disk.sync_dir("/d")
    disk.open("/d/f").pwrite(b"hello", 0)
    other.pwrite(b"x", 0)
    other.sync()
    assert contents_after_power_cuts(disk, "/d/f") == {b"", b"hello"}
    assert contents_after_power_cuts(disk, "/d/g") == {b"x"}


def test_each_of_two_writes_is_lost_on_its_own_and_leaves_a_hole_of_zeros(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.pwrite(b"aa", 0)
    file.pwrite(b"bb", 2)
    assert contents_after_power_cuts(disk, "/d/f") == {b"", b"aa", b"\0\0bb", b"aabb"}


def test_the_last_write_is_torn_at_a_sector(disk: SimDisk) -> None:
    data = b"a" * 300 + b"b" * 512 + b"c" * 512
    disk.open("/d/f").pwrite(data, 212)
    sizes = {len(content or b"") for content in contents_after_power_cuts(disk, "/d/f")}
    assert sizes == {0, 512, 1024, 212 + len(data)}
    assert bytes(1024) + b"c" * 512 in contents_after_power_cuts(disk, "/d/f")


def test_a_new_file_vanishes_without_a_sync_of_its_directory(disk: SimDisk) -> None:
    file = disk.open("/d/new", create=True)
    file.pwrite(b"x", 0)
    file.sync()
    assert contents_after_power_cuts(disk, "/d/new") == {None, b"x"}
    disk.sync_dir("/d")
    assert contents_after_power_cuts(disk, "/d/new") == {b"x"}


def test_a_directory_vanishes_with_all_in_it_without_a_sync_of_its_parent(disk: SimDisk) -> None:
    disk.mkdir("/d/sub")
    file = disk.open("/d/sub/f", create=True)
    file.pwrite(b"x", 0)
    file.sync()
    disk.sync_dir("/d/sub")
    assert contents_after_power_cuts(disk, "/d/sub/f") == {None, b"x"}


def test_an_unsynced_rename_leaves_the_old_or_the_new_name_never_both(disk: SimDisk) -> None:
    disk.rename("/d/f", "/d/g")
    listings = {tuple(disk.after(state).listdir("/d")) for state in disk.crash_states()}
    assert listings == {("f",), ("g",)}


def test_an_unsynced_unlink_may_come_back(disk: SimDisk) -> None:
    disk.unlink("/d/f")
    assert contents_after_power_cuts(disk, "/d/f") == {None, b""}
    disk.sync_dir("/d")
    assert contents_after_power_cuts(disk, "/d/f") == {None}


def test_an_unsynced_truncation_may_come_back(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.pwrite(b"hello", 0)
    file.sync()
    file.truncate(2)
    assert contents_after_power_cuts(disk, "/d/f") == {b"hello", b"he"}


def test_what_a_failed_sync_should_have_covered_stays_in_doubt(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.pwrite(b"aa", 0)
    disk.fail_sync(file)
    file.pwrite(b"bb", 2)
    file.sync()
    assert contents_after_power_cuts(disk, "/d/f") == {b"\0\0bb", b"aabb"}


def test_a_killed_process_loses_no_write_and_keeps_the_boot_id(disk: SimDisk) -> None:
    disk.open("/d/f").pwrite(b"hello", 0)
    [state] = disk.kill_states()
    after = disk.after(state)
    assert after.read("/d/f") == b"hello"
    assert after.boot_id == disk.boot_id


def test_a_power_cut_changes_the_boot_id(disk: SimDisk) -> None:
    assert disk.after(CrashState(disk.operations)).boot_id != disk.boot_id


def test_states_of_an_earlier_prefix_know_nothing_of_later_operations(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.pwrite(b"aa", 0)
    at = disk.operations
    file.pwrite(b"bb", 2)
    file.sync()
    assert {disk.after(state).read("/d/f") for state in disk.crash_states(at)} == {b"", b"aa"}


def test_the_same_state_is_listed_once(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    for at in range(10):
        file.pwrite(b"x" * 2000, at * 2000)
    states = list(disk.crash_states())
    assert len(states) == len(set(states)) > 64


def test_a_map_sees_later_writes_within_its_range(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.pwrite(b"abcd", 0)
    view = file.map(3)
    file.pwrite(b"XYZ", 2)
    assert bytes(view) == b"abX"


def test_truncating_a_mapped_range_is_an_error_while_a_slice_of_the_map_lives(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.pwrite(b"abcd", 0)
    part = file.map(4)[1:2]
    with pytest.raises(MappedRangeTruncatedError):
        file.truncate(2)
    part.release()
    del part
    file.truncate(2)


def test_missing_paths_are_refused_as_an_operating_system_does(disk: SimDisk) -> None:
    for call in (disk.read, disk.open, disk.unlink, disk.listdir, disk.sync_dir, disk.modified_ms):
        with pytest.raises(FileNotFoundError):
            call("/d/none")
    with pytest.raises(OSError, match="not empty"):
        disk.rmdir("/d")
    with pytest.raises(IsADirectoryError):
        disk.open("/d")
    with pytest.raises(FileNotFoundError):
        disk.open("/none/f", create=True)


def test_a_closed_file_is_refused(disk: SimDisk) -> None:
    file = disk.open("/d/f")
    file.close()
    with pytest.raises(OSError, match="Bad file"):
        file.pread(1, 0)
    assert disk.open_files == 0


def test_a_lock_is_held_by_one_until_released_or_the_process_is_gone(disk: SimDisk) -> None:
    lock = disk.lock("/d/lock")
    with pytest.raises(BlockingIOError):
        disk.lock("/d/lock")
    lock.release()
    disk.lock("/d/lock")
    disk.drop_process()
    disk.lock("/d/lock")
