"""CreateTopics: new topics, with their settings."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, String, Uuid, message, since, struct, tagged


@struct
class CreatableReplicaAssignment:
    """A manual placement of one partition."""

    partition_index: Int32
    broker_ids: list[Int32]


@struct
class CreatableTopicConfig:
    """A setting of the new topic."""

    name: String
    value: String | None = None


@struct
class CreatableTopic:
    """One topic to be created; -1 stands for the default number of partitions or replicas."""

    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment] = since(0)
    configs: list[CreatableTopicConfig] = since(0)


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsRequest:
    """Create topics, or only check whether that would work."""

    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


@struct
class CreatableTopicConfigs:
    """A setting of the created topic."""

    name: String
    value: String | None = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


@struct
class CreatableTopicResult:
    """What became of one topic."""

    name: String
    topic_id: Uuid = since(7, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = None
    topic_config_error_code: Int16 = tagged(0, since=5, ignorable=True)
    num_partitions: Int32 = since(5, default=-1, ignorable=True)
    replication_factor: Int16 = since(5, default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = since(5, ignorable=True)


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsResponse:
    """Results by topic."""

    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult]
