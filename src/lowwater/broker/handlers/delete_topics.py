"""DeleteTopics v1-6: each topic is deleted or refused by itself; by id since v6.

Deletion is durable when it is answered; the files go right after. v5 adds messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lowwater.broker.changes import Decision
from lowwater.broker.metadata_records import Record, TopicDeleted
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topic import Topic
from lowwater.broker.topics import Topics
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from lowwater.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

IDS_SINCE = 6
DISABLED_CODE_SINCE = 3


@handles(DeleteTopicsRequest)
async def delete_topics(broker: Broker, request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    asked = _asked(request, context.api_version)
    if not broker.config.bool("delete.topic.enable"):
        known = context.api_version >= DISABLED_CODE_SINCE
        code = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
        error = ApiError(code, "delete.topic.enable is false")
        return DeleteTopicsResponse(responses=[_refused([one], error) for one in asked])
    return await broker.topics.change(lambda: decide(broker.topics, asked))


def _asked(request: DeleteTopicsRequest, version: int) -> list[DeleteTopicState]:
    if version >= IDS_SINCE:
        return request.topics
    return [DeleteTopicState(name=name) for name in request.topic_names]


def decide(topics: Topics, asked: list[DeleteTopicState]) -> Decision[DeleteTopicsResponse]:
    records: list[Record] = []
    results: list[DeletableTopicResult] = []
    for same in _by_topic(topics, asked):
        try:
            topic = _find(topics, same)
        except ApiError as error:
            results.append(_refused(same, error))
            continue
        records.append(TopicDeleted(topic.id))
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.id))
    return Decision(records, DeleteTopicsResponse(responses=results))


def _by_topic(topics: Topics, asked: list[DeleteTopicState]) -> Iterable[list[DeleteTopicState]]:
    """What is asked, grouped by the topic that is meant, be it by name or by id."""
    groups: dict[object, list[DeleteTopicState]] = {}
    for one in asked:
        topic = _lookup(topics, one)
        key = topic.id if topic is not None and not _is_malformed(one) else (one.name, one.topic_id)
        groups.setdefault(key, []).append(one)
    return groups.values()


def _lookup(topics: Topics, asked: DeleteTopicState) -> Topic | None:
    return topics.by_id(asked.topic_id) if asked.name is None else topics.get(asked.name)


def _is_malformed(asked: DeleteTopicState) -> bool:
    return (asked.name is None) == (asked.topic_id == ZERO_UUID)


def _find(topics: Topics, same: list[DeleteTopicState]) -> Topic:
    asked = same[0]
    if _is_malformed(asked):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a topic is given by its name or by its id, and not by both")
    if len(same) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a topic is asked for more than once")
    topic = _lookup(topics, asked)
    if topic is not None:
        return topic
    if asked.name is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic with id {asked.topic_id.hex()}")
    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {asked.name!r}")


def _refused(same: list[DeleteTopicState], error: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=next((one.name for one in same if one.name is not None), None),
        topic_id=next((one.topic_id for one in same if one.topic_id != ZERO_UUID), ZERO_UUID),
        error_code=error.code,
        error_message=error.detail,
    )
