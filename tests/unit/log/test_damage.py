"""Every byte of a small log, its indexes, snapshots, marks and checkpoint flipped, zeroed and cut off.

Whatever is read afterwards was written, at that offset, or says itself that it is not (its CRC). What cannot be read is
an error, or was reported as lost. Damage beside the log costs no record at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.unit.log.support import NOW, Home, batches_in, read_bytes

from lowwater.errors import StorageError
from lowwater.log.config import LogConfig
from lowwater.log.partition_log import PartitionLog
from lowwater.testing.disk_image import Image
from lowwater.testing.simdisk import SimDisk
from lowwater.wire.records import BatchHeader, crc_ok

CONFIG = LogConfig(segment_bytes=330, index_interval_bytes=64)
WITHOUT_INDEX = LogConfig(segment_bytes=330)
EPOCH = slice(12, 16)  # outside the CRC: see `_comparable`


class Written(NamedTuple):
    """A data directory as the last process left it, and what it held."""

    image: Image
    batches: dict[int, bytes]
    log_start: int
    log_end: int
    config: LogConfig


def write(*, clean: bool, config: LogConfig = CONFIG) -> Written:
    home = Home(config=config)
    for number in range(3):
        home.append(b"%d" % number * 20, producer_id=7, producer_epoch=0, base_sequence=number)
    home.restart()
    for number in range(3, 7):
        home.append(b"%d" % number * 20, producer_id=7, producer_epoch=0, base_sequence=number)
    home.log().delete_before(1)
    log = home.log()
    batches = {BatchHeader.parse(batch).base_offset: batch for batch in _read(log)}
    assert len(log.segments) >= 3
    if clean:
        home.store.close(NOW)
    else:
        home.store.abandon()
    return Written(home.disk.image, batches, log.log_start, log.log_end, config)


def _read(log: PartitionLog) -> Iterator[bytes]:
    """Every batch that can be read, past those that cannot."""
    offset = log.log_start
    while offset < log.log_end:
        try:
            found = batches_in(read_bytes(log, offset))
        except StorageError:
            offset += 1
            continue
        if not found:
            return
        for batch in found:
            header = BatchHeader.parse(batch)
            if not crc_ok(batch, header):
                break
            yield batch
        offset = max(BatchHeader.parse(found[-1]).next_offset, offset + 1)


def mutations(content: bytes) -> Iterator[bytes]:
    for position in range(len(content)):
        before, byte, after = content[:position], content[position], content[position + 1 :]
        yield before + bytes([byte ^ 0xFF]) + after
        yield before + bytes([byte ^ 0x01]) + after
        if byte:
            yield before + b"\0" + after
        yield before


def damaged(written: Written, path: str) -> Iterator[Home]:
    """Each damaged copy of the directory, to be started."""
    inode = _inode(written.image, path)
    for content in mutations(bytes(written.image.files[inode])):
        image = written.image.copy()
        image.files[inode] = bytearray(content)
        yield Home(config=written.config, disk=SimDisk(image), start=False)


def _inode(image: Image, path: str) -> int:
    inode = 0
    for name in filter(None, path.split("/")):
        inode = image.directories[inode][name]
    return inode


def files(written: Written, *suffixes: str) -> list[str]:
    return [path for path, content in written.image.walk() if content and path.endswith(suffixes)]


def _comparable(batch: bytes, *, clean: bool) -> bytes:
    """Nothing vouches for the leader epoch of a batch that was neither sealed nor checkpointed."""
    if clean:
        return batch
    masked = bytearray(batch)
    masked[EPOCH] = bytes(4)
    return bytes(masked)


@pytest.mark.parametrize("config", [CONFIG, WITHOUT_INDEX], ids=["indexed", "too small for an index"])
@pytest.mark.parametrize("clean", [True, False])
def test_damage_in_the_log_is_never_read_as_data(
    clean: bool, config: LogConfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    written = write(clean=clean, config=config)
    tried = 0
    expected = {offset: _comparable(batch, clean=clean) for offset, batch in written.batches.items()}
    for path in files(written, ".log"):
        for home in damaged(written, path):
            tried += 1
            home.start()
            log = home.log()
            assert log.log_start == written.log_start
            for batch in _read(log):
                assert _comparable(batch, clean=clean) == expected[BatchHeader.parse(batch).base_offset]
    assert tried > 1000


@pytest.mark.parametrize("clean", [True, False])
def test_records_missing_after_damage_in_the_log_are_reported(clean: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Lost without a word can only be batches at the end of a log that nobody had synced, when the file is shorter."""
    written = write(clean=clean)
    [*_, last] = files(written, ".log")
    size = len(written.image.files[_inode(written.image, last)])
    for path in files(written, ".log"):
        for home in damaged(written, path):
            if not clean and path == last and len(home.disk.read(path)) < size:
                continue
            caplog.clear()
            home.start()
            missing = len(written.batches) - len(list(_read(home.log())))
            assert not missing or caplog.records or _some_read_fails(home.log()), f"{path}: {missing} are missing"


def _some_read_fails(log: PartitionLog) -> bool:
    offset = log.log_start
    while offset < log.log_end:
        try:
            found = batches_in(read_bytes(log, offset))
        except StorageError:
            return True
        if not found:
            return False
        if not all(crc_ok(batch, BatchHeader.parse(batch)) for batch in found):
            return True
        offset = BatchHeader.parse(found[-1]).next_offset
    return False


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "suffixes",
    [(".index", ".timeindex"), (".sums",), (".snapshot",), ("checkpoint",), ("clean",)],
    ids=lambda one: one[0],
)
def test_damage_beside_the_log_costs_nothing(
    clean: bool, suffixes: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    written = write(clean=clean)
    names = files(written, *suffixes)
    assert names or suffixes == ("clean",)
    for path in names:
        for home in damaged(written, path):
            home.start()
            log = home.log()
            assert (log.log_start, log.log_end) == (written.log_start, written.log_end)
            assert {BatchHeader.parse(batch).base_offset: batch for batch in _read(log)} == written.batches
            for number in range(2, 7):
                again = home.append(b"%d" % number * 20, producer_id=7, producer_epoch=0, base_sequence=number)
                assert (again.base_offset, again.duplicate) == (number, True)
            assert log.leader_epoch > 1
            found = log.offset_for_time(NOW, upto=log.log_end)
            assert found is not None
            assert found.offset == written.log_start
            assert home.append(b"next").base_offset >= written.log_end


def test_damaged_marks_after_a_clean_stop_cost_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    written = write(clean=True)
    for home in damaged(written, "/data/marks"):
        home.start()
        log = home.log()
        assert (log.log_start, log.log_end) == (written.log_start, written.log_end)
        assert {BatchHeader.parse(batch).base_offset: batch for batch in _read(log)} == written.batches
        assert log.leader_epoch > 1


def test_a_damaged_format_file_is_refused() -> None:
    written = write(clean=True)
    for home in damaged(written, "/data/format"):
        with pytest.raises(StorageError, match="format"):
            home.start()
