"""DescribeCluster v0-2: this node alone, which is also what a client may take for the controller.

v1 adds the type of endpoint (1 brokers, 2 controllers); v2 fenced brokers, of which there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.operations import NOT_ASKED, ON_CLUSTER
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ErrorCode
from lowwater.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

BROKERS, CONTROLLERS = 1, 2


@handles(DescribeClusterRequest)
def describe_cluster(
    broker: Broker, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        return _refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "controllers are not reached at a broker's address")
    if request.endpoint_type != BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"endpoint type {request.endpoint_type} is not known")
    this = DescribeClusterBroker(
        broker_id=broker.node_id,
        host=broker.advertised.host,
        port=broker.advertised.port,
        rack=broker.config.maybe_str("broker.rack"),
    )
    return DescribeClusterResponse(
        cluster_id=broker.topics.cluster_id,
        controller_id=broker.node_id,
        brokers=[this],
        cluster_authorized_operations=ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED,
    )


def _refused(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=[])
