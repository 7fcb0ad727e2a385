"""What readers of committed records are told by Fetch, ListOffsets and DescribeProducers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.batches import encode
from tests.unit.broker.talk import begin_fetch, create, fetched, partition_of, produce

from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import DescribeProducersRequest, ListOffsetsRequest
from lowwater.wire.messages.describe_producers import TopicRequest
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from lowwater.wire.records import TRANSACTIONAL, BatchHeader, seal

COMMITTED, UNCOMMITTED = 1, 0
WAIT_MS = 500


@pytest.fixture
def broker() -> VirtualBroker:
    made = VirtualBroker()
    create(made, "t")
    return made


def write(broker: VirtualBroker, sequence: int, *values: bytes, producer_id: int = 1) -> None:
    """A batch of a transaction, of which the coordinator knows."""
    now_ms = broker.clock.now_ms()
    batch = bytearray(encode([(now_ms, b"k", value) for value in values], producer=(producer_id, 0, sequence)))
    batch[22] |= TRANSACTIONAL
    seal(batch)
    partition_of(broker, "t").append(memoryview(batch), now_ms, zstd_allowed=True, in_transaction=True)


def end(broker: VirtualBroker, *, commit: bool, producer_id: int = 1) -> None:
    partition_of(broker, "t").append_marker(producer_id, 0, commit, 3, broker.clock.now_ms())


def data_of(answer: Any) -> Any:
    [topic] = answer.responses
    [data] = topic.partitions
    return data


def test_a_fetch_of_committed_records_waits_for_the_end_of_the_transaction(broker: VirtualBroker) -> None:
    committed = begin_fetch(broker, "t", wait_ms=WAIT_MS, isolation_level=COMMITTED)
    plain = begin_fetch(broker, "t", wait_ms=WAIT_MS)
    write(broker, 0, b"a")
    broker.time.settle()
    assert plain.is_answered
    assert not committed.is_answered
    end(broker, commit=True)
    broker.time.settle()
    assert committed.is_answered
    assert fetched(committed.response)["t", 0][0] == b"a"


def test_the_marker_counts_for_all_that_the_transaction_wrote(broker: VirtualBroker) -> None:
    write(broker, 0, b"x" * 1000)
    asked = begin_fetch(broker, "t", wait_ms=WAIT_MS, min_bytes=1000, isolation_level=COMMITTED)
    produce(broker, "t", b"y" * 2000)
    assert not asked.is_answered
    end(broker, commit=True)
    broker.time.settle()
    assert asked.is_answered
    assert [len(value or b"") for value in fetched(asked.response)["t", 0][:2]] == [1000, 2000]


def test_the_end_of_one_transaction_is_not_enough_while_an_older_one_is_open(broker: VirtualBroker) -> None:
    write(broker, 0, b"a", producer_id=1)
    asked = begin_fetch(broker, "t", wait_ms=WAIT_MS, isolation_level=COMMITTED)
    write(broker, 0, b"b", producer_id=2)
    end(broker, commit=True, producer_id=2)
    broker.time.settle()
    assert not asked.is_answered
    broker.time.advance(WAIT_MS)
    assert asked.is_answered
    data = data_of(asked.response)
    assert (data.high_watermark, data.last_stable_offset, bytes(data.records)) == (3, 0, b"")
    assert data.aborted_transactions == []


def test_aborted_transactions_are_listed_for_readers_of_committed_records_alone(broker: VirtualBroker) -> None:
    produce(broker, "t", b"plain")
    write(broker, 0, b"a")
    end(broker, commit=False)
    data = data_of(begin_fetch(broker, "t", isolation_level=COMMITTED).response)
    assert [(one.producer_id, one.first_offset) for one in data.aborted_transactions] == [(1, 1)]
    assert BatchHeader.parse(bytes(data.records)).base_offset == 0
    data = data_of(begin_fetch(broker, "t", isolation_level=UNCOMMITTED).response)
    assert data.aborted_transactions is None
    data = data_of(begin_fetch(broker, "t", 3, isolation_level=COMMITTED).response)
    assert data.aborted_transactions == []


def latest(broker: VirtualBroker, isolation_level: int) -> int:
    wanted = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    answer = broker.ask(ListOffsetsRequest(isolation_level=isolation_level, topics=[wanted]), 10)
    offset = answer.topics[0].partitions[0].offset
    assert isinstance(offset, int)
    return offset


def test_the_latest_offset_is_the_last_stable_one_for_readers_of_committed_records(broker: VirtualBroker) -> None:
    produce(broker, "t", b"plain")
    write(broker, 0, b"a", b"b")
    assert (latest(broker, COMMITTED), latest(broker, UNCOMMITTED)) == (1, 3)
    end(broker, commit=True)
    assert (latest(broker, COMMITTED), latest(broker, UNCOMMITTED)) == (4, 4)


def test_producers_are_described_with_their_transactions(broker: VirtualBroker) -> None:
    produce(broker, "t", b"plain")
    write(broker, 0, b"a", b"b")

    def described() -> tuple[int, int, int, int, int]:
        request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
        [one] = broker.ask(request, 0).topics[0].partitions[0].active_producers
        assert one.last_timestamp == broker.clock.now_ms()
        transaction = one.coordinator_epoch, one.current_txn_start_offset
        return one.producer_id, one.producer_epoch, one.last_sequence, *transaction

    assert described() == (1, 0, 1, -1, 1)
    end(broker, commit=True)
    assert described() == (1, 0, 1, 3, -1)
