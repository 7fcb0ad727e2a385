"""A few handles for many files."""

from __future__ import annotations

import errno

import pytest

from lowwater.log.files import SHOWN_BYTES_MAX, FileCache
from lowwater.testing.simdisk import SimDisk, SimFile


def disk_with(count: int) -> SimDisk:
    disk = SimDisk()
    for number in range(count):
        file = disk.open(f"/{number}", create=True)
        file.pwrite(b"%d" % number, 0)
        file.close()
    return disk


def test_files_are_closed_and_opened_again_behind_the_scenes() -> None:
    disk = disk_with(50)
    cache = FileCache(disk, limit=10)
    entries = [cache.open(f"/{number}") for number in range(50)]
    assert disk.open_files <= 10
    assert [entry.file().pread(9, 0) for entry in entries] == [b"%d" % number for number in range(50)]
    assert disk.open_files <= 10


def test_what_is_used_stays_open() -> None:
    disk = disk_with(50)
    cache = FileCache(disk, limit=10)
    hot = cache.open("/0")
    opened = hot.file()
    for number in range(1, 50):
        cache.open(f"/{number}")
        assert hot.file() is opened


def test_a_pinned_file_is_not_closed() -> None:
    disk = disk_with(50)
    cache = FileCache(disk, limit=10)
    entry = cache.open("/0")
    file = entry.pin()
    for number in range(1, 50):
        cache.open(f"/{number}")
    assert file.pread(1, 0) == b"0"
    entry.unpin()


def test_a_pinned_file_that_is_forgotten_is_closed_by_the_last_unpin() -> None:
    disk = disk_with(1)
    cache = FileCache(disk, limit=10)
    entry = cache.open("/0")
    file = entry.pin()
    entry.pin()
    cache.forget(entry)
    entry.unpin()
    assert file.pread(1, 0) == b"0"
    entry.unpin()
    assert disk.open_files == 0


def test_a_map_outlives_its_file() -> None:
    disk = disk_with(1)
    cache = FileCache(disk, limit=10)
    entry = cache.open("/0")
    view = entry.mapped(1)
    cache.forget(entry)
    assert bytes(view) == b"0"


def test_a_map_is_made_anew_when_the_file_has_grown() -> None:
    disk = disk_with(1)
    entry = FileCache(disk, limit=10).open("/0")
    assert entry.mapped(1) is entry.mapped(1)
    entry.file().pwrite(b"longer", 0)
    assert bytes(entry.mapped(6)) == b"longer"
    assert len(entry.mapped(3)) == 6


def test_maps_are_dropped_once_enough_was_read_through_them() -> None:
    disk = disk_with(3)
    cache = FileCache(disk, limit=16)
    entries = [cache.open(f"/{number}") for number in range(3)]
    held = entries[0].mapped(1, SHOWN_BYTES_MAX // 2)
    entries[1].mapped(1, SHOWN_BYTES_MAX // 2)
    assert [entry.view is not None for entry in entries] == [True, True, False]
    entries[2].mapped(1, 1)
    assert [entry.view is not None for entry in entries] == [False, False, True]
    assert bytes(held) == b"0", "a reader keeps what it holds"
    assert bytes(entries[0].mapped(1, 1)) == b"0"


def test_when_handles_run_out_others_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = disk_with(40)
    cache = FileCache(disk, limit=100)
    original = SimDisk.open

    def scarce(disk: SimDisk, path: str, *, create: bool = False) -> SimFile:
        if disk.open_files >= 20:
            raise OSError(errno.EMFILE, "too many open files")
        return original(disk, path, create=create)

    monkeypatch.setattr(SimDisk, "open", scarce)
    entries = [cache.open(f"/{number}") for number in range(40)]
    assert [entry.file().pread(9, 0) for entry in entries] == [b"%d" % number for number in range(40)]
