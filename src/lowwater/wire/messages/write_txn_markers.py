"""WriteTxnMarkers: the end of transactions, written into partitions."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, Int64, String, message, since, struct


@struct
class WritableTxnMarkerTopic:
    """Partitions of one topic."""

    name: String
    partition_indexes: list[Int32]


@struct
class WritableTxnMarker:
    """The end of one transaction, and where to write it. `transaction_result`: whether it is committed."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: Int32
    transaction_version: Int8 = since(2, default=0, ignorable=True)


@message(key=27, versions=(1, 2), flexible=1)
class WriteTxnMarkersRequest:
    """Write these markers."""

    markers: list[WritableTxnMarker]


@struct
class WritableTxnMarkerPartitionResult:
    """How it went for one partition."""

    partition_index: Int32
    error_code: Int16 = 0


@struct
class WritableTxnMarkerTopicResult:
    """How it went for the partitions of one topic."""

    name: String
    partitions: list[WritableTxnMarkerPartitionResult]


@struct
class WritableTxnMarkerResult:
    """How it went for one transaction."""

    producer_id: Int64
    topics: list[WritableTxnMarkerTopicResult]


@message(key=27, versions=(1, 2), flexible=1)
class WriteTxnMarkersResponse:
    """Results in the order of the markers."""

    markers: list[WritableTxnMarkerResult]
