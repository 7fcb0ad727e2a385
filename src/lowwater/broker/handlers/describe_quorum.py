"""DescribeQuorum v0-2: a quorum of one, for tools that look after the metadata log.

v1 adds times, v2 messages, directory ids and nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ErrorCode
from lowwater.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    QuorumPartitionResult,
    QuorumTopicResult,
    ReplicaState,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

METADATA_TOPIC = "__cluster_metadata"
NODES_SINCE = 2


@handles(DescribeQuorumRequest)
def describe_quorum(broker: Broker, request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(
            error_message="",
            topics=[
                QuorumTopicResult(topic_name=name, partitions=[_unknown(index) for index in indexes])
                for name, indexes in asked
            ],
            nodes=[],
        )
    return DescribeQuorumResponse(
        error_message="",
        topics=[QuorumTopicResult(topic_name=METADATA_TOPIC, partitions=[_quorum(broker)])],
        nodes=[_node(broker)] if context.api_version >= NODES_SINCE else [],
    )


def _quorum(broker: Broker) -> QuorumPartitionResult:
    now_ms = broker.clock.now_ms()
    end = broker.topics.version
    this = ReplicaState(
        replica_id=broker.node_id, log_end_offset=end, last_fetch_timestamp=now_ms, last_caught_up_timestamp=now_ms
    )
    return QuorumPartitionResult(
        partition_index=0,
        error_message="",
        leader_id=broker.node_id,
        leader_epoch=1,
        high_watermark=end,
        current_voters=[this],
        observers=[],
    )


def _node(broker: Broker) -> Node:
    listener = Listener(name="PLAINTEXT", host=broker.advertised.host, port=broker.advertised.port)
    return Node(node_id=broker.node_id, listeners=[listener])


def _unknown(index: int) -> QuorumPartitionResult:
    return QuorumPartitionResult(
        partition_index=index,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=f"only partition 0 of {METADATA_TOPIC} has a quorum",
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )
