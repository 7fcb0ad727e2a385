"""Records of `__transaction_state`. That each version has Kafka's bytes, Kafka's own classes say (golden bytes)."""

from __future__ import annotations

import random

import pytest
from tests.fuzz.test_decoders import mutated

from lowwater.errors import WireError
from lowwater.outcome import StateRecord
from lowwater.transactions.records import TransactionLogPartitions, TransactionLogValue, decode, encode

ONGOING = 1
VALUE = TransactionLogValue(
    producer_id=5,
    previous_producer_id=4,
    next_producer_id=6,
    producer_epoch=3,
    next_producer_epoch=0,
    transaction_timeout_ms=60_000,
    transaction_status=ONGOING,
    transaction_partitions=[TransactionLogPartitions(topic="t", partition_ids=[1, 2])],
    transaction_last_update_timestamp_ms=9,
    transaction_start_timestamp_ms=8,
    client_transaction_version=2,
)


def plain_value() -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=5,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=0,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=9,
        transaction_start_timestamp_ms=-1,
    )


def test_a_record_has_the_bytes_of_kafka() -> None:
    assert encode("tx", plain_value()) == StateRecord(
        bytes.fromhex("0000 00027478"),
        bytes.fromhex("0001 0000000000000005 0003 0000ea60 00 00 0000000000000009 ffffffffffffffff 00"),
    )


def test_what_was_written_is_read() -> None:
    assert decode(encode("tränsaktion", VALUE)) == ("tränsaktion", VALUE)


def test_an_id_is_forgotten_by_a_record_without_a_value() -> None:
    assert encode("tx", None).value is None
    assert decode(encode("tx", None)) == ("tx", None)


def test_below_the_first_level_of_the_feature_the_old_form_is_written_and_read() -> None:
    record = encode("tx", plain_value(), transaction_version=0)
    assert record.value is not None
    assert record.value[:2] == b"\0\0"
    assert decode(record) == ("tx", plain_value())


def test_the_old_form_refuses_what_it_cannot_tell() -> None:
    with pytest.raises(ValueError, match="TransactionLogValue"):
        encode("tx", VALUE, transaction_version=0)


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\1\0\2tx", b"\xff\xff\0\2tx"])
def test_keys_of_other_types_are_passed_over(key: bytes) -> None:
    assert decode(StateRecord(key, b"\0\1")) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\0\0\0\5tx", None), (b"\0\0\0\2tx", b""), (b"\0\0\0\2tx", b"\0\2" + bytes(40)), (b"\0\0\0\2tx", b"\0\1\0")],
)
def test_what_cannot_be_read_is_said_to_be_so(key: bytes, value: bytes | None) -> None:
    with pytest.raises(WireError):
        decode(StateRecord(key, value))


def test_harmed_records_are_read_or_refused_and_nothing_else() -> None:
    rng = random.Random(0)
    whole = encode("tx", VALUE)
    assert whole.value is not None
    for _ in range(2000):
        harmed = StateRecord(mutated(whole.key, rng), mutated(whole.value, rng))
        try:
            read = decode(harmed)
        except WireError:
            continue
        assert read is None or isinstance(read[0], str)
