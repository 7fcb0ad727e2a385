"""DeleteTopics v1-6: each topic is deleted or refused by itself; by id since v6.

Deletion is durable when it is answered; the files go right after. v5 adds messages.
"""

from __future__ import annotations

from collections import Counter
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
        return DeleteTopicsResponse(responses=[_refused(one, code, "delete.topic.enable is false") for one in asked])
    return await broker.topics.change(lambda: decide(broker.topics, asked))


def _asked(request: DeleteTopicsRequest, version: int) -> list[DeleteTopicState]:
    if version >= IDS_SINCE:
        return request.topics
    return [DeleteTopicState(name=name) for name in request.topic_names]


def decide(topics: Topics, asked: list[DeleteTopicState]) -> Decision[DeleteTopicsResponse]:
    records: list[Record] = []
    results: list[DeletableTopicResult] = []
    names = Counter(one.name for one in asked if one.name is not None)
    ids = Counter(one.topic_id for one in asked if one.topic_id != ZERO_UUID)
    for one in {(one.name, one.topic_id): one for one in asked}.values():
        try:
            topic = _find(topics, one, names, ids)
        except ApiError as error:
            results.append(_refused(one, error.code, error.detail))
            continue
        records.append(TopicDeleted(topic.id))
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.id))
    return Decision(records, DeleteTopicsResponse(responses=results))


def _find(topics: Topics, asked: DeleteTopicState, names: Counter[str], ids: Counter[bytes]) -> Topic:
    if asked.name is not None and asked.topic_id != ZERO_UUID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a topic is named by its name or by its id, not by both")
    if asked.name is None and asked.topic_id == ZERO_UUID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a topic has neither name nor id")
    if asked.name is None:
        return _find_by_id(topics, asked.topic_id, names, ids)
    topic = topics.get(asked.name)
    if names[asked.name] > 1 or (topic is not None and topic.id in ids):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"topic {asked.name!r} is asked for more than once")
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {asked.name!r}")
    return topic


def _find_by_id(topics: Topics, topic_id: bytes, names: Counter[str], ids: Counter[bytes]) -> Topic:
    topic = topics.by_id(topic_id)
    if ids[topic_id] > 1 or (topic is not None and topic.name in names):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"topic id {topic_id.hex()} is asked for more than once")
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic with id {topic_id.hex()}")
    return topic


def _refused(asked: DeleteTopicState, code: ErrorCode, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(name=asked.name, topic_id=asked.topic_id, error_code=code, error_message=message)
