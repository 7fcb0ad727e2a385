"""ElectLeaders v0-2: this node leads every partition already, so no election is needed.

v1 adds the type of election and an error code for the whole. Null asks for all topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ErrorCode
from lowwater.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

PREFERRED, UNCLEAN = 0, 1


@handles(ElectLeadersRequest)
def elect_leaders(broker: Broker, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    if request.election_type not in (PREFERRED, UNCLEAN):
        return _refused(request)
    if request.topic_partitions is None:
        # All topics: only partitions with another outcome than "not needed" would be listed.
        all_topics = [ReplicaElectionResult(topic=name, partition_result=[]) for name in broker.topics.names()]
        return ElectLeadersResponse(replica_election_results=all_topics)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=asked.topic,
                partition_result=[_result(broker, asked.topic, index) for index in asked.partitions],
            )
            for asked in request.topic_partitions
        ]
    )


def _refused(request: ElectLeadersRequest) -> ElectLeadersResponse:
    """The error stands at the top and at each partition, as Kafka has it."""
    code, message = ErrorCode.INVALID_REQUEST, f"election type {request.election_type} is not known"
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=asked.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code, error_message=message)
                    for index in asked.partitions
                ],
            )
            for asked in request.topic_partitions or ()
        ],
    )


def _result(broker: Broker, name: str, index: int) -> PartitionResult:
    topic = broker.topics.get(name)
    if topic is None or not 0 <= index < topic.partition_count:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "this node is the leader already"
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
