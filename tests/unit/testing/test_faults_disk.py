"""Each fault hits the operation it names, once or from there on."""

from __future__ import annotations

import errno

import pytest

from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk, every_fault
from lowwater.testing.simdisk import SimDisk


def test_only_the_nth_operation_fails() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.EIO, 3))
    file = disk.open("/f", create=True)
    assert file.pwrite(b"a", 0) == 1
    with pytest.raises(OSError, match="Input/output") as error:
        file.pwrite(b"b", 1)
    assert error.value.errno == errno.EIO
    assert file.pwrite(b"c", 1) == 1
    assert disk.struck == ["pwrite /f"]


def test_a_lasting_fault_ends_when_healed() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.ENOSPC, 2, lasting=True))
    file = disk.open("/f", create=True)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            file.pwrite(b"a", 0)
    disk.heal()
    assert file.pwrite(b"a", 0) == 1


def test_a_short_write_takes_the_first_half() -> None:
    inner = SimDisk()
    file = FaultyDisk(inner, Fault(FaultKind.SHORT_WRITE, 1)).open("/f", create=True)
    assert file.pwrite(b"abcd", 0) == 2
    assert inner.read("/f") == b"ab"


def test_a_failed_sync_leaves_the_data_in_doubt() -> None:
    inner = SimDisk()
    disk = FaultyDisk(inner, Fault(FaultKind.SYNC, 2))
    file = disk.open("/f", create=True)
    disk.sync_dir("/")
    file.pwrite(b"abcd", 0)
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.sync()
    assert {inner.after(state).read("/f") for state in inner.crash_states()} == {b"", b"abcd"}


def test_the_enumeration_ends_with_the_first_run_that_meets_no_fault() -> None:
    def run(fault: Fault) -> bool:
        disk = FaultyDisk(SimDisk(), fault)
        try:
            file = disk.open("/f", create=True)
            file.pwrite(b"a", 0)
            file.sync()
        except OSError:
            return True
        return bool(disk.struck)

    assert every_fault(FaultKind.EIO, run) == 3
    assert every_fault(FaultKind.SYNC, run) == 1


def test_a_fault_can_be_bound_to_some_files() -> None:
    disk = FaultyDisk(SimDisk(), Fault(FaultKind.EIO, 1, lasting=True, path_contains=".log"))
    disk.open("/f.index", create=True).pwrite(b"a", 0)
    with pytest.raises(OSError, match="Input/output"):
        disk.open("/f.log", create=True)
