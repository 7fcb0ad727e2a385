"""The checker finds each anomaly by its name, and nothing in a sound history."""

from __future__ import annotations

import pytest

from lowwater.testing.checker import AnomalyKind, FinalRead, History, Outcome, Poll, Send, check, tally
from lowwater.types import TopicPartition

T0 = TopicPartition("orders", 0)
T1 = TopicPartition("orders", 1)


def sent(value: str, offset: int | None, *, producer: str = "p", idempotent: bool = True) -> Send:
    outcome = Outcome.UNKNOWN if offset is None else Outcome.OK
    return Send(producer, T0, value.encode(), outcome, offset, idempotent)


def failed(value: str) -> Send:
    return Send("p", T0, value.encode(), Outcome.FAILED)


def polled(*records: tuple[int, str], sought: int | None = None, consumer: str = "c") -> Poll:
    return Poll(consumer, T0, tuple((offset, value.encode()) for offset, value in records), sought)


def final(*records: tuple[int, str], log_start: int = 0, log_end: int | None = None) -> dict[TopicPartition, FinalRead]:
    end = log_end if log_end is not None else max((offset + 1 for offset, _ in records), default=log_start)
    return {T0: FinalRead(log_start, end, tuple((offset, value.encode()) for offset, value in records))}


def kinds(history: History) -> list[AnomalyKind]:
    return [anomaly.kind for anomaly in check(history)]


def test_a_sound_history_has_no_anomaly() -> None:
    history = History(
        sends=[sent("a", 0), sent("b", 1), sent("maybe", None), failed("no"), sent("c", 7)],
        polls=[polled((0, "a"), (1, "b"), sought=0), polled((2, "maybe"), (7, "c")), polled((0, "a"), sought=0)],
        final=final((0, "a"), (1, "b"), (2, "maybe"), (7, "c")),
    )
    assert check(history) == []
    assert history.acked() == 3


def test_one_offset_with_two_values_read_is_inconsistent() -> None:
    history = History(polls=[polled((4, "a"), sought=4), polled((4, "b"), consumer="d")])
    assert kinds(history) == [AnomalyKind.INCONSISTENT_OFFSETS]


def test_an_offset_acked_for_one_value_and_read_with_another_is_inconsistent() -> None:
    history = History(sends=[sent("a", 4)], final=final((4, "b"), (5, "a")))
    assert kinds(history) == [AnomalyKind.INCONSISTENT_OFFSETS, AnomalyKind.LOST_WRITE]


def test_one_offset_acked_twice_is_inconsistent() -> None:
    history = History(sends=[sent("a", 4, producer="p"), sent("b", 4, producer="q")], final=final((4, "a")))
    assert AnomalyKind.INCONSISTENT_OFFSETS in kinds(history)


def test_an_acked_value_that_reading_passed_by_is_a_lost_write() -> None:
    history = History(sends=[sent("a", 0), sent("b", 1)], final=final((1, "b")))
    assert kinds(history) == [AnomalyKind.LOST_WRITE]


def test_an_acked_value_below_a_legal_gap_up_to_the_log_end_is_a_lost_write() -> None:
    history = History(sends=[sent("a", 0)], final=final(log_end=65536))
    assert kinds(history) == [AnomalyKind.LOST_WRITE]


def test_a_value_seen_once_and_gone_in_the_end_is_a_lost_write() -> None:
    history = History(sends=[sent("a", 0)], polls=[polled((0, "a"), sought=0)], final=final(log_end=3))
    assert kinds(history) == [AnomalyKind.LOST_WRITE]


def test_an_acked_value_beyond_all_reading_is_unseen() -> None:
    history = History(sends=[sent("a", 0), sent("b", 1)], final=final((0, "a")))
    assert kinds(history) == [AnomalyKind.UNSEEN]


def test_an_acked_value_below_the_log_start_was_deleted_not_lost() -> None:
    history = History(sends=[sent("a", 0), sent("b", 5)], final=final((5, "b"), log_start=5))
    assert check(history) == []


def test_a_value_at_two_offsets_is_a_duplicate() -> None:
    history = History(sends=[sent("a", 0)], final=final((0, "a"), (1, "a")))
    assert kinds(history) == [AnomalyKind.DUPLICATE]


def test_an_unknown_send_of_an_idempotent_producer_may_not_be_doubled_either() -> None:
    history = History(sends=[sent("a", None)], final=final((0, "a"), (1, "a")))
    assert kinds(history) == [AnomalyKind.DUPLICATE]


