"""What the sink asks of brokers when they lag, refuse, or are away; on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.test_admin import A, B, World
from tests.unit.client.virtual import Asked, refused

from lowwater.client.errors import BrokerError
from lowwater.errors import ErrorCode
from lowwater.spark.exactly_once.brokers import ClusterBrokers
from lowwater.spark.exactly_once.errors import SinkTakenError
from lowwater.spark.exactly_once.ledger import Ledger
from lowwater.spark.exactly_once.state import Fence, SinkState, to_value
from lowwater.wire.messages import (
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    FetchResponse,
    FindCoordinatorResponse,
    InitProducerIdResponse,
    ListOffsetsResponse,
    ListTransactionsResponse,
    ProduceResponse,
)
from lowwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnTopicResult,
)
from lowwater.wire.messages.fetch import FetchableTopicResponse, PartitionData
from lowwater.wire.messages.find_coordinator import Coordinator
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from lowwater.wire.messages.list_transactions import TransactionState
from lowwater.wire.messages.produce import PartitionProduceResponse, TopicProduceResponse
from lowwater.wire.records import Record, build_batch, set_position

SINK, TOPIC = "s", "ledger"
LATEST = -1
INTENDED, DONE = SinkState(1), SinkState(2)


def piece(offset: int, state: SinkState) -> bytes:
    batch = build_batch([Record(0, 0, SINK.encode(), to_value(state))])
    set_position(batch, offset, 0)
    return bytes(batch)


class Lagging:
    """A ledger of two records, whose leader knows of `known` of them: one more with each Fetch that finds nothing."""

    def __init__(self, known: int, *, learns: bool = True, records: bool = True) -> None:
        self.known = known
        self.learns = learns
        self.log = [piece(0, INTENDED), piece(1, DONE)] if records else [b"", b""]
        self.world = World(ListOffsets=self._bounds, Fetch=self._fetched)
        self.world.leaders = {TOPIC: [1]}
        self.ledger = Ledger(self.world.cluster, TOPIC, SINK)

    def _bounds(self, asked: Asked) -> ListOffsetsResponse:
        [each] = asked.request.topics[0].partitions
        found = ListOffsetsPartitionResponse(partition_index=0, offset=2 if each.timestamp == LATEST else 0)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[found])])

    def _fetched(self, asked: Asked) -> FetchResponse:
        [topic] = asked.request.topics
        records = b"".join(self.log[topic.partitions[0].fetch_offset : self.known])
        data = PartitionData(partition_index=0, high_watermark=self.known, records=records)
        if not records and self.learns:
            self.known += 1
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic.topic_id, partitions=[data])])


@pytest.mark.parametrize("known", [0, 1])
def test_a_leader_that_does_not_know_the_end_yet_is_asked_until_it_does(known: int) -> None:
    """Without the last record a batch that is committed would be written again."""
    lagging = Lagging(known)
    assert lagging.world.do(lagging.ledger.read()) == DONE


def test_a_ledger_whose_end_stays_unknown_is_an_error_and_no_state() -> None:
    lagging = Lagging(1, learns=False)
    with pytest.raises(BrokerError, match="OFFSET_NOT_AVAILABLE") as failure:
        lagging.world.do(lagging.ledger.read())
    assert failure.value.tries > 1


def test_a_ledger_of_which_compaction_has_left_nothing_is_read_to_its_end() -> None:
    lagging = Lagging(2, records=False)
    assert lagging.world.do(lagging.ledger.read_all()) == {}
    assert len(lagging.world.asked("Fetch")) == 1


# ---- transactions


def coordinators(asked: Asked) -> FindCoordinatorResponse:
    found = [Coordinator(key=key, node_id=1, host="", port=0) for key in asked.request.coordinator_keys]
    return FindCoordinatorResponse(coordinators=found)


class Running:
    """Does what a BlockingDriver does, on virtual time."""

    def __init__(self, world: World) -> None:
        self.run = world.do


def brokers_of(world: World) -> ClusterBrokers:
    return ClusterBrokers(world.cluster, Running(world), SINK, TOPIC)  # type: ignore[arg-type]


def writing(ended: int) -> World:
    """Everything goes well until the transaction is to be ended."""
    world = World(
        FindCoordinator=coordinators,
        InitProducerId=lambda _: InitProducerIdResponse(producer_id=5, producer_epoch=3),
        AddPartitionsToTxn=_added,
        Produce=_placed,
        EndTxn=lambda _: EndTxnResponse(error_code=ended),
    )
    world.leaders = {TOPIC: [1]}
    return world


def _added(asked: Asked) -> AddPartitionsToTxnResponse:
    result = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=0)
    topic = AddPartitionsToTxnTopicResult(name=TOPIC, results_by_partition=[result])
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])


def _placed(asked: Asked) -> ProduceResponse:
    [topic] = asked.request.topic_data
    placed = PartitionProduceResponse(index=0, base_offset=0)
    found = TopicProduceResponse(name=TOPIC, topic_id=topic.topic_id, partition_responses=[placed])
    return ProduceResponse(responses=[found])


@pytest.mark.parametrize(
    ("code", "says"),
    [(ErrorCode.INVALID_TXN_STATE, "it is not open"), (ErrorCode.PRODUCER_FENCED, "PRODUCER_FENCED")],
)
def test_of_a_record_that_is_not_committed_it_is_said_what_brokers_said_and_what_to_do(code: int, says: str) -> None:
    """Another driver is one of the reasons that it may have."""
    brokers = brokers_of(writing(code))
    brokers.take(None)
    with pytest.raises(SinkTakenError) as failure:
        brokers.record(INTENDED)
    text = str(failure.value)
    assert says in text
    assert "another driver has begun" not in text
    assert "or a transaction of this driver's was over" in text
    assert "restart" in text
    assert "\n" not in text


def test_a_driver_that_is_refused_the_sink_tells_what_brokers_say() -> None:
    world = World(
        FindCoordinator=coordinators,
        InitProducerId=lambda _: InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED, producer_epoch=-1),
    )
    with pytest.raises(SinkTakenError, match=r"'s' was taken over by .*, or .*PRODUCER_FENCED"):
        brokers_of(world).take(Fence(5, 2))


# ---- what dead tasks left


DEAD = ["s-0-0-1-0.1", "s-0-1-2-0.1"]


def listing(asked: Asked) -> ListTransactionsResponse:
    ids = [DEAD[0] if asked.line.address == A else DEAD[1]]
    states = [TransactionState(transactional_id=each, producer_id=1, transaction_state="Ongoing") for each in ids]
    return ListTransactionsResponse(unknown_state_filters=[], transaction_states=states)


def taking(code: Callable[[str], int]) -> Callable[[Asked], Any]:
    return lambda asked: InitProducerIdResponse(
        error_code=code(asked.request.transactional_id), producer_id=1, producer_epoch=1
    )


def aborted(world: World) -> list[str]:
    return sorted(each.request.transactional_id for each in world.asked("InitProducerId"))


def test_a_transaction_that_cannot_be_aborted_is_named_and_the_others_are(caplog: pytest.LogCaptureFixture) -> None:
    refusing = taking(lambda each: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if each == DEAD[0] else 0)
    world = World(FindCoordinator=coordinators, ListTransactions=listing, InitProducerId=refusing)
    brokers_of(world).abort_left_over(INTENDED, ())
    assert aborted(world) == DEAD
    [warning] = caplog.messages
    assert f"transaction {DEAD[0]} of a dead task is left to its timeout" in warning
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in warning


@pytest.mark.parametrize("is_away", [True, False])
def test_a_broker_that_does_not_list_its_transactions_is_named(caplog: pytest.LogCaptureFixture, is_away: bool) -> None:
    def loading(asked: Asked) -> ListTransactionsResponse:
        if asked.line.address == A:
            return listing(asked)
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ListTransactionsResponse(error_code=code, unknown_state_filters=[], transaction_states=[])

    world = World(FindCoordinator=coordinators, ListTransactions=loading, InitProducerId=taking(lambda _: 0))
    if is_away:
        world.driver.unreachable[B] = refused(B)
    brokers_of(world).abort_left_over(INTENDED, ())
    assert aborted(world) == DEAD[:1]
    [warning] = caplog.messages
    assert "broker 2 does not tell its open transactions" in warning
    assert ("b:2 refuses connections" if is_away else "COORDINATOR_LOAD_IN_PROGRESS") in warning


def test_brokers_that_know_no_such_question_are_not_complained_of_with_every_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.unserved = {"ListTransactions"}
    brokers_of(world).abort_left_over(INTENDED, ())
    assert caplog.messages == []
