"""WriteTxnMarkers v1-2: the end of transactions, written where an administrator says; answered when it is durable.

This is how a transaction is ended that no coordinator knows of. v2 says whether each transaction has its own epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.transaction_markers import Ending, write_ending
from lowwater.broker.writers import NOT_NOW
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending
from lowwater.types import TopicPartition
from lowwater.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

EPOCH_PER_TRANSACTION = 2


@handles(WriteTxnMarkersRequest)
def write_txn_markers(broker: Broker, request: WriteTxnMarkersRequest, context: RequestContext) -> Any:
    written = [_write(broker, marker) for marker in request.markers]
    return Pending.gather(written, lambda results: WriteTxnMarkersResponse(markers=results))


def _write(broker: Broker, marker: WritableTxnMarker) -> WritableTxnMarkerResult | Pending[WritableTxnMarkerResult]:
    ending = Ending(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version >= EPOCH_PER_TRANSACTION,
    )
    places = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        nobody = ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, "no producer has this id and epoch")
        return _result(marker, dict.fromkeys(places, nobody))
    return write_ending(broker, ending, places).map(lambda failed: _result(marker, failed))


def _result(marker: WritableTxnMarker, failed: dict[TopicPartition, ApiError]) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=_code(failed.get(TopicPartition(topic.name, index)))
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def _code(error: ApiError | None) -> ErrorCode:
    if error is None:
        return ErrorCode.NONE
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in NOT_NOW else error.code
