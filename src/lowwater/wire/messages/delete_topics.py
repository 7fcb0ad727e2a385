"""DeleteTopics: by name, and since v6 by name or id."""

from lowwater.wire.schema import ZERO_UUID, Int16, Int32, String, Uuid, message, since, struct, until


@struct
class DeleteTopicState:
    """One topic, by name or id."""

    name: String | None = None
    topic_id: Uuid = ZERO_UUID


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsRequest:
    """`topic_names` up to v5, `topics` since v6."""

    topics: list[DeleteTopicState] = since(6)
    topic_names: list[String] = until(5, ignorable=True)
    timeout_ms: Int32


@struct
class DeletableTopicResult:
    """What became of one topic."""

    name: String | None = since(0, null=6)
    topic_id: Uuid = since(6, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = since(5, ignorable=True)


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsResponse:
    """Results by topic."""

    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult]
