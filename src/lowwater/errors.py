"""Error codes of the Kafka protocol, and the three kinds of failure the broker knows.

`ApiError` is expected and answered at the narrowest scope; `WireError` closes the connection;
`StorageError` takes one partition offline.
"""

from __future__ import annotations

from enum import IntEnum

RETRIABLE = True


class ErrorCode(IntEnum):
    """Numbers as they stand on the wire, in words, and whether a client that tries again may succeed."""

    text: str
    retriable: bool

    def __new__(cls, code: int, text: str, retriable: bool = False) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.text = text
        member.retriable = retriable
        return member

    UNKNOWN_SERVER_ERROR = -1, "the broker failed in a way it did not expect; its log says more"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the offset is not within the log"
    CORRUPT_MESSAGE = 2, "the records do not match their checksum, or are not well formed", RETRIABLE
    UNKNOWN_TOPIC_OR_PARTITION = 3, "there is no such topic or partition here", RETRIABLE
    INVALID_FETCH_SIZE = 4, "the size asked for cannot be served"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at the moment", RETRIABLE
    NOT_LEADER_OR_FOLLOWER = 6, "this broker does not hold the partition", RETRIABLE
    REQUEST_TIMED_OUT = 7, "the work was not finished within the time allowed", RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "the broker is not up"
    REPLICA_NOT_AVAILABLE = 9, "the replica is not to be had here", RETRIABLE
    MESSAGE_TOO_LARGE = 10, "a batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, "the controller that sent this has been replaced"
    OFFSET_METADATA_TOO_LARGE = 12, "the text stored with a committed offset is too long"
    NETWORK_EXCEPTION = 13, "the connection broke before an answer came", RETRIABLE
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still reading its state", RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, "the coordinator cannot be reached at the moment", RETRIABLE
    NOT_COORDINATOR = 16, "another broker coordinates this", RETRIABLE
    INVALID_TOPIC_EXCEPTION = 17, "the topic's name is not allowed, or the topic is not open to clients"
    RECORD_LIST_TOO_LARGE = 18, "the batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, "too few replicas are in sync to accept the write", RETRIABLE
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "the write was made, but on too few replicas", RETRIABLE
    INVALID_REQUIRED_ACKS = 21, "acks has to be 0, 1 or all (-1)"
    ILLEGAL_GENERATION = 22, "the group has moved on to another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member's protocols do not fit those of the group"
    INVALID_GROUP_ID = 24, "the group id is not acceptable"
    UNKNOWN_MEMBER_ID = 25, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside the range that the broker allows"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing; join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the offsets to commit take more room than is allowed"
    TOPIC_AUTHORIZATION_FAILED = 29, "not allowed for this topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not allowed for this group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not allowed on this cluster"
    INVALID_TIMESTAMP = 32, "a record's timestamp is outside what the topic accepts"
    UNSUPPORTED_SASL_MECHANISM = 33, "the SASL mechanism is not offered here"
    ILLEGAL_SASL_STATE = 34, "the request does not fit the state of the login"
    UNSUPPORTED_VERSION = 35, "this version of the API is not served"
    TOPIC_ALREADY_EXISTS = 36, "a topic of this name is there already"
    INVALID_PARTITIONS = 37, "the number of partitions is not acceptable"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is below 1 or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, "the placement of replicas is not acceptable"
    INVALID_CONFIG = 40, "a setting is unknown or its value is not acceptable"
    NOT_CONTROLLER = 41, "this broker is not the controller", RETRIABLE
    INVALID_REQUEST = 42, "the request contradicts itself or lacks something"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the log's record format cannot do this"
    POLICY_VIOLATION = 44, "a policy of the cluster forbids this"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "the producer's sequence has a gap"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the batch was written before"
    INVALID_PRODUCER_EPOCH = 47, "a newer instance of this producer has taken over"
    INVALID_TXN_STATE = 48, "the transaction is not in a state that allows this"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer id does not belong to this transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is longer than the broker allows"
    CONCURRENT_TRANSACTIONS = 51, "the previous transaction of this producer is still being finished", RETRIABLE
    TRANSACTION_COORDINATOR_FENCED = 52, "a newer coordinator has taken over this transaction"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not allowed for this transactional id"
    SECURITY_DISABLED = 54, "security is not switched on here"
    OPERATION_NOT_ATTEMPTED = 55, "not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the partition's log cannot be read or written", RETRIABLE
    LOG_DIR_NOT_FOUND = 57, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "the login was refused"
    UNKNOWN_PRODUCER_ID = 59, "nothing is known of this producer any more"
    REASSIGNMENT_IN_PROGRESS = 60, "the partition is being moved"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are not switched on here"
    DELEGATION_TOKEN_NOT_FOUND = 62, "there is no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the delegation token belongs to someone else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation tokens cannot be asked for over this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not allowed for this delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "this kind of principal is not supported"
    NON_EMPTY_GROUP = 68, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, "there is no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "the fetch session is gone; start a new one", RETRIABLE
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session expected another epoch", RETRIABLE
    LISTENER_NOT_FOUND = 72, "the leader has no endpoint for the listener that was used", RETRIABLE
    TOPIC_DELETION_DISABLED = 73, "topics cannot be deleted here"
    FENCED_LEADER_EPOCH = 74, "the client's leader epoch is older than the broker's", RETRIABLE
    UNKNOWN_LEADER_EPOCH = 75, "the client's leader epoch is newer than the broker's", RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = 76, "this compression cannot be used with this version of the request"
    STALE_BROKER_EPOCH = 77, "the broker has registered anew since"
    OFFSET_NOT_AVAILABLE = 78, "the leader cannot name this offset yet", RETRIABLE
    MEMBER_ID_REQUIRED = 79, "join again with the member id in this answer"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader cannot lead now", RETRIABLE
    GROUP_MAX_SIZE_REACHED = 81, "the group has as many members as are allowed"
    FENCED_INSTANCE_ID = 82, "another member has the same instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica that could lead is up", RETRIABLE
    ELECTION_NOT_NEEDED = 84, "the right leader leads already", RETRIABLE
    NO_REASSIGNMENT_IN_PROGRESS = 85, "the partition is not being moved"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group still reads this topic"
    INVALID_RECORD = 87, "a record does not fit the rules of the topic"
    UNSTABLE_OFFSET_COMMIT = 88, "a transaction still decides about this offset", RETRIABLE
    THROTTLING_QUOTA_EXCEEDED = 89, "a quota is used up for the moment", RETRIABLE
    PRODUCER_FENCED = 90, "a newer producer with this transactional id has taken over"
    RESOURCE_NOT_FOUND = 91, "there is no such resource"
    DUPLICATE_RESOURCE = 92, "the request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential does not meet the rules"
    INCONSISTENT_VOTER_SET = 94, "the two sides disagree about the voters"
    INVALID_UPDATE_VERSION = 95, "the update names a version that is not acceptable"
    FEATURE_UPDATE_FAILED = 96, "the feature could not be changed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the forwarded principal cannot be read"
    SNAPSHOT_NOT_FOUND = 98, "there is no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position is not within the snapshot"
    UNKNOWN_TOPIC_ID = 100, "there is no topic with this id here", RETRIABLE
    DUPLICATE_BROKER_REGISTRATION = 101, "another broker has this id"
    BROKER_ID_NOT_REGISTERED = 102, "no broker has this id"
    INCONSISTENT_TOPIC_ID = 103, "the topic has another id now", RETRIABLE
    INCONSISTENT_CLUSTER_ID = 104, "the request is meant for another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "there is no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session changed between topic names and topic ids", RETRIABLE
    INELIGIBLE_REPLICA = 107, "the replica may not be in sync now"
    NEW_LEADER_ELECTED = 108, "another replica leads now"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset is in remote storage"
    FENCED_MEMBER_EPOCH = 110, "the member's epoch is not the group's; join anew"
    UNRELEASED_INSTANCE_ID = 111, "the instance id is still held by another member"
    UNSUPPORTED_ASSIGNOR = 112, "the group's broker does not have this assignor"
    STALE_MEMBER_EPOCH = 113, "the member's epoch is out of date; retry with the new one"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request went to a broker instead of a controller, or the other way round"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "this kind of endpoint is not known"
    UNKNOWN_CONTROLLER_ID = 116, "there is no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is out of date"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than is allowed"
    INVALID_REGISTRATION = 119, "the controller refuses the broker's registration"
    TRANSACTION_ABORTABLE = 120, "the transaction failed and has to be aborted"
    INVALID_RECORD_STATE = 121, "the record is not in a state that allows this acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, "the share session is gone; start a new one", RETRIABLE
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session expected another epoch", RETRIABLE
    FENCED_STATE_EPOCH = 124, "the state's epoch is older than the coordinator's"
    INVALID_VOTER_KEY = 125, "the voter's key is not the receiver's"
    DUPLICATE_VOTER = 126, "the voter is there already"
    VOTER_NOT_FOUND = 127, "there is no such voter"
    INVALID_REGULAR_EXPRESSION = 128, "the pattern is not a regular expression"
    REBOOTSTRAP_REQUIRED = 129, "the client has to start again from its bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, "the topology is not acceptable"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the topology's epoch is not acceptable"
    STREAMS_TOPOLOGY_FENCED = 132, "the topology's epoch is out of date"
    SHARE_SESSION_LIMIT_REACHED = 133, "there are as many share sessions as are allowed", RETRIABLE


# What a client sent is quoted in errors; a message on the wire, and a line in the log, has an end.
DETAIL_CHARACTERS_MAX = 1000


class LowwaterError(Exception):
    """Base of everything this package raises on purpose."""


class ApiError(LowwaterError):
    """A request cannot be served; `code` goes to the client, `detail` says why in words."""

    def __init__(self, code: ErrorCode, detail: str = "") -> None:
        if len(detail) > DETAIL_CHARACTERS_MAX:
            detail = detail[: DETAIL_CHARACTERS_MAX - 1] + "…"
        super().__init__(f"{code.name}: {detail}" if detail else code.name)
        self.code = code
        self.detail = detail


class WireError(LowwaterError):
    """The peer sent bytes that are not the protocol; the connection is closed."""


class StorageError(LowwaterError):
    """A log cannot be written or read. `retriable` is true when service resumes by itself (disk full)."""

    def __init__(self, detail: str, *, retriable: bool = False) -> None:
        super().__init__(detail)
        self.retriable = retriable


class ConfigError(LowwaterError):
    """A setting is unknown or its value is not acceptable."""
