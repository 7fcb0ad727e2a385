"""The data directory: who may use it, what it holds, how it starts and stops."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from tests.unit.log.support import NOW, SMALL, TOPIC_ID, Home, batch_of, values

from lowwater.errors import StorageError
from lowwater.log.config import LogConfig
from lowwater.log.segment import Segment
from lowwater.log.store import LogStore
from lowwater.system import SystemDisk, SystemIds
from lowwater.testing.simdisk import SimDisk, SimFile, SimIds


def test_two_brokers_cannot_share_a_directory() -> None:
    home = Home()
    with pytest.raises(StorageError, match="/data is in use"):
        LogStore.open(home.disk, home.path, now_ms=NOW, ids=SimIds(home.disk))
    home.store.close(NOW)
    home.start()


def test_a_refused_open_leaves_the_lock_alone(tmp_path: Path) -> None:
    disk, ids = SystemDisk(), SystemIds()
    store = LogStore.open(disk, str(tmp_path / "data"), now_ms=NOW, ids=ids)
    for _ in range(2):
        with pytest.raises(StorageError, match="in use"):
            LogStore.open(disk, str(tmp_path / "data"), now_ms=NOW, ids=ids)
    store.close(NOW)
    LogStore.open(disk, str(tmp_path / "data"), now_ms=NOW, ids=ids).close(NOW)


def test_an_unknown_format_is_refused_and_left_as_it_is() -> None:
    home = Home()
    home.append(b"a")
    home.store.close(NOW)
    file = home.disk.open("/data/format")
    file.pwrite(b"lowwater 9\n", 0)
    before = dict(home.disk.image.walk())
    with pytest.raises(StorageError, match="lowwater 9"):
        home.start()
    assert {path: content for path, content in home.disk.image.walk() if path != "/data/.lock"} == {
        path: content for path, content in before.items() if path != "/data/.lock"
    }


def test_data_without_a_format_is_refused() -> None:
    home = Home()
    home.store.close(NOW)
    home.disk.unlink("/data/format")
    with pytest.raises(StorageError, match="no format file"):
        home.start()


def test_after_a_clean_stop_no_segment_is_opened_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    for partition in range(30):
        home.append(b"a", partition=partition)
    home.store.close(NOW)
    opened: list[str] = []
    original = SimDisk.open

    def noting(disk: SimDisk, path: str, *, create: bool = False) -> SimFile:
        opened.append(path)
        return original(disk, path, create=create)

    monkeypatch.setattr(SimDisk, "open", noting)
    home.start()
    assert home.store.was_clean
    logs = [home.log(partition) for partition in range(30)]
    assert [(log.log_start, log.log_end, log.size_bytes > 0) for log in logs] == [(0, 1, True)] * 30
    assert not any("/topics/" in path for path in opened)
    assert values(logs[7]) == [b"a"]
    assert any("/topics/" in path for path in opened)


def test_logs_that_were_not_used_stay_known_over_clean_stops() -> None:
    home = Home()
    home.append(b"a")
    home.restart()
    home.store.close(NOW)
    home.start()
    home.store.close(NOW)  # not even asked for
    home.start()
    assert home.store.was_clean
    assert values(home.log()) == [b"a"]


def test_a_clean_stop_is_clean_only_once() -> None:
    home = Home()
    home.append(b"a")
    home.restart()
    assert home.store.was_clean
    home.kill()
    assert not home.store.was_clean


def test_the_clean_marker_is_gone_for_good_before_anything_is_loaded() -> None:
    home = Home()
    home.append(b"a")
    home.store.close(NOW)
    home.start()
    home.append(b"b")
    home.power_cut(keep_unsynced=True)
    assert not home.store.was_clean
    assert values(home.log()) == [b"a", b"b"]


def test_starts_are_counted() -> None:
    home = Home()
    assert home.store.boot_count == 1
    home.restart()
    home.kill()
    home.power_cut()
    assert home.store.boot_count == 4


def test_starts_are_still_counted_when_the_marks_are_lost() -> None:
    home = Home()
    for _ in range(5):
        home.restart()
    home.store.close(NOW)
    home.disk.unlink("/data/marks")
    home.start()
    assert home.store.boot_count > 5


def test_the_same_log_is_given_out_again() -> None:
    home = Home()
    assert home.log() is home.log()


def test_topic_names_share_no_directory() -> None:
    home = Home()
    long = "t" * 249
    for number, name in enumerate((long, long[:-1] + "u", "a.b", "a_b", "..a")):
        log = home.store.partition(name, bytes([number]) * 16, 0, SMALL, 1)
        log.append(batch_of(b"%d" % number), NOW)
    for number, name in enumerate((long, long[:-1] + "u", "a.b", "a_b", "..a")):
        assert values(home.store.partition(name, bytes([number]) * 16, 0, SMALL, 1)) == [b"%d" % number]
    names = home.disk.listdir("/data/topics")
    assert len(names) == 5
    assert max(map(len, names)) < 150


def test_a_deleted_topic_is_gone_and_a_new_one_of_its_name_is_empty() -> None:
    home = Home()
    home.append(b"a")
    log = home.log()
    home.store.begin_delete_topic(TOPIC_ID)()
    assert home.disk.listdir("/data/topics") == []
    with pytest.raises(StorageError, match="deleted"):
        log.append(batch_of(b"b"), NOW)
    again = home.store.partition("orders", b"n" * 16, 0, SMALL, 1)
    assert (again.log_start, again.log_end) == (0, 0)
    home.restart()
    assert home.store.partition("orders", b"n" * 16, 0, SMALL, 1).log_end == 0


def test_files_of_a_deleted_topic_can_be_removed_later() -> None:
    home = Home()
    home.append(b"a")
    remove = home.store.begin_delete_topic(TOPIC_ID)
    assert home.disk.listdir("/data/topics")
    remove()
    remove()
    assert home.disk.listdir("/data/topics") == []


def test_leftovers_of_deleted_topics_are_removed() -> None:
    home = Home()
    home.append(b"a")
    home.store.partition("dead", b"d" * 16, 3, SMALL, 1).append(batch_of(b"b"), NOW)
    home.store.close(NOW)
    home.start()
    home.store.remove_leftovers(lambda topic_id: topic_id == TOPIC_ID)
    assert [name.partition("-")[0] for name in home.disk.listdir("/data/topics")] == ["orders"]
    assert values(home.log()) == [b"a"]


def test_a_log_that_cannot_be_recovered_does_not_keep_the_others_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    home.append(b"b", partition=1)
    home.store.abandon()
    home.start()
    original = SimDisk.open

    def broken(disk: SimDisk, path: str, *, create: bool = False) -> SimFile:
        if "/0/" in path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return original(disk, path, create=create)

    with monkeypatch.context() as patched:
        patched.setattr(SimDisk, "open", broken)
        assert home.log(0).offline is not None
        assert values(home.log(1)) == [b"b"]
    home.restart()
    assert not home.store.was_clean
    assert values(home.log(0)) == [b"a"]


def test_a_log_that_cannot_be_opened_after_a_clean_stop_is_not_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    log = home.restart()

    def exhausted(disk: SimDisk, path: str, *, create: bool = False) -> SimFile:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    with monkeypatch.context() as patched:
        patched.setattr(SimDisk, "open", exhausted)
        with pytest.raises(StorageError) as caught:
            values(log)
    assert caught.value.retriable
    assert values(log) == [b"a"]


def test_the_real_disk_holds_what_it_is_given(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    config = LogConfig(segment_bytes=1 << 20)

    def start() -> LogStore:
        return LogStore.open(SystemDisk(), path, now_ms=NOW, ids=SystemIds())

    store = start()
    log = store.partition("orders", TOPIC_ID, 0, config, 1)
    for number in range(300):
        log.append(batch_of(b"%d" % number * 5000), NOW)
    log.flush()
    before = values(log)
    store.close(NOW)
    store = start()
    assert store.was_clean
    assert values(store.partition("orders", TOPIC_ID, 0, config, 1)) == before
    store.abandon()
    store = start()
    log = store.partition("orders", TOPIC_ID, 0, config, 1)
    assert values(log) == before
    assert log.append(batch_of(b"next"), NOW).base_offset == 300
    store.close(NOW)


def blocks_of(segment: Segment) -> int:
    """What its file takes on disk, in bytes."""
    return Path(segment.path).stat().st_blocks * 512


@pytest.mark.parametrize("how", ["stop", "roll"])
def test_reserved_room_is_given_back(tmp_path: Path, how: str) -> None:
    store = LogStore.open(SystemDisk(), str(tmp_path / "data"), now_ms=NOW, ids=SystemIds())
    log = store.partition("orders", TOPIC_ID, 0, LogConfig(segment_bytes=9_500_000), 1)
    for _ in range(9):
        log.append(batch_of(b"x" * 1_000_000), NOW)
    segment = log.segments[0]
    size = segment.size
    if blocks_of(segment) < size + 1_000_000:
        pytest.skip("nothing can be reserved on this file system")
    if how == "roll":
        log.append(batch_of(b"x" * 1_000_000), NOW)
        assert segment.is_sealed
        assert blocks_of(segment) < size + 1_000_000
    store.close(NOW)
    assert Path(segment.path).stat().st_size == size
    assert blocks_of(segment) < size + 1_000_000


def test_a_stop_that_fails_does_not_keep_the_directory_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.append(b"a")
    with monkeypatch.context() as patched:
        patched.setattr(SimFile, "pwrite", lambda *_: 0)
        with pytest.raises(StorageError):
            home.store.close(NOW)
    home.start()
    assert not home.store.was_clean
    assert values(home.log()) == [b"a"]


def test_directories_that_are_no_topics_are_left_alone() -> None:
    home = Home()
    strange = "/data/topics/backup-" + "z" * 32
    home.disk.mkdir(strange)
    home.store.remove_leftovers(lambda _: False)
    assert home.disk.exists(strange)
