"""The real disk keeps the promises of the port."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lowwater import system
from lowwater.system import SystemClock, SystemDisk, SystemIds


@pytest.fixture
def disk() -> SystemDisk:
    return SystemDisk()


def test_a_file_is_created_only_when_asked_for(disk: SystemDisk, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(f"{tmp_path}/a")
    disk.open(f"{tmp_path}/a", create=True).close()
    disk.open(f"{tmp_path}/a").close()


def test_positions_are_absolute_and_reads_end_with_the_file(disk: SystemDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    assert file.pwrite(memoryview(bytearray(b"hello")), 3) == 5
    assert file.pread(100, 3) == b"hello"
    assert file.pread(2, 4) == b"el"
    assert file.pread(5, 100) == b""
    assert file.size() == 8
    file.truncate(5)
    assert disk.read(f"{tmp_path}/a") == b"\0\0\0he"
    file.close()


def test_a_map_outlives_the_file_and_its_name(disk: SystemDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.pwrite(b"hello", 0)
    view = file.map(5)
    file.close()
    disk.unlink(f"{tmp_path}/a")
    assert bytes(view) == b"hello"
    assert view.readonly


def test_a_map_holds_no_file_handle_and_goes_with_its_last_view(disk: SystemDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.pwrite(b"hello", 0)
    handles = len(os.listdir("/proc/self/fd"))
    part = file.map(5)[1:3]
    assert len(os.listdir("/proc/self/fd")) == handles
    assert bytes(part) == b"el"
    assert f"{tmp_path}/a" in Path("/proc/self/maps").read_text()
    del part
    assert f"{tmp_path}/a" not in Path("/proc/self/maps").read_text()
    file.close()


def test_a_map_that_cannot_be_had_is_an_error(disk: SystemDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    with pytest.raises(OSError, match="mmap"):
        file.map(0)
    file.close()


def test_reserved_room_does_not_change_the_size(disk: SystemDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.pwrite(b"hello", 0)
    file.allocate(5, 1 << 20)
    assert file.size() == 5
    assert file.pread(100, 0) == b"hello"
    file.truncate(5)
    assert os.stat(f"{tmp_path}/a").st_blocks * 512 < 1 << 20
    file.close()


def test_what_was_just_written_is_cached(disk: SystemDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.pwrite(bytes(500_000), 0)
    assert file.is_cached(0, 500_000)
    assert file.is_cached(499_999, 1)
    file.close()


def test_what_was_dropped_from_memory_is_not_cached_until_it_is_read(disk: SystemDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.pwrite(os.urandom(1 << 20), 0)
    file.sync()
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if file.is_cached(0, 1 << 20):
        pytest.skip("this file system keeps its files in memory, or does not tell")
    file.pread(1 << 20, 0)
    assert file.is_cached(0, 1 << 20)
    file.close()


def test_names_are_listed_renamed_and_removed(disk: SystemDisk, tmp_path: Path) -> None:
    disk.mkdir(f"{tmp_path}/d")
    disk.mkdir(f"{tmp_path}/d")
    for name in "ab":
        disk.open(f"{tmp_path}/d/{name}", create=True).close()
    disk.rename(f"{tmp_path}/d/a", f"{tmp_path}/d/b")
    assert disk.listdir(f"{tmp_path}/d") == ["b"]
    assert disk.exists(f"{tmp_path}/d/b")
    assert not disk.exists(f"{tmp_path}/d/a")
    disk.sync_dir(f"{tmp_path}/d")
    disk.unlink(f"{tmp_path}/d/b")
    disk.rmdir(f"{tmp_path}/d")
    assert disk.listdir(str(tmp_path)) == []


def test_a_file_in_the_place_of_a_directory_is_an_error(disk: SystemDisk, tmp_path: Path) -> None:
    disk.open(f"{tmp_path}/d", create=True).close()
    with pytest.raises(FileExistsError):
        disk.mkdir(f"{tmp_path}/d")


def test_a_lock_is_held_alone_and_can_be_taken_again(disk: SystemDisk, tmp_path: Path) -> None:
    lock = disk.lock(f"{tmp_path}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{tmp_path}/.lock")
    lock.release()
    disk.lock(f"{tmp_path}/.lock").release()


def test_many_files_are_synced_at_once_where_the_system_reports_errors(
    disk: SystemDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = "6.1.0"
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "host", release, "", "x86_64")))
    assert disk.sync_all(f"{tmp_path}/topics") is False, "nobody holds the directory"
    lock = disk.lock(f"{tmp_path}/.lock")
    assert disk.sync_all(f"{tmp_path}/topics") is True
    release = "5.7.19-generic"
    assert disk.sync_all(f"{tmp_path}/topics") is False
    release = "unheard of"
    assert disk.sync_all(f"{tmp_path}/topics") is False
    lock.release()
    release = "6.1.0"
    assert disk.sync_all(f"{tmp_path}/topics") is False


def test_a_failed_sync_of_everything_stays_failed(
    disk: SystemDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        @staticmethod
        def syncfs(fd: int) -> int:
            return -1

    lock = disk.lock(f"{tmp_path}/.lock")
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "host", "6.1.0", "", "x86_64")))
    with monkeypatch.context() as patched:
        patched.setattr(system, "_libc", Broken())
        with pytest.raises(OSError, match="syncfs"):
            disk.sync_all(f"{tmp_path}/topics")
    with pytest.raises(OSError, match="syncfs"):
        disk.sync_all(f"{tmp_path}/topics")
    lock.release()


def test_room_is_told(disk: SystemDisk, tmp_path: Path) -> None:
    assert 0 < disk.free_bytes(str(tmp_path)) <= disk.total_bytes(str(tmp_path))


def test_times_are_told_in_milliseconds(disk: SystemDisk, tmp_path: Path) -> None:
    clock = SystemClock()
    disk.open(f"{tmp_path}/a", create=True).close()
    assert abs(clock.now_ms() - disk.modified_ms(f"{tmp_path}/a")) < 60_000
    assert clock.monotonic_ms() <= clock.monotonic_ms()


def test_ids_are_random_and_the_boot_id_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = SystemIds()
    assert len({ids.uuid() for _ in range(100)}) == 100
    assert len(ids.uuid()) == 16
    assert ids.boot_id() == SystemIds().boot_id()
    monkeypatch.setattr(system, "BOOT_ID_PATH", "/nowhere")
    assert ids.boot_id() == ""
