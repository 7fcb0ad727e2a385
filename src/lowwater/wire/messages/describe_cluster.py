"""DescribeCluster: brokers and the controller."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, String, message, since, struct


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterRequest:
    """`endpoint_type`: 1 brokers, 2 controllers."""

    include_cluster_authorized_operations: Bool = False
    endpoint_type: Int8 = since(1, default=1)
    include_fenced_brokers: Bool = since(2)


@struct
class DescribeClusterBroker:
    """A broker and where it can be reached."""

    broker_id: Int32
    host: String
    port: Int32
    rack: String | None = None
    is_fenced: Bool = since(2)


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterResponse:
    """Brokers and the controller."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Int8 = since(1, default=1)
    cluster_id: String
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = -0x80000000
