"""Whatever stands in `__transaction_state`: a broker starts, skips what it cannot read, and knows what it can."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import pytest
from tests.conformance.golden.instances import Style, instance
from tests.fuzz.test_decoders import mutated
from tests.unit.broker.talk import create, partition_of
from tests.unit.broker.txn_talk import OK, TxnProducer

from lowwater.outcome import StateRecord
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.transactions.record_schemas import TransactionLogKey, TransactionLogPartitions, TransactionLogValue
from lowwater.wire.messages import DescribeTransactionsRequest, ListTransactionsRequest
from lowwater.wire.plain_batch import build_plain_batch
from lowwater.wire.schema import encoder

STATES = "__transaction_state"
ROUNDS = 25
RECORDS = 40
TOPICS = ("t", "t", "missing", STATES, "__consumer_offsets", "")


def plausible(rng: random.Random, now_ms: int) -> TransactionLogValue:
    """As a coordinator could have written it, of any state, also with partitions that do not exist."""
    value = instance(TransactionLogValue, 1, rng.choice((Style.FULL, Style.MIXED, Style.NULLS)), rng)
    if rng.random() < 0.8:
        value.transaction_status = rng.randrange(8)
        value.producer_id, value.producer_epoch = rng.randrange(5_000, 5_050), rng.choice((0, 1, 32766, 32767, -1))
        value.transaction_timeout_ms = rng.choice((1, 1000, 60_000, -1))
        value.transaction_start_timestamp_ms = rng.choice((-1, now_ms - 5000, now_ms))
        value.transaction_last_update_timestamp_ms = rng.choice((0, now_ms - 5000, now_ms))
        value.client_transaction_version = rng.randrange(3)
        value.next_producer_id = rng.choice((-1, -1, 77))
    if rng.random() < 0.7:
        value.transaction_partitions = [
            TransactionLogPartitions(topic=rng.choice(TOPICS), partition_ids=[rng.choice((0, 1, 9, -1))])
            for _ in range(rng.randrange(3))
        ]
    return value


def hostile_records(rng: random.Random, now_ms: int) -> Iterator[StateRecord]:
    """Plausible records with wrong contents, harmed ones, and noise."""
    for number in range(RECORDS):
        name = rng.choice(("", f"made-up-{number}", "made-up"))
        key = b"\0\0" + encoder(TransactionLogKey, 0)(TransactionLogKey(transactional_id=name))
        value = b"\0\1" + encoder(TransactionLogValue, 1)(plausible(rng, now_ms))
        kind = rng.randrange(6)
        if kind == 1:
            value = mutated(value, rng)
        elif kind == 2:
            key = mutated(key, rng)
        elif kind == 3:
            key, value = rng.randbytes(rng.randrange(12)), rng.randbytes(rng.randrange(30))
        yield StateRecord(key, None if kind == 4 else value)


def broker_with_transactions() -> tuple[VirtualBroker, TxnProducer]:
    broker = VirtualBroker()
    create(broker, "t", 2)
    producer = TxnProducer(broker, "real").begin()
    assert producer.produce("t", b"first") is OK
    assert producer.end(commit=True) is OK
    return broker, producer


def start_after(broker: VirtualBroker, records: list[StateRecord]) -> None:
    now_ms = broker.clock.now_ms()
    partition_of(broker, STATES).append_own(build_plain_batch(records, now_ms), now_ms)
    broker.stop()
    broker.sim_disk.drop_process()
    broker.start()
    broker.time.settle()


def ask_everything(broker: VirtualBroker) -> None:
    names = [one.transactional_id for one in broker.ask(ListTransactionsRequest(), 2).transaction_states]
    assert "real" in names
    assert len(names) > 1
    states = broker.ask(DescribeTransactionsRequest(transactional_ids=names), 0).transaction_states
    assert len(states) == len(names)
    broker.time.advance(1_000_000)  # invented transactions end, or time out


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_broker_starts_from_any_records_and_knows_those_it_can_read(seed: int) -> None:
    broker, producer = broker_with_transactions()
    start_after(broker, list(hostile_records(random.Random(seed), broker.clock.now_ms())))
    ask_everything(broker)
    assert producer.produce("t", b"second") is OK
    assert producer.end(commit=False) is OK
    new = TxnProducer(broker, "new").begin()
    assert new.produce("t", b"third") is OK
    assert new.end(commit=True) is OK
    ask_everything(broker)


def test_a_record_that_cannot_be_read_is_skipped_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    broker, producer = broker_with_transactions()
    with caplog.at_level(logging.WARNING):
        start_after(broker, [StateRecord(b"\0\0\0\4real", b"\0\7?")])
    assert f"a record of {STATES}-0 is skipped" in caplog.text
    assert producer.produce("t", b"second") is OK
