"""The APIs around transactions: what each version is told, and what administrators see and do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.broker.group_talk import fetch
from tests.unit.broker.talk import create, values_in
from tests.unit.broker.txn_talk import (
    OK,
    TxnProducer,
    committed_values,
    describe,
    last_stable,
    markers,
)

from lowwater.errors import ErrorCode
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    CreatePartitionsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    UpdateFeaturesRequest,
    WriteTxnMarkersRequest,
)
from lowwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from lowwater.wire.messages.create_partitions import CreatePartitionsTopic
from lowwater.wire.messages.update_features import FeatureUpdateKey
from lowwater.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic

FENCED, OLD_EPOCH = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
SAFE_DOWNGRADE = 2


@pytest.fixture
def broker() -> VirtualBroker:
    started = VirtualBroker({})
    create(started, "t", 3)
    return started


@pytest.fixture
def producer(broker: VirtualBroker) -> TxnProducer:
    return TxnProducer(broker).begin()


@pytest.fixture
def zombie(producer: TxnProducer) -> TxnProducer:
    """Its place was taken."""
    TxnProducer(producer.broker).begin()
    return producer


# -- who is fenced is told so in the word its version knows


@pytest.mark.parametrize(("version", "code"), [(3, OLD_EPOCH), (4, FENCED)])
def test_init_of_a_zombie(zombie: TxnProducer, version: int, code: ErrorCode) -> None:
    request = InitProducerIdRequest(
        transactional_id="x", transaction_timeout_ms=1000, producer_id=zombie.producer_id, producer_epoch=zombie.epoch
    )
    TxnProducer(zombie.broker).begin()
    answer = zombie.broker.ask(request, version)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


@pytest.mark.parametrize(("version", "code"), [(1, OLD_EPOCH), (2, FENCED), (3, FENCED)])
def test_adding_partitions_as_a_zombie(zombie: TxnProducer, version: int, code: ErrorCode) -> None:
    assert zombie.add("t", version=version) is code


@pytest.mark.parametrize(("version", "code"), [(1, OLD_EPOCH), (2, FENCED), (4, FENCED)])
def test_adding_offsets_as_a_zombie(zombie: TxnProducer, version: int, code: ErrorCode) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=zombie.producer_id, producer_epoch=zombie.epoch, group_id="g"
    )
    assert zombie.broker.ask(request, version).error_code == code


@pytest.mark.parametrize(("version", "code"), [(1, OLD_EPOCH), (2, FENCED), (4, FENCED)])
def test_ending_as_a_zombie(zombie: TxnProducer, version: int, code: ErrorCode) -> None:
    assert zombie.end(commit=True, version=version) is code


@pytest.mark.parametrize("version", [3, 4, 5])
def test_offsets_of_a_zombie(zombie: TxnProducer, version: int) -> None:
    sent = zombie.send_offset("g", 5, version=version)
    zombie.broker.time.settle()
    assert sent.response.topics[0].partitions[0].error_code == OLD_EPOCH
    assert fetch(zombie.broker, "g") == -1


@pytest.mark.parametrize(
    ("request_", "code_of"),
    [
        (InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1), lambda answer: answer.error_code),
        (
            EndTxnRequest(transactional_id="", producer_id=0, producer_epoch=0, committed=True),
            lambda answer: answer.error_code,
        ),
        (
            AddOffsetsToTxnRequest(transactional_id="", producer_id=0, producer_epoch=0, group_id="g"),
            lambda answer: answer.error_code,
        ),
        (
            DescribeTransactionsRequest(transactional_ids=[""]),
            lambda answer: answer.transaction_states[0].error_code,
        ),
    ],
    ids=["init", "end", "offsets", "describe"],
)
def test_a_transactional_id_is_never_empty(broker: VirtualBroker, request_: Any, code_of: Any) -> None:
    assert code_of(broker.ask(request_)) == ErrorCode.INVALID_REQUEST


# -- many transactions at once


def many(*transactions: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=list(transactions))


def wanted(producer: TxnProducer, *indexes: int, verify_only: bool = False) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name="t", partitions=list(indexes))],
    )


def codes(answer: Any) -> dict[str, dict[int, int]]:
    return {
        result.transactional_id: {
            one.partition_index: one.partition_error_code
            for topic in result.topic_results
            for one in topic.results_by_partition
        }
        for result in answer.results_by_transaction
    }


def test_each_transaction_of_a_request_is_answered_by_itself(broker: VirtualBroker) -> None:
    first, second = TxnProducer(broker, "x").begin(), TxnProducer(broker, "y").begin()
    second.epoch += 1
    answer = broker.ask(many(wanted(first, 0, 1), wanted(second, 2)))
    assert codes(answer) == {"x": {0: OK, 1: OK}, "y": {2: FENCED}}
    assert describe(broker, "x").transaction_state == "Ongoing"
    assert describe(broker, "y").transaction_state == "Empty"


def test_to_verify_is_to_look_and_not_to_add(broker: VirtualBroker) -> None:
    producer = TxnProducer(broker).begin()
    broker.ask(many(wanted(producer, 0)))
    answer = broker.ask(many(wanted(producer, 0, 1, verify_only=True)))
    assert codes(answer) == {"x": {0: OK, 1: ErrorCode.TRANSACTION_ABORTABLE}}
    assert [(one.topic, list(one.partitions)) for one in describe(broker).topics] == [("t", [0])]


# -- what administrators see


def test_a_transaction_is_described_with_what_it_writes_to(producer: TxnProducer) -> None:
    broker = producer.broker
    began_ms = broker.clock.now_ms()
    producer.produce("t", b"a", index=2)
    producer.produce("t", b"a", index=0)
    state = describe(broker)
    assert state.error_code == OK
    assert (state.transaction_state, state.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert (state.producer_id, state.producer_epoch) == (producer.producer_id, 0)
    assert state.transaction_start_time_ms == began_ms
    assert [(one.topic, list(one.partitions)) for one in state.topics] == [("t", [0, 2])]


def test_an_id_that_is_not_known_is_described_as_such(broker: VirtualBroker) -> None:
    assert describe(broker, "nobody").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_transactions_are_listed_by_state_producer_and_pattern(broker: VirtualBroker) -> None:
    first, second = TxnProducer(broker, "app-1").begin(), TxnProducer(broker, "other").begin()
    first.produce("t", b"a")

    def listed(*states: str, producers: tuple[int, ...] = (), **filters: Any) -> tuple[set[str], list[str]]:
        request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producers), **filters)
        answer = broker.ask(request)
        assert answer.error_code == OK
        return {one.transactional_id for one in answer.transaction_states}, answer.unknown_state_filters

    assert listed() == ({"app-1", "other"}, [])
    assert listed("Ongoing") == ({"app-1"}, [])
    assert listed("Ongoing", "Nonsense") == ({"app-1"}, ["Nonsense"])
    assert listed(producers=(second.producer_id,)) == ({"other"}, [])
    assert listed(transactional_id_pattern="app-.*") == ({"app-1"}, [])


def test_an_expression_that_is_none_is_refused(broker: VirtualBroker) -> None:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern="(")
    assert broker.ask(request).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_this_node_coordinates_every_transactional_id(broker: VirtualBroker) -> None:
    [found] = broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])).coordinators
    assert (found.node_id, found.error_code) == (broker.broker.node_id, OK)


def test_the_internal_topic_cannot_grow(producer: TxnProducer) -> None:
    wanted = CreatePartitionsTopic(name="__transaction_state", count=2)
    answer = producer.broker.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=1000))
    assert answer.results[0].error_code == ErrorCode.INVALID_PARTITIONS


# -- ends written by hand


def write_markers(
    producer: TxnProducer, *indexes: int, topic: str = "t", coordinator_epoch: int = 1000, **fields: Any
) -> list[int]:
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=fields.pop("epoch", producer.epoch),
        transaction_result=fields.pop("commit", False),
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(indexes))],
        coordinator_epoch=coordinator_epoch,
        **fields,
    )
    answer = producer.broker.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    [result] = answer.markers
    assert result.producer_id == producer.producer_id
    return [one.error_code for topic in result.topics for one in topic.partitions]


def test_an_administrator_ends_a_transaction_that_hangs(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    assert last_stable(broker, "t") == 0
    assert write_markers(producer, 0, 9) == [OK, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert markers(broker, "t") == [(producer.producer_id, 0, False)]
    assert last_stable(broker, "t") == 2
    assert committed_values(broker, "t") == []


def test_a_marker_of_an_older_epoch_is_refused(zombie: TxnProducer) -> None:
    new = TxnProducer(zombie.broker).begin()
    new.produce("t", b"a")
    assert write_markers(zombie, 0) == [OLD_EPOCH]
    assert write_markers(new, 0, coordinator_epoch=1000) == [OK]
    assert write_markers(new, 0, coordinator_epoch=999) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]


def test_a_marker_by_hand_also_ends_what_was_committed_for_groups(producer: TxnProducer) -> None:
    assert producer.commit_offset("g", 5) is OK
    assert write_markers(producer, 0, topic="__consumer_offsets") == [OK]
    assert producer.end(commit=True) is OK
    assert fetch(producer.broker, "g") == -1


def test_a_marker_by_hand_stands_behind_the_offsets_of_the_same_moment(producer: TxnProducer) -> None:
    broker = producer.broker
    assert producer.commit_offset("g", 5) is OK
    producer.send_offset("g", 6)
    assert write_markers(producer, 0, topic="__consumer_offsets", commit=True) == [OK]
    assert fetch(broker, "g") == 6
    broker.kill()
    broker.start()
    broker.time.settle()
    assert fetch(broker, "g") == 6


def test_each_start_of_the_coordinator_has_an_epoch_of_its_own(producer: TxnProducer) -> None:
    broker = producer.broker
    epochs = []
    for _ in range(3):
        producer.produce("t", b"a")
        producer.end(commit=True)
        epochs += [state.coordinator_epoch for _, state in broker.broker.partition("t", 0).log.producers()]
        broker.kill()
        broker.start()
        broker.time.settle()
    assert epochs == sorted(set(epochs))


def test_the_coordinator_s_marker_counts_as_written_where_someone_was_faster(producer: TxnProducer) -> None:
    broker = producer.broker
    producer.produce("t", b"a")
    assert write_markers(producer, 0, epoch=9) == [OK]
    assert producer.end(commit=True) is OK
    assert describe(broker).transaction_state == "CompleteCommit"
    assert values_in(broker, "t")[0] == b"a"


def test_offsets_of_a_producer_that_was_fenced_by_hand_are_refused_and_groups_stay_up(producer: TxnProducer) -> None:
    assert producer.commit_offset("g", 5) is OK
    assert write_markers(producer, 0, topic="__consumer_offsets", epoch=9) == [OK]
    assert producer.commit_offset("g", 6) is OLD_EPOCH
    assert fetch(producer.broker, "g") == -1


# -- the feature


def test_with_the_feature_at_0_the_coordinator_s_own_aborts_are_of_the_older_kind(broker: VirtualBroker) -> None:
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
    assert broker.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code == OK
    producer = TxnProducer(broker, moves_on=False).begin()
    producer.produce("t", b"a")
    new = TxnProducer(broker, moves_on=False).begin()
    new.produce("t", b"b")
    assert new.end(commit=True) is OK
    assert committed_values(broker, "t") == [b"b"]
    assert new.epoch > producer.epoch
