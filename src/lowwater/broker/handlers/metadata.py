"""Metadata v0-13: the broker, and topics with their partitions; may create topics on the way.

In v0 an empty list asks for all topics, since v1 null does. v4 lets a client forbid creation (v0-3 always allow it);
v8-10 tell authorized operations of the cluster; v10 adds topic ids, by which v12 can ask.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lowwater.broker.changes import Decision
from lowwater.broker.operations import NOT_ASKED, ON_CLUSTER, ON_TOPICS
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topic import INTERNAL_TOPICS, Topic
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending
from lowwater.types import topic_name_problem
from lowwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from lowwater.wire.schema import ZERO_UUID, encoder

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

IDS_SINCE = 12
NULL_ASKS_ALL_SINCE = 1


@handles(MetadataRequest)
def metadata(broker: Broker, request: MetadataRequest, context: RequestContext) -> MetadataResponse | bytes:
    if _names_ids_too_early(request, context.api_version):
        refused = [_refused(ErrorCode.INVALID_REQUEST, one.name or "", one.topic_id) for one in request.topics or []]
        return _response(broker, refused)
    asks_all = request.topics is None or (not request.topics and context.api_version < NULL_ASKS_ALL_SINCE)
    # What is asked twice is answered once, and what is kept must not be longer than the answer it is kept for.
    asked = {} if asks_all else {(one.topic_id, one.name): one for one in request.topics or ()}
    key = (
        context.api_version,
        broker.advertised,
        None if asks_all else tuple(asked),
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
    )
    cached = broker.topics.answers.get(key)
    if cached is not None:
        return cached
    response = _response(broker, _topics(broker, request, None if asks_all else asked.values()))
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ON_CLUSTER
    if any(topic.error_code for topic in response.topics):
        return response
    return broker.topics.answers.put(key, encoder(MetadataResponse, context.api_version)(response))


def _names_ids_too_early(request: MetadataRequest, version: int) -> bool:
    """v10 and v11 have room for ids, but only v12 looks at them."""
    return version < IDS_SINCE and any(one.name is None or one.topic_id != ZERO_UUID for one in request.topics or ())


def _topics(
    broker: Broker, request: MetadataRequest, asked: Iterable[MetadataRequestTopic] | None
) -> list[MetadataResponseTopic]:
    """Those asked for, or all."""
    operations = ON_TOPICS if request.include_topic_authorized_operations else NOT_ASKED
    if asked is None:
        return [_found(broker, topic, operations) for topic in sorted(broker.topics, key=lambda topic: topic.name)]
    create = request.allow_auto_topic_creation and broker.config.bool("auto.create.topics.enable")
    return [_answer(broker, one, operations, create=create) for one in asked]


def _response(broker: Broker, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    this = MetadataResponseBroker(
        node_id=broker.node_id,
        host=broker.advertised.host,
        port=broker.advertised.port,
        rack=broker.config.maybe_str("broker.rack"),
    )
    return MetadataResponse(brokers=[this], cluster_id=broker.cluster_id, controller_id=broker.node_id, topics=topics)


def _answer(broker: Broker, asked: MetadataRequestTopic, operations: int, *, create: bool) -> MetadataResponseTopic:
    if asked.topic_id != ZERO_UUID:
        topic = broker.topics.by_id(asked.topic_id)
        if topic is None:
            return _refused(ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id)
        return _found(broker, topic, operations)
    if asked.name is None:
        return _refused(ErrorCode.INVALID_REQUEST, None)
    topic = broker.topics.get(asked.name)
    if topic is not None:
        return _found(broker, topic, operations)
    if topic_name_problem(asked.name) is not None:
        return _refused(ErrorCode.INVALID_TOPIC_EXCEPTION, asked.name, operations=operations)
    if create and asked.name not in INTERNAL_TOPICS:
        _create(broker, asked.name)
    # Also when it is about to be created: clients ask again, as they do with Kafka.
    return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, asked.name, operations=operations)


def _refused(
    code: ErrorCode, name: str | None, topic_id: bytes = ZERO_UUID, *, operations: int = NOT_ASKED
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=operations,
    )


def _found(broker: Broker, topic: Topic, operations: int) -> MetadataResponseTopic:
    replicas = [broker.node_id]
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=broker.node_id,
                leader_epoch=broker.store.boot_count - topic.created_boot(index),
                replica_nodes=replicas,
                isr_nodes=replicas,
            )
            for index in range(topic.partition_count)
        ],
        topic_authorized_operations=operations,
    )


def _create(broker: Broker, name: str) -> None:
    """Begin to create a topic with the broker's defaults; nobody waits for it."""

    def decide() -> Decision[None]:
        partitions = broker.config.int("num.partitions")
        return Decision([broker.topics.create(name, partitions, {}, broker.store.boot_count)], None)

    def done(created: Pending[None]) -> None:
        try:
            created.result()
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                logger.warning("topic %s could not be created on demand: %s", name, error.detail)

    if broker.config.int("default.replication.factor") == 1:
        broker.topics.change(decide).on_done(done)
