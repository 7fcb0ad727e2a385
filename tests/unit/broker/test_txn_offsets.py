"""Offsets in transactions, as a whole broker keeps them: over restarts, and when their topic is still to be made."""

from __future__ import annotations

import pytest
from tests.unit.broker.group_talk import commit, fetch
from tests.unit.broker.talk import create
from tests.unit.broker.txn_talk import TxnProducer

from lowwater.errors import ErrorCode
from lowwater.testing.virtual_time import Asked, VirtualBroker
from lowwater.wire.messages import OffsetFetchRequest, TxnOffsetCommitRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic

OK = ErrorCode.NONE


@pytest.fixture
def broker() -> VirtualBroker:
    broker = VirtualBroker({"auto.create.topics.enable": "false"})
    create(broker, "t", 2)
    return broker


def send_commit(producer: TxnProducer, group: str, offset: int) -> Asked:
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=producer.name,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[part])],
    )
    return producer.broker.send(request, 5)


def is_unstable(broker: VirtualBroker, group: str) -> bool:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    [told] = broker.ask(OffsetFetchRequest(groups=[asked], require_stable=True), 9).groups
    return told.topics[0].partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT


def restart(broker: VirtualBroker) -> None:
    broker.stop()
    broker.sim_disk.drop_process()
    broker.start()
    broker.time.advance(1000)


@pytest.mark.parametrize("commits", [True, False])
def test_a_start_in_the_middle_of_a_transaction_knows_what_is_pending(broker: VirtualBroker, commits: bool) -> None:
    producer = TxnProducer(broker).begin()
    assert commit(broker, "g", 3) is OK
    assert producer.commit_offset("g", 5) is OK
    restart(broker)
    assert (fetch(broker, "g"), is_unstable(broker, "g")) == (3, True)
    assert producer.end(commit=commits) is OK
    assert (fetch(broker, "g"), is_unstable(broker, "g")) == (5 if commits else 3, False)
    restart(broker)
    assert (fetch(broker, "g"), is_unstable(broker, "g")) == (5 if commits else 3, False)


def test_the_end_of_a_transaction_waits_for_the_topic_that_its_offsets_are_still_to_be_written_to(
    broker: VirtualBroker,
) -> None:
    """The first commit of a broker's life makes `__consumer_offsets`; meanwhile the producer gives up."""
    producer = TxnProducer(broker).begin()
    broker.offload.held = True
    committing = send_commit(producer, "g", 5)
    broker.time.settle()
    broker.offload.do(0)  # the partition is part of the transaction
    broker.time.settle()
    assert broker.broker.topics.get("__consumer_offsets") is None
    ending = producer.send_end(commit=False)
    broker.time.settle()
    broker.offload.do(broker.offload.waiting - 1)  # the transaction is to be aborted
    broker.time.settle()
    assert ending.is_answered
    broker.offload.release()
    broker.time.advance(5_000)
    assert committing.is_answered
    assert not is_unstable(broker, "g")
    restart(broker)
    assert (fetch(broker, "g"), is_unstable(broker, "g")) == (-1, False)
