"""A sink's state out of the raw records of the ledger."""

from __future__ import annotations

import pytest

from lowwater.spark.exactly_once.errors import LedgerError
from lowwater.spark.exactly_once.ledger_log import LedgerLog
from lowwater.spark.exactly_once.state import SinkState, to_value
from lowwater.wire.control import build_end_marker
from lowwater.wire.records import TRANSACTIONAL, BatchHeader, Record, build_batch, set_position


class Log:
    """Batches at offsets, as a broker has them."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.end = 0

    def put(self, batch: bytearray) -> None:
        set_position(batch, self.end, 0)
        self.pieces.append(bytes(batch))
        self.end = BatchHeader.parse(batch).next_offset

    def write(self, sink: str, commits: int, producer: int | None) -> None:
        record = Record(0, 0, sink.encode(), to_value(SinkState(commits)))
        if producer is None:
            self.put(build_batch([record]))
        else:
            self.put(build_batch([record], attributes=TRANSACTIONAL, producer_id=producer, producer_epoch=0))

    def end_of(self, producer: int, *, commit: bool) -> None:
        self.put(build_end_marker(producer, 0, commit, 0, 0))

    def commits_of(self, sink: str) -> int:
        log = LedgerLog(sink)
        log.feed(b"".join(self.pieces))
        return log.state().commits


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_sink_that_was_never_there_has_done_nothing(log: Log) -> None:
    read = LedgerLog("s")
    assert read.state() == SinkState()
    assert not read.has_record


def test_the_last_committed_record_of_the_sink_counts(log: Log) -> None:
    for commits in (1, 2):
        log.write("s", commits, 5)
        log.end_of(5, commit=True)
    log.write("t", 9, 6)
    log.end_of(6, commit=True)
    assert log.commits_of("s") == 2


def test_aborted_records_do_not_count(log: Log) -> None:
    log.write("s", 1, 5)
    log.end_of(5, commit=True)
    log.write("s", 2, 5)
    log.end_of(5, commit=False)
    assert log.commits_of("s") == 1


def test_what_another_sink_has_open_hides_nothing(log: Log) -> None:
    log.write("t", 9, 6)
    log.write("s", 1, 5)
    log.end_of(5, commit=True)
    assert log.commits_of("s") == 1
    assert log.commits_of("t") == 0


def test_a_record_outside_of_transactions_counts_at_once(log: Log) -> None:
    log.write("s", 4, None)
    assert log.commits_of("s") == 4


def test_a_record_of_our_own_that_is_undecided_is_an_error(log: Log) -> None:
    log.write("s", 1, 5)
    read = LedgerLog("s")
    read.feed(b"".join(log.pieces))
    with pytest.raises(LedgerError, match="still open"):
        read.check_settled("ledger")


def test_pieces_may_be_cut_anywhere_and_begin_before_the_offset_asked_for(log: Log) -> None:
    for commits in range(1, 4):
        log.write("s", commits, 5)
        log.end_of(5, commit=True)
    whole = b"".join(log.pieces)
    for cut in range(len(whole)):
        read = LedgerLog("s")
        read.feed(whole[:cut])
        at = sum(len(piece) for piece in log.pieces[: max(read.next_offset - 1, 0)])
        read.feed(whole[at:])
        assert (read.state().commits, read.next_offset) == (3, log.end)


def test_a_log_that_is_read_from_the_middle_of_a_transaction_says_nothing_of_it(log: Log) -> None:
    log.write("s", 1, 5)
    log.end_of(5, commit=True)
    read = LedgerLog("s")
    read.next_offset = 1
    read.feed(log.pieces[1])
    assert not read.has_record
