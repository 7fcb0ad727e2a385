"""The journal: what was appended is there again, and nothing that was torn."""

from __future__ import annotations

import errno
import os

import pytest

from lowwater.errors import StorageError
from lowwater.log.journal import Journal
from lowwater.testing.simdisk import SimDisk, SimFile

PATH = "/journal"


def opened(disk: SimDisk) -> list[bytes]:
    journal, records = Journal.open(disk, PATH)
    journal.close()
    return records


def written(*records: bytes) -> SimDisk:
    disk = SimDisk()
    journal, _ = Journal.open(disk, PATH)
    for record in records:
        journal.append([record])
    journal.sync()
    journal.close()
    return disk


def test_records_come_back_in_order() -> None:
    disk = written(b"a", b"bb", b"\x00" * 100)
    assert opened(disk) == [b"a", b"bb", b"\x00" * 100]


def test_several_records_are_one_append() -> None:
    disk = SimDisk()
    journal, records = Journal.open(disk, PATH)
    assert records == []
    journal.append([b"a", b"b"])
    journal.sync()
    assert opened(disk) == [b"a", b"b"]


def test_what_was_synced_survives_a_power_cut_with_its_name() -> None:
    disk = written(b"a")
    [state, *_] = disk.crash_states(subsets=0, torn=False)
    assert opened(disk.after(state)) == [b"a"]


@pytest.mark.parametrize("size", range(9, 19))
def test_a_torn_tail_is_cut_wherever_it_ends(size: int) -> None:
    disk = written(b"a", b"second")
    file = disk.open(PATH)
    file.truncate(size)
    assert opened(disk) == [b"a"]
    assert file.size() == 9
    journal, _ = Journal.open(disk, PATH)
    journal.append([b"third"])
    assert opened(disk) == [b"a", b"third"]


def test_good_records_beyond_a_bad_one_are_kept_aside() -> None:
    disk = written(b"first", b"second", b"third", b"fourth")
    before = bytearray(disk.read(PATH))
    before[15] ^= 1  # in the second frame
    file = disk.open(PATH)
    file.pwrite(before, 0)
    journal, records = Journal.open(disk, PATH)
    assert records == [b"first"]
    assert journal.beyond == [b"third", b"fourth"]
    assert journal.damage is not None
    assert disk.read("/journal.damaged-1") == bytes(before)


def test_a_rewrite_replaces_everything_at_once() -> None:
    disk = written(b"a", b"b", b"c")
    journal, _ = Journal.open(disk, PATH)
    before = disk.operations
    journal.rewrite([b"c"])
    journal.append([b"d"])
    journal.sync()
    assert opened(disk) == [b"c", b"d"]
    seen = set()
    for at in range(before, disk.operations + 1):
        for state in disk.crash_states(at, subsets=8):
            seen.add(tuple(opened(disk.after(state))))
    assert seen == {(b"a", b"b", b"c"), (b"c",), (b"c", b"d")}


def test_a_full_disk_leaves_the_journal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = written(b"a")
    journal, _ = Journal.open(disk, PATH)
    original = SimFile.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(SimFile, "pwrite", lambda file, data, at: original(file, bytes(data)[:3], at))
        with pytest.raises(StorageError) as caught:
            journal.append([b"second"])
    assert caught.value.retriable
    assert disk.open(PATH).size() == journal.size
    journal.append([b"third"])
    assert opened(disk) == [b"a", b"third"]


def test_a_failed_sync_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = written(b"a")
    journal, _ = Journal.open(disk, PATH)
    journal.append([b"b"])

    def broken(_: SimFile) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(SimFile, "sync", broken)
        with pytest.raises(StorageError):
            journal.sync()
    for act in (journal.sync, lambda: journal.append([b"c"])):
        with pytest.raises(StorageError) as caught:
            act()
        assert not caught.value.retriable


def test_every_flipped_byte_is_noticed() -> None:
    """Each single damage costs at most the record it hits; what is read was written."""
    records = [b"one", b"two two", b"three"]
    disk = written(*records)
    content = disk.read(PATH)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x41
        other = SimDisk()
        other.open(PATH, create=True).pwrite(damaged, 0)
        journal, found = Journal.open(other, PATH)
        everything = found + journal.beyond
        assert len(everything) == 2
        assert all(record in records for record in everything)
        assert (journal.damage is not None) == bool(journal.beyond)
