"""The requests and responses of the protocol, and the table of APIs. Structs are found in the module of their API."""

from typing import Any, NamedTuple

from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from lowwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from lowwater.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from lowwater.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from lowwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from lowwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from lowwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from lowwater.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from lowwater.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from lowwater.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from lowwater.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from lowwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from lowwater.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from lowwater.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from lowwater.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from lowwater.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from lowwater.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from lowwater.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from lowwater.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from lowwater.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from lowwater.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from lowwater.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from lowwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from lowwater.wire.messages.fetch import FetchRequest, FetchResponse
from lowwater.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from lowwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from lowwater.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from lowwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from lowwater.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from lowwater.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from lowwater.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from lowwater.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from lowwater.wire.messages.metadata import MetadataRequest, MetadataResponse
from lowwater.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from lowwater.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from lowwater.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from lowwater.wire.messages.produce import ProduceRequest, ProduceResponse
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from lowwater.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from lowwater.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from lowwater.wire.schema import declaration_of

__all__ = [
    "API",
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "AlterConfigsRequest",
    "AlterConfigsResponse",
    "Api",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "EndTxnRequest",
    "EndTxnResponse",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]


class Api(NamedTuple):
    """One API: its messages, the versions declared, and the first version with compact fields and tags."""

    key: int
    name: str
    request: type[Any]
    response: type[Any]
    version_min: int
    version_max: int
    flexible_since: int | None


def _api(request: type[Any], response: type[Any]) -> Api:
    declared = declaration_of(request)
    name = request.__name__.removesuffix("Request")
    return Api(
        declared.key,
        name,
        request,
        response,
        declared.version_min,
        declared.version_max,
        declared.flexible_since,
    )


API: dict[int, Api] = {
    api.key: api
    for api in (
        _api(ProduceRequest, ProduceResponse),
        _api(FetchRequest, FetchResponse),
        _api(ListOffsetsRequest, ListOffsetsResponse),
        _api(MetadataRequest, MetadataResponse),
        _api(OffsetCommitRequest, OffsetCommitResponse),
        _api(OffsetFetchRequest, OffsetFetchResponse),
        _api(FindCoordinatorRequest, FindCoordinatorResponse),
        _api(JoinGroupRequest, JoinGroupResponse),
        _api(HeartbeatRequest, HeartbeatResponse),
        _api(LeaveGroupRequest, LeaveGroupResponse),
        _api(SyncGroupRequest, SyncGroupResponse),
        _api(DescribeGroupsRequest, DescribeGroupsResponse),
        _api(ListGroupsRequest, ListGroupsResponse),
        _api(ApiVersionsRequest, ApiVersionsResponse),
        _api(CreateTopicsRequest, CreateTopicsResponse),
        _api(DeleteTopicsRequest, DeleteTopicsResponse),
        _api(DeleteRecordsRequest, DeleteRecordsResponse),
        _api(InitProducerIdRequest, InitProducerIdResponse),
        _api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
        _api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
        _api(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
        _api(EndTxnRequest, EndTxnResponse),
        _api(WriteTxnMarkersRequest, WriteTxnMarkersResponse),
        _api(TxnOffsetCommitRequest, TxnOffsetCommitResponse),
        _api(DescribeConfigsRequest, DescribeConfigsResponse),
        _api(AlterConfigsRequest, AlterConfigsResponse),
        _api(DescribeLogDirsRequest, DescribeLogDirsResponse),
        _api(CreatePartitionsRequest, CreatePartitionsResponse),
        _api(DeleteGroupsRequest, DeleteGroupsResponse),
        _api(ElectLeadersRequest, ElectLeadersResponse),
        _api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
        _api(OffsetDeleteRequest, OffsetDeleteResponse),
        _api(DescribeClientQuotasRequest, DescribeClientQuotasResponse),
        _api(AlterClientQuotasRequest, AlterClientQuotasResponse),
        _api(DescribeQuorumRequest, DescribeQuorumResponse),
        _api(UpdateFeaturesRequest, UpdateFeaturesResponse),
        _api(DescribeClusterRequest, DescribeClusterResponse),
        _api(DescribeProducersRequest, DescribeProducersResponse),
        _api(DescribeTransactionsRequest, DescribeTransactionsResponse),
        _api(ListTransactionsRequest, ListTransactionsResponse),
        _api(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
        _api(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
        _api(ListConfigResourcesRequest, ListConfigResourcesResponse),
        _api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
    )
}
