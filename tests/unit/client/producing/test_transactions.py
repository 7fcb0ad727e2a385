"""Transactions: what is said to coordinators of either kind, what a failure allows, and who is fenced."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.producing.played import NODES, TOPIC, Played, rows
from tests.unit.client.virtual import Asked, versions_answer

from lowwater.client.coordinator import Committed, Identity
from lowwater.client.errors import (
    AbortableError,
    AuthorizationError,
    ClientError,
    FencedError,
    NotMemberError,
    RequestTimeoutError,
    TransactionError,
)
from lowwater.client.producing.ending import Prepared, end_prepared
from lowwater.client.producing.transactions import FROM, State
from lowwater.errors import ConfigError, ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import (
    ApiVersionsResponse,
    EndTxnResponse,
    FindCoordinatorResponse,
    InitProducerIdResponse,
)
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from lowwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from lowwater.wire.messages.api_versions import FinalizedFeatureKey
from lowwater.wire.messages.find_coordinator import Coordinator
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from lowwater.wire.records import BatchHeader

ID = "payments"
OLDER, NEWER = 1, 2
"""Levels of transaction.version."""
VERSIONS = pytest.mark.parametrize("version", [OLDER, NEWER])
TALK = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "Produce", "EndTxn")


class PlayedTransactions(Played):
    """With a coordinator that says yes to everything it is not told to refuse."""

    def __init__(self, version: int, partitions: int = 1, **settings: Any) -> None:
        super().__init__(partitions, transactional_id=ID, **settings)
        self.version = version
        self.epoch = -1
        self.heard: list[str] = []
        self.more |= {
            "ApiVersions": lambda _: self._versions(),
            "FindCoordinator": self._coordinator,
            "InitProducerId": lambda _: self._next_epoch(),
            "AddPartitionsToTxn": lambda asked: self.added(asked, 0),
            "AddOffsetsToTxn": lambda _: AddOffsetsToTxnResponse(),
            "TxnOffsetCommit": lambda asked: self.committed(asked, 0),
            "EndTxn": self._end,
        }

    def _versions(self) -> ApiVersionsResponse:
        keys = versions_answer().api_keys
        feature = FinalizedFeatureKey(name="transaction.version", max_version_level=self.version, min_version_level=1)
        return ApiVersionsResponse(api_keys=keys, finalized_features=[feature], finalized_features_epoch=1)

    def _coordinator(self, asked: Asked) -> FindCoordinatorResponse:
        at = NODES[2]
        found = [Coordinator(key=key, node_id=2, host=at.host, port=at.port) for key in asked.request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    def _next_epoch(self) -> InitProducerIdResponse:
        self.epoch += 1
        return InitProducerIdResponse(producer_id=70, producer_epoch=self.epoch)

    def added(self, asked: Asked, code: int) -> AddPartitionsToTxnResponse:
        topics = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in asked.request.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=[], results_by_topic_v3_and_below=topics)

    def committed(self, asked: Asked, code: int) -> TxnOffsetCommitResponse:
        topics = [
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in asked.request.topics
        ]
        return TxnOffsetCommitResponse(topics=topics)

    def _end(self, asked: Asked) -> EndTxnResponse:
        if asked.version < 5:
            return EndTxnResponse()
        self.epoch += 1
        return EndTxnResponse(producer_id=70, producer_epoch=self.epoch)

    def talk(self) -> list[str]:
        """What was asked, in order, retries as often as they were."""
        return [name for name in self.heard if name in TALK]

    def answer(self, asked: Asked) -> Any:
        self.heard.append(asked.api.name)
        return super().answer(asked)

    # ---- the producer's side

    @property
    def state(self) -> State:
        assert self.core.transactions is not None
        return self.core.transactions.state

    def begin(self) -> None:
        self.run(self.core.begin_transaction())

    def commit(self, timeout_ms: float | None = None) -> None:
        self.run(self.core.commit_transaction(timeout_ms))

    def abort(self, timeout_ms: float | None = None) -> None:
        self.run(self.core.abort_transaction(timeout_ms))


def answer(response: Any) -> Any:
    return lambda _: response


def test_older_coordinators_are_told_of_partitions_before_they_are_written() -> None:
    played = PlayedTransactions(OLDER)
    played.begin()
    played.settle(played.send(rows(0, 2)))
    played.settle(played.send(rows(2, 2)))
    played.commit()
    assert played.talk() == ["InitProducerId", "AddPartitionsToTxn", "Produce", "Produce", "EndTxn"]
    assert {asked.version for asked in played.asked("Produce")} == {11}
    assert played.asked("EndTxn")[0].version == 4
    played.begin()
    played.settle(played.send(rows(4, 2)))
    played.commit()
    assert played.talk()[5:] == ["AddPartitionsToTxn", "Produce", "EndTxn"]
    last = BatchHeader.parse(bytes(played.asked("Produce")[-1].request.topic_data[0].partition_data[0].records))
    assert (last.producer_epoch, last.base_sequence, last.is_transactional) == (0, 4, True)


def test_newer_coordinators_learn_of_partitions_from_the_write_and_give_each_transaction_an_epoch() -> None:
    played = PlayedTransactions(NEWER)
    for number in range(2):
        played.begin()
        played.settle(played.send(rows(2 * number, 2)))
        played.commit()
    assert played.talk() == ["InitProducerId", "Produce", "EndTxn", "Produce", "EndTxn"]
    headers = [
        BatchHeader.parse(bytes(asked.request.topic_data[0].partition_data[0].records))
        for asked in played.asked("Produce")
    ]
    assert [(header.producer_epoch, header.base_sequence) for header in headers] == [(0, 0), (1, 0)]
    assert {asked.version for asked in played.asked("Produce")} == {13}


def test_a_producer_goes_on_in_the_older_way_when_the_level_was_lowered() -> None:
    played = PlayedTransactions(NEWER)
    played.begin()
    played.settle(played.send(rows(0, 2)))
    played.version = OLDER
    played.whim("EndTxn", lambda _: EndTxnResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    played.commit()
    assert [asked.version for asked in played.asked("EndTxn")] == [5, 4]
    played.begin()
    played.settle(played.send(rows(2, 2)))
    played.commit()
    assert played.talk()[4:] == ["AddPartitionsToTxn", "Produce", "EndTxn"]
    last = BatchHeader.parse(bytes(played.asked("Produce")[-1].request.topic_data[0].partition_data[0].records))
    assert (last.producer_epoch, last.base_sequence) == (0, 2)


def test_a_version_that_is_refused_although_the_level_has_it_ends_the_producer() -> None:
    played = PlayedTransactions(NEWER)
    played.begin()
    played.settle(played.send(rows(0, 2)))
    played.whim("EndTxn", lambda _: EndTxnResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    with pytest.raises(ClientError, match="UNSUPPORTED_VERSION"):
        played.commit()
    assert played.state is State.DEAD


@VERSIONS
def test_a_transaction_without_rows_says_nothing_to_its_coordinator(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    played.commit()
    played.begin()
    played.abort()
    assert played.talk() == ["InitProducerId"]


@VERSIONS
def test_rows_and_ends_need_a_transaction_that_is_open(version: int) -> None:
    played = PlayedTransactions(version)
    with pytest.raises(TransactionError, match="not initialised"):
        played.send(rows(0, 1))
    with pytest.raises(TransactionError, match="not initialised"):
        played.commit()
    played.run(played.core.init_transactions())
    with pytest.raises(TransactionError, match="no transaction is open"):
        played.send(rows(0, 1))
    with pytest.raises(TransactionError, match="no transaction is open"):
        played.abort()
    played.begin()
    with pytest.raises(TransactionError, match="a transaction is open"):
        played.begin()


def test_a_producer_without_an_id_has_no_transactions() -> None:
    played = Played()
    with pytest.raises(TransactionError, match=r"no transactional\.id"):
        played.run(played.core.begin_transaction())
    with pytest.raises(ConfigError, match="idempotence"):
        Played(transactional_id=ID, enable_idempotence=False)
    with pytest.raises(ConfigError, match="acks"):
        Played(transactional_id=ID, acks="1")


@VERSIONS
def test_a_row_that_is_not_written_leaves_only_abort(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    played.whim("Produce", played.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    played.settle(played.send(rows(0, 2)))
    with pytest.raises(AbortableError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        played.commit()
    assert isinstance(caught.value.__cause__, AuthorizationError)
    with pytest.raises(AbortableError):
        played.send(rows(2, 2))
    played.abort()
    assert played.asked("EndTxn")[-1].request.committed is False
    played.begin()
    played.settle(played.send(rows(4, 2)))
    played.commit()
    assert played.values() == rows(4, 2)


@VERSIONS
def test_rows_that_never_reach_a_partition_break_the_transaction_too(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    assert played.settle(played.send(rows(0, 1), partition=5)).failed == 1
    with pytest.raises(AbortableError):
        played.commit()


def test_older_coordinators_give_another_epoch_after_an_abort_that_left_gaps() -> None:
    played = PlayedTransactions(OLDER)
    played.begin()
    played.settle(played.send(rows(0, 2)))
    played.abort()
    assert played.talk()[-1] == "EndTxn", "everything was written: sequences go on"
    played.begin()
    played.whim("Produce", played.refuse(ErrorCode.NOT_ENOUGH_REPLICAS))
    played.send(rows(2, 2))
    played.abort()
    assert played.talk()[-2:] == ["EndTxn", "InitProducerId"]
    asked = played.asked("InitProducerId")[-1].request
    assert (asked.producer_id, asked.producer_epoch) == (70, 0)
    played.begin()
    played.settle(played.send(rows(4, 2)))
    played.commit()
    assert played.values() == [*rows(0, 2), *rows(4, 2)]


@VERSIONS
def test_what_waits_is_not_sent_after_an_abort(version: int) -> None:
    played = PlayedTransactions(version, batch_size=200)
    played.begin()
    played.more["Produce"] = played.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    report = played.send(rows(0, 50))
    played.abort()
    assert report.done
    assert report.failed == 50
    assert played.values() == []
    assert played.state is State.READY


@VERSIONS
def test_a_producer_that_was_replaced_is_told_so_for_good(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    played.whim("Produce", played.refuse(ErrorCode.INVALID_PRODUCER_EPOCH))
    played.settle(played.send(rows(0, 2)))
    for call in (played.commit, played.abort, played.begin):
        with pytest.raises(FencedError, match="another producer"):
            call()
    assert played.asked("EndTxn") == []


@VERSIONS
def test_a_commit_that_is_fenced_ends_the_producer(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    played.settle(played.send(rows(0, 2)))
    played.whim("EndTxn", answer(EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)))
    with pytest.raises(FencedError):
        played.commit()
    assert played.state is State.DEAD


@VERSIONS
def test_a_commit_that_nobody_answers_is_asked_for_again(version: int) -> None:
    played = PlayedTransactions(version, request_timeout_ms=500)
    played.begin()
    played.settle(played.send(rows(0, 2)))
    played.whim("EndTxn", *[played.say_nothing] * 20)
    with pytest.raises(RequestTimeoutError):
        played.commit(timeout_ms=2_000)
    with pytest.raises(TransactionError, match="being committed"):
        played.abort()
    played.whims["EndTxn"].clear()
    played.commit()
    assert {asked.request.committed for asked in played.asked("EndTxn")} == {True}
    assert len({asked.request.producer_epoch for asked in played.asked("EndTxn")}) == 1
    assert played.state is State.READY


@VERSIONS
def test_coordinators_that_move_and_transactions_that_are_still_ending_are_waited_for(version: int) -> None:
    played = PlayedTransactions(version)
    busy = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=-1)
    gone = InitProducerIdResponse(error_code=ErrorCode.NOT_COORDINATOR, producer_epoch=-1)
    played.whim("InitProducerId", answer(busy), answer(gone))
    played.begin()
    played.whim("AddPartitionsToTxn", lambda asked: played.added(asked, ErrorCode.CONCURRENT_TRANSACTIONS))
    played.settle(played.send(rows(0, 2)))
    played.whim("EndTxn", answer(EndTxnResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)))
    played.commit()
    assert len(played.asked("InitProducerId")) == 3
    assert len(played.asked("FindCoordinator")) == 2
    assert played.values() == rows(0, 2)


@VERSIONS
def test_the_end_of_the_transaction_before_is_not_waited_for_longer_than_it_takes(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    ending = 3
    played.whim("AddPartitionsToTxn", *[lambda asked: played.added(asked, ErrorCode.CONCURRENT_TRANSACTIONS)] * ending)
    if version == NEWER:
        played.whim("Produce", *[played.refuse(ErrorCode.CONCURRENT_TRANSACTIONS)] * ending)
    began_ms = played.driver.monotonic_ms()
    played.settle(played.send(rows(0, 2)))
    assert played.driver.monotonic_ms() - began_ms < 100
    played.commit()


def test_a_partition_that_may_not_be_part_of_it_breaks_the_transaction() -> None:
    played = PlayedTransactions(OLDER)
    played.begin()
    played.whim("AddPartitionsToTxn", lambda asked: played.added(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    report = played.settle(played.send(rows(0, 2)))
    assert report.failed == 2
    assert played.asked("Produce") == []
    played.abort()
    assert played.state is State.READY


@pytest.mark.parametrize(
    ("version", "asks"),
    [(OLDER, ["AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]), (NEWER, ["TxnOffsetCommit", "EndTxn"])],
)
def test_offsets_of_a_group_are_part_of_it(version: int, asks: list[str]) -> None:
    played = PlayedTransactions(version)
    played.begin()
    offsets = {TopicPartition(TOPIC, 0): 7, TopicPartition("other", 3): Committed(9, metadata="note")}
    by = Identity("member", 4, "instance")
    played.run(played.core.send_offsets(offsets, "readers", by))
    played.commit()
    assert played.talk()[1:] == asks
    [asked] = played.asked("TxnOffsetCommit")
    request = asked.request
    assert (request.group_id, request.member_id, request.generation_id) == ("readers", "member", 4)
    sent = {(topic.name, each.partition_index): each for topic in request.topics for each in topic.partitions}
    assert sent[TOPIC, 0].committed_offset == 7
    assert (sent["other", 3].committed_offset, sent["other", 3].committed_metadata) == (9, "note")


@VERSIONS
def test_offsets_of_a_member_that_is_out_break_the_transaction(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    played.whim("TxnOffsetCommit", lambda asked: played.committed(asked, ErrorCode.ILLEGAL_GENERATION))
    with pytest.raises(NotMemberError):
        played.run(played.core.send_offsets({TopicPartition(TOPIC, 0): 7}, "readers", Identity("m", 1)))
    with pytest.raises(AbortableError):
        played.commit()
    played.abort()


@VERSIONS
def test_a_prepared_transaction_is_left_open_and_ended_by_whoever_knows_it(version: int) -> None:
    played = PlayedTransactions(version)
    played.begin()
    played.send(rows(0, 2))
    prepared = played.run(played.core.prepare_transaction())
    assert prepared == Prepared(ID, 70, 0)
    assert played.values() == rows(0, 2)
    with pytest.raises(TransactionError, match="elsewhere"):
        played.commit()
    other = PlayedTransactions(version)
    other.run(end_prepared(other.core.cluster, prepared, commit=True))
    [asked] = other.asked("EndTxn")
    assert (asked.request.producer_id, asked.request.producer_epoch, asked.request.committed) == (70, 0, True)
    other.whim("EndTxn", answer(EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)))
    with pytest.raises(TransactionError, match="cannot be aborted"):
        other.run(end_prepared(other.core.cluster, prepared, commit=False))
    other.whim("EndTxn", answer(EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH)))
    with pytest.raises(FencedError):
        other.run(end_prepared(other.core.cluster, prepared, commit=True))


def test_a_broken_transaction_is_not_prepared() -> None:
    played = PlayedTransactions(NEWER)
    played.begin()
    played.whim("Produce", played.refuse(ErrorCode.TRANSACTION_ABORTABLE))
    played.send(rows(0, 2))
    with pytest.raises(AbortableError):
        played.run(played.core.prepare_transaction())


def test_every_call_has_states_in_which_it_is_possible() -> None:
    reachable = {state for states in FROM.values() for state in states}
    assert reachable == set(State) - {State.PREPARED, State.DEAD}