def test_a_producer_that_is_not_idempotent_may_double_its_values() -> None:
    history = History(sends=[sent("a", 0, idempotent=False)], final=final((0, "a"), (1, "a")))
    assert check(history) == []


def test_a_failed_value_that_is_read_is_an_aborted_read() -> None:
    history = History(sends=[failed("a")], final=final((0, "a")))
    assert kinds(history) == [AnomalyKind.ABORTED_READ]


def test_acks_that_go_back_for_one_producer_are_nonmonotonic() -> None:
    history = History(sends=[sent("b", 1), sent("a", 0)], final=final((0, "a"), (1, "b")))
    assert kinds(history) == [AnomalyKind.NONMONOTONIC_SEND]


def test_acks_of_two_producers_may_interleave() -> None:
    sends = [sent("b", 1, producer="p"), sent("a", 0, producer="q")]
    assert check(History(sends=sends, final=final((0, "a"), (1, "b")))) == []


def test_a_consumer_that_passes_a_known_record_has_skipped_it() -> None:
    history = History(polls=[polled((0, "a"), sought=0), polled((2, "c"))], final=final((0, "a"), (1, "b"), (2, "c")))
    assert kinds(history) == [AnomalyKind.POLL_SKIP]


def test_a_consumer_that_seeks_past_records_has_skipped_nothing() -> None:
    polls = [polled((0, "a"), sought=0), polled((2, "c"), sought=2)]
    assert check(History(polls=polls, final=final((0, "a"), (1, "b"), (2, "c")))) == []


def test_a_consumer_that_starts_after_its_position_has_skipped_what_lies_between() -> None:
    history = History(polls=[polled((2, "c"), sought=0)], final=final((0, "a"), (2, "c")))
    assert kinds(history) == [AnomalyKind.POLL_SKIP]


@pytest.mark.parametrize("again", [0, 1])
def test_a_consumer_that_goes_back_or_stays_is_nonmonotonic(again: int) -> None:
    value = "ab"[again]
    history = History(polls=[polled((0, "a"), (1, "b"), sought=0), polled((again, value))])
    assert kinds(history) == [AnomalyKind.NONMONOTONIC_POLL]


def test_partitions_are_judged_apart() -> None:
    sends = [sent("a", 0), Send("p", T1, b"a", Outcome.OK, 0)]
    both = {T0: FinalRead(0, 1, ((0, b"a"),)), T1: FinalRead(0, 1, ((0, b"a"),))}
    assert check(History(sends=sends, final=both)) == []
    both[T1] = FinalRead(0, 1, ())
    assert [anomaly.partition for anomaly in check(History(sends=sends, final=both))] == [T1]


def test_the_tally_names_every_kind_and_an_anomaly_reads_as_a_sentence() -> None:
    anomalies = check(History(sends=[sent("a", 0), sent("b", 1)], final=final((1, "b"))))
    assert tally(anomalies)["lost-write"] == 1
    assert set(tally([])) == {kind.value for kind in AnomalyKind}
    assert str(anomalies[0]) == "lost-write at orders-0 offset 0: p was acked a"


def part(value: str, offset: int | None, transaction: str, partition: TopicPartition = T0) -> Send:
    outcome = Outcome.UNKNOWN if offset is None else Outcome.OK
    return Send("p", partition, value.encode(), outcome, offset, True, transaction)


def test_a_transaction_that_is_seen_whole_or_not_at_all_is_sound() -> None:
    sends = [part("a", None, "one"), part("b", None, "one"), part("c", None, "two"), part("d", None, "two")]
    assert check(History(sends=sends, final=final((0, "a"), (1, "b")))) == []


def test_a_transaction_of_which_only_a_part_is_seen_is_torn() -> None:
    sends = [part("a", None, "one"), part("b", None, "one")]
    assert kinds(History(sends=sends, final=final((0, "a")))) == [AnomalyKind.TORN_TRANSACTION]


def test_a_transaction_may_be_torn_between_partitions() -> None:
    sends = [part("a", None, "one"), part("b", None, "one", T1)]
    both = {**final((0, "a")), T1: FinalRead(0, 0, ())}
    assert kinds(History(sends=sends, final=both)) == [AnomalyKind.TORN_TRANSACTION]


def test_a_value_of_a_transaction_that_was_read_and_is_gone_is_an_aborted_read() -> None:
    history = History(sends=[part("a", None, "one")], polls=[polled((0, "a"), sought=0)], final=final(log_end=2))
    assert kinds(history) == [AnomalyKind.ABORTED_READ]
