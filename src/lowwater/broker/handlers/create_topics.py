"""CreateTopics v2-7: each topic is created or refused by itself.

-1 stands for the default number of partitions (since v4 by itself, before it with manual assignments only) and of
replicas. v5 tells the settings of the new topic, v7 its id.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from lowwater.broker.assignments import check_replicas
from lowwater.broker.changes import Decision
from lowwater.broker.metadata_records import Record, TopicCreated
from lowwater.broker.router import RequestContext, handles
from lowwater.config import TOPIC_SETTINGS, TopicConfig
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

PARTITIONS_PER_REQUEST_MAX = 10_000
METADATA_TOPIC = "__cluster_metadata"
DEFAULT = -1
CONFIGS_TOLD_SINCE = 5


@handles(CreateTopicsRequest)
async def create_topics(broker: Broker, request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    tells_configs = context.api_version >= CONFIGS_TOLD_SINCE
    return await broker.topics.change(lambda: decide(broker, request, tells_configs=tells_configs))


def decide(
    broker: Broker, request: CreateTopicsRequest, *, tells_configs: bool = True
) -> Decision[CreateTopicsResponse]:
    records: list[Record] = []
    describe = cache(_describe)  # topics with equal settings share one configuration
    results: list[CreatableTopicResult] = []
    named = Counter(topic.name for topic in request.topics)
    too_many = _partitions(broker, request.topics) > PARTITIONS_PER_REQUEST_MAX
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if named[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named {named[topic.name]} times")
            if too_many:
                raise ApiError(
                    ErrorCode.POLICY_VIOLATION,
                    f"a request can create {PARTITIONS_PER_REQUEST_MAX} partitions at most",
                )
            created = _create(broker, topic)
        except ApiError as error:
            results.append(_refused(topic.name, error))
            continue
        records.append(created)
        configs = describe(broker.topics.topic_config(created.configs)) if tells_configs else None
        results.append(_created(created, configs))
    return Decision([] if request.validate_only else records, CreateTopicsResponse(topics=results))


def _partitions(broker: Broker, topics: list[CreatableTopic]) -> int:
    default = broker.config.int("num.partitions")
    return sum(
        len(topic.assignments) or (default if topic.num_partitions == DEFAULT else max(0, topic.num_partitions))
        for topic in topics
    )


def _create(broker: Broker, topic: CreatableTopic) -> TopicCreated:
    if topic.name == METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{METADATA_TOPIC} cannot be created")
    broker.topics.check_name(topic.name)
    configs = _configs(topic)
    broker.topics.check_configs(configs)
    count = _assigned(broker, topic) if topic.assignments else _counted(broker, topic)
    return broker.topics.create(topic.name, count, configs, broker.store.boot_count)


def _configs(topic: CreatableTopic) -> dict[str, str]:
    configs = {}
    for config in topic.configs:
        if config.value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{config.name} has no value")
        configs[config.name] = config.value
    return configs


def _counted(broker: Broker, topic: CreatableTopic) -> int:
    """How many partitions a topic without manual assignments gets."""
    replicas, partitions = topic.replication_factor, topic.num_partitions
    if replicas < DEFAULT or replicas == 0:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, f"{replicas} replicas: 1, or -1 for the default")
    if partitions < DEFAULT or partitions == 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions: 1 or more, or -1 for the default")
    wanted = broker.config.int("default.replication.factor") if replicas == DEFAULT else replicas
    if wanted > 1:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, f"{wanted} replicas need as many nodes; there is one")
    return broker.config.int("num.partitions") if partitions == DEFAULT else partitions


def _assigned(broker: Broker, topic: CreatableTopic) -> int:
    """How many partitions the manual assignments make."""
    if topic.replication_factor != DEFAULT:
        raise ApiError(ErrorCode.INVALID_REQUEST, "manual assignments leave no choice of a replication factor: set -1")
    if topic.num_partitions != DEFAULT:
        raise ApiError(ErrorCode.INVALID_REQUEST, "manual assignments leave no choice of a partition count: set -1")
    for assignment in topic.assignments:
        check_replicas(assignment.broker_ids, broker.node_id)
    _check_consecutive(topic.assignments)
    return len(topic.assignments)


def _check_consecutive(assignments: list[CreatableReplicaAssignment]) -> None:
    if sorted(assignment.partition_index for assignment in assignments) != list(range(len(assignments))):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assigned partitions are numbered 0, 1, 2 … without gap")


def _refused(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.detail, configs=[])


def _created(created: TopicCreated, configs: list[CreatableTopicConfigs] | None) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=created.name,
        topic_id=created.topic_id,
        num_partitions=created.partitions,
        replication_factor=1,
        configs=configs,
    )


def _describe(config: TopicConfig) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=setting.name,
            value=config.text(setting.name),
            config_source=config.source(setting.name),
            is_sensitive=setting.sensitive,
        )
        for setting in TOPIC_SETTINGS
    ]
