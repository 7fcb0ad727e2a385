"""Durability: what a flush covers, and what happens when the disk fails or is full."""

from __future__ import annotations

import errno
import os

import pytest
from tests.unit.log.support import NOW, Home, batch_of, values

from lowwater.errors import StorageError
from lowwater.log.partition_log import run_tickets
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import SimFile


class Failing:
    """Makes calls of one file operation fail, or take only a part."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, suffix: str = ".log") -> None:
        self._original = getattr(SimFile, name)
        self.error: int | None = None
        self.short: int | None = None
        failing = self

        def call(file: SimFile, *args: object) -> object:
            if failing.error is not None:
                raise OSError(failing.error, os.strerror(failing.error))
            if failing.short is not None:
                data, position = args
                assert isinstance(data, (bytes, bytearray, memoryview))
                return failing._original(file, bytes(data)[: failing.short], position)
            return failing._original(file, *args)

        monkeypatch.setattr(SimFile, name, call)


def test_records_are_durable_after_a_flush_and_not_before() -> None:
    home = Home()
    home.append(b"a")
    assert home.log().flushed_end == 0
    home.log().flush()
    assert home.log().flushed_end == 1
    home.append(b"b")
    log = home.power_cut()
    assert values(log) == [b"a"]


def test_there_is_nothing_to_flush_twice() -> None:
    home = Home()
    assert home.log().begin_flush() is None
    home.append(b"a")
    home.log().flush()
    assert home.log().begin_flush() is None


def test_a_flush_covers_what_was_appended_before_it_began() -> None:
    home = Home()
    log = home.log()
    home.append(b"a")
    ticket = log.begin_flush()
    assert ticket is not None
    home.append(b"b")
    ticket.run(home.disk)
    log.finish_flush(ticket, None)
    assert log.flushed_end == 1
    log.flush()
    assert log.flushed_end == 2
    assert values(home.power_cut()) == [b"a", b"b"]


def test_a_later_flush_that_ends_first_has_synced_the_earlier_segments_too() -> None:
    home = Home()
    log = home.log()
    home.append(b"a" * 1500)
    first = log.begin_flush()
    home.append(b"b" * 1500)
    assert len(log.segments) == 2
    second = log.begin_flush()
    assert first is not None
    assert second is not None
    second.run(home.disk)
    log.finish_flush(second, None)
    assert log.flushed_end == 2
    assert len(values(home.power_cut())) == 2


def test_many_tickets_run_together() -> None:
    home = Home()
    logs = [home.log(partition) for partition in range(50)]
    for partition in range(50):
        home.append(b"a", partition=partition)
    tickets = [ticket for log in logs if (ticket := log.begin_flush()) is not None]
    assert run_tickets(home.disk, tickets) == [None] * 50
    for log, ticket in zip(logs, tickets, strict=True):
        log.finish_flush(ticket, None)
    home.power_cut()
    assert all(values(home.log(partition)) == [b"a"] for partition in range(50))


def test_a_shared_sync_that_fails_stops_every_log_it_was_for() -> None:
    home = Home(start=False)
    home.disk.can_sync_all = True
    faulty = FaultyDisk(home.disk, Fault(FaultKind.SYNC, 1, path_contains="/topics"))
    home.start(faulty)
    logs = [home.log(partition) for partition in range(20)]
    for partition in range(20):
        home.append(b"a", partition=partition)
    tickets = [ticket for log in logs if (ticket := log.begin_flush()) is not None]
    for log, ticket, error in zip(logs, tickets, run_tickets(faulty, tickets), strict=True):
        log.finish_flush(ticket, error)
        assert log.flushed_end == 0
        assert log.offline is not None
    assert len(faulty.struck) == 1


def test_a_failed_fsync_takes_the_log_offline_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    failing = Failing(monkeypatch, "sync")
    failing.error = errno.EIO
    with pytest.raises(StorageError) as caught:
        home.log().flush()
    assert not caught.value.retriable
    failing.error = None
    assert home.log().flushed_end == 0
    with pytest.raises(StorageError, match="offline"):
        home.append(b"b")
    with pytest.raises(StorageError, match="offline"):
        home.log().append_own(bytearray(batch_of(b"the broker's own")), NOW)
    assert home.log().offline is not None


def test_a_log_that_failed_is_recovered_by_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    failing = Failing(monkeypatch, "sync")
    failing.error = errno.EIO
    with pytest.raises(StorageError):
        home.log().flush()
    failing.error = None
    log = home.restart()
    assert not home.store.was_clean
    assert log.offline is None
    assert values(log) == [b"a"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_and_takes_over_again_later(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    home = Home()
    home.append(b"a")
    failing = Failing(monkeypatch, "pwrite")
    failing.error = code
    with pytest.raises(StorageError) as caught:
        home.append(b"b")
    assert caught.value.retriable
    assert home.log().offline is None
    failing.error = None
    assert home.append(b"c").base_offset == 1
    assert values(home.log()) == [b"a", b"c"]
    assert values(home.kill()) == [b"a", b"c"]


@pytest.mark.parametrize("taken", [0, 1, 60, 66])
def test_a_short_write_is_cut_back(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    home = Home()
    home.append(b"a")
    size = home.disk.open(f"{home.directory}/{home.names()[0]}").size()
    failing = Failing(monkeypatch, "pwrite")
    failing.short = taken
    with pytest.raises(StorageError) as caught:
        home.append(b"b")
    assert caught.value.retriable
    failing.short = None
    assert home.disk.open(f"{home.directory}/{home.names()[0]}").size() == size
    home.append(b"c")
    assert values(home.kill()) == [b"a", b"c"]


def test_a_full_disk_leaves_producers_and_offsets_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    fields = {"producer_id": 3, "producer_epoch": 0}
    home.append(b"a", base_sequence=0, **fields)
    failing = Failing(monkeypatch, "pwrite")
    failing.short = 5
    with pytest.raises(StorageError):
        home.append(b"b", base_sequence=1, **fields)
    failing.short = None
    retried = home.append(b"b", base_sequence=1, **fields)
    assert (retried.base_offset, retried.duplicate) == (1, False)


def test_an_io_error_on_a_write_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    failing = Failing(monkeypatch, "pwrite")
    failing.error = errno.EIO
    with pytest.raises(StorageError) as caught:
        home.append(b"b")
    assert not caught.value.retriable
    failing.error = None
    with pytest.raises(StorageError):
        home.append(b"b")
    assert values(home.kill()) == [b"a"]


def test_a_failed_write_that_cannot_be_undone_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    write, cut = Failing(monkeypatch, "pwrite"), Failing(monkeypatch, "truncate")
    write.short, cut.error = 5, errno.EIO
    with pytest.raises(StorageError) as caught:
        home.append(b"b")
    assert not caught.value.retriable
    write.short = cut.error = None
    assert home.log().offline is not None
    assert values(home.kill()) == [b"a"]


def test_no_room_for_a_new_segment_is_retriable(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a" * 1500)
    original = type(home.disk).open

    def full(disk: object, path: str, *, create: bool = False) -> object:
        if create and path.endswith(".log"):
            raise OSError(errno.ENOSPC, "no space left on device")
        return original(disk, path, create=create)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(type(home.disk), "open", full)
        with pytest.raises(StorageError) as caught:
            home.append(b"b" * 1500)
    assert caught.value.retriable
    assert home.append(b"b" * 1500).base_offset == 1
    assert len(home.log().segments) == 2


def test_too_many_open_files_do_not_take_a_log_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    for partition in range(20):
        home.append(b"a", partition=partition)
    home.store.close(NOW)
    home.start(files_max=8)
    original = type(home.disk).open

    def exhausted(disk: object, path: str, *, create: bool = False) -> object:
        raise OSError(errno.EMFILE, "too many open files")

    log = home.log()
    with monkeypatch.context() as patched:
        patched.setattr(type(home.disk), "open", exhausted)
        with pytest.raises(StorageError) as caught:
            log.append(batch_of(b"b"), NOW)
    assert caught.value.retriable
    assert type(home.disk).open is original
    assert log.append(batch_of(b"b"), NOW).base_offset == 1


def test_the_number_of_open_files_is_bounded() -> None:
    home = Home()
    home.store.close(NOW)
    home.start(files_max=10)
    for _ in range(3):
        for partition in range(40):
            home.append(b"a", partition=partition)
            assert home.disk.open_files <= 11  # the journal of marks is one more
    for partition in range(40):
        home.log(partition).flush()
        assert values(home.log(partition)) == [b"a"] * 3
