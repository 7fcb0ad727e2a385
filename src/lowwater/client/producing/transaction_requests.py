"""What is said of a transaction besides its rows: partitions and groups that belong to it, and offsets of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from lowwater.client.coordinator import Committed
from lowwater.client.coordinator import Identity as MemberIdentity
from lowwater.client.producing.ending import Prepared
from lowwater.types import TopicPartition
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from lowwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

Offset: TypeAlias = int | Committed
"""The next offset to read, alone or with a note."""


def add_partitions(prepared: Prepared, partitions: Iterable[TopicPartition]) -> AddPartitionsToTxnRequest:
    """As clients ask it, up to v3."""
    topics = [AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in _by_topic(partitions).items()]
    return AddPartitionsToTxnRequest(
        transactions=[],
        v3_and_below_transactional_id=prepared.transactional_id,
        v3_and_below_producer_id=prepared.producer_id,
        v3_and_below_producer_epoch=prepared.epoch,
        v3_and_below_topics=topics,
    )


def added_codes(response: AddPartitionsToTxnResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def add_offsets(prepared: Prepared, group: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=prepared.transactional_id,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.epoch,
        group_id=group,
    )


def commit_offsets(
    prepared: Prepared, group: str, by: MemberIdentity, offsets: Mapping[TopicPartition, Offset]
) -> TxnOffsetCommitRequest:
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name, partitions=[_offset(each, offsets[TopicPartition(name, each)]) for each in found]
        )
        for name, found in _by_topic(offsets).items()
    ]
    return TxnOffsetCommitRequest(
        transactional_id=prepared.transactional_id,
        group_id=group,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.epoch,
        generation_id=by.generation,
        member_id=by.member_id,
        group_instance_id=by.instance_id,
        topics=topics,
    )


def commit_codes(response: TxnOffsetCommitResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


def _offset(partition: int, given: Offset) -> TxnOffsetCommitRequestPartition:
    note = given if isinstance(given, Committed) else Committed(given)
    return TxnOffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=note.offset,
        committed_leader_epoch=note.leader_epoch,
        committed_metadata=note.metadata,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
