"""Every byte of a small log of transactions, and of the files beside it, flipped, zeroed and cut off.

A reader of committed records then gets no record that was aborted or never committed; and where it misses one, it was
stopped by an error, by a batch that does not match its CRC, or by the last stable offset.
"""

from __future__ import annotations

import logging

import pytest
from tests.unit.log.support import NOW, Home, batches_in, read_bytes
from tests.unit.log.test_damage import Written, damaged, files
from tests.unit.log.transactional import Writer, committed_values

from lowwater.errors import StorageError
from lowwater.log.config import LogConfig
from lowwater.log.partition_log import PartitionLog
from lowwater.wire.records import BatchHeader, crc_ok, read_records

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=128)
COMMITTED = [b"plain", b"yes1", b"yes2", b"yes3"]


def write(*, clean: bool) -> Written:
    """Three producers that commit and abort in turn over several segments; one is still at it."""
    home = Home(config=CONFIG)
    one, two, three = (Writer(home, producer_id) for producer_id in (1, 2, 3))
    home.append(b"plain")
    one.send(b"yes1")
    two.send(b"no1")
    one.commit()
    one.send(b"no2")
    two.abort()
    home.restart()
    two.send(b"yes2")
    one.abort()
    one.send(b"yes3")
    two.commit()
    home.log().flush()
    home.store.checkpoint()
    one.commit()
    three.send(b"open")
    two.send(b"no3")
    two.abort()
    log = home.log()
    assert len(log.segments) >= 3
    assert committed_values(log) == COMMITTED
    if clean:
        home.store.close(NOW)
    else:
        home.store.abandon()
    return Written(home.disk.image, {}, log.log_start, log.log_end, CONFIG)


def stops_with(log: PartitionLog) -> tuple[list[bytes | None], bool]:
    """What a client gets, and whether something told it that there is more."""
    try:
        aborted = sorted(log.aborted_transactions(0, log.last_stable), key=lambda one: one[1])
    except StorageError:
        return [], True
    found: list[bytes | None] = []
    left_out: set[int] = set()
    offset = log.log_start
    while offset < log.last_stable:
        try:
            batches = batches_in(read_bytes(log, offset, upto=log.last_stable))
        except StorageError:
            return found, True
        if not batches:
            break
        for batch in batches:
            header = BatchHeader.parse(batch)
            if not crc_ok(batch, header):
                return found, True
            while aborted and aborted[0][1] <= header.last_offset:
                left_out.add(aborted.pop(0)[0])
            if header.is_control:
                left_out.discard(header.producer_id)
            elif not header.is_transactional or header.producer_id not in left_out:
                found += [record.value for record in read_records(batch)]
        offset = BatchHeader.parse(batches[-1]).next_offset
    return found, log.last_stable < log.log_end


@pytest.mark.parametrize("clean", [True, False])
def test_damage_in_the_log_never_makes_aborted_records_visible_nor_hides_committed_ones(
    clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    written = write(clean=clean)
    tried = 0
    for path in files(written, ".log"):
        for home in damaged(written, path):
            tried += 1
            caplog.clear()
            home.start()
            found, was_told = stops_with(home.log())
            assert set(found) <= set(COMMITTED)
            assert found == COMMITTED or was_told or caplog.records
    assert tried > 1000


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot"])
def test_damage_beside_the_log_changes_nothing(clean: bool, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    written = write(clean=clean)
    names = files(written, suffix)
    assert names
    for path in names:
        for home in damaged(written, path):
            home.start()
            log = home.log()
            assert committed_values(log) == COMMITTED
            assert log.has_transaction(3, 0)
            assert log.aborted_transactions(0, log.log_end) == [(2, 2), (1, 4), (2, 12)]


def test_a_missing_transaction_index_is_made_anew_from_the_batches() -> None:
    written = write(clean=True)
    for path in files(written, ".txnindex"):
        home = next(damaged(written, path))
        home.disk.unlink(path)
        home.start()
        assert home.log().aborted_transactions(0, written.log_end) == [(2, 2), (1, 4), (2, 12)]


def test_a_transaction_whose_end_is_lost_holds_up_readers_until_an_administrator_ends_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = Home(config=CONFIG)
    writer = Writer(home)
    home.append(b"plain")
    writer.send(b"a")
    marker = writer.commit().base_offset
    home.log().flush()
    writer.send(b"b")
    home.store.checkpoint()
    writer.abort()
    home.store.abandon()
    position = home.disk.read(f"{home.directory}/00000000000000000000.log").index(marker.to_bytes(8, "big"))
    home.damage("00000000000000000000.log", position + 70, b"\xff")
    home.start()
    log = home.log()
    assert "transactions from offset 1" in caplog.text
    assert log.last_stable == 1
    assert committed_values(log) == [b"plain"]
    [lost] = [(one, state) for one, state in log.producers() if state.txn_start_offset == 1]
    log.append_marker(lost[0], lost[1].epoch, False, 0, NOW)
    assert log.last_stable == log.log_end
    assert home.kill().last_stable == log.log_end
