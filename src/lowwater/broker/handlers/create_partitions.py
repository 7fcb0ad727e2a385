"""CreatePartitions v0-3: let topics grow to a number of partitions; each is done or refused by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lowwater.broker.assignments import check_replicas
from lowwater.broker.changes import Decision
from lowwater.broker.handlers.create_topics import PARTITIONS_PER_REQUEST_MAX
from lowwater.broker.metadata_records import PartitionsAdded, Record
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topic import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(CreatePartitionsRequest)
async def create_partitions(
    broker: Broker, request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    return await broker.topics.change(lambda: decide(broker, request))


def decide(broker: Broker, request: CreatePartitionsRequest) -> Decision[CreatePartitionsResponse]:
    records: list[Record] = []
    results: list[CreatePartitionsTopicResult] = []
    named = Counter(topic.name for topic in request.topics)
    for asked in {topic.name: topic for topic in request.topics}.values():
        try:
            if named[asked.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"topic {asked.name!r} is named {named[asked.name]} times")
            records.append(_add(broker, asked))
        except ApiError as error:
            results.append(
                CreatePartitionsTopicResult(name=asked.name, error_code=error.code, error_message=error.detail)
            )
            continue
        results.append(CreatePartitionsTopicResult(name=asked.name))
    return Decision([] if request.validate_only else records, CreatePartitionsResponse(results=results))


def _add(broker: Broker, asked: CreatePartitionsTopic) -> PartitionsAdded:
    topic = broker.topics.get(asked.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {asked.name!r}")
    if topic.name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        # A coordinator's records are found by the number of partitions: with another one they would be lost.
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"{topic.name} cannot grow")
    more = asked.count - topic.partition_count
    if more <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {topic.partition_count} partitions; {asked.count} is not more",
        )
    if more > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"a request can create {PARTITIONS_PER_REQUEST_MAX} partitions at most"
        )
    if asked.assignments is not None:
        _check_assignments(broker, asked, more)
    return PartitionsAdded(topic.id, asked.count, broker.store.boot_count)


def _check_assignments(broker: Broker, asked: CreatePartitionsTopic, more: int) -> None:
    assert asked.assignments is not None
    if len(asked.assignments) != more:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{more} partitions are to be added, {len(asked.assignments)} are assigned",
        )
    for assignment in asked.assignments:
        check_replicas(assignment.broker_ids, broker.node_id)
