"""Making topics, letting them grow, and deleting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lowwater.client.admin.asking import Doubt, ask_controller, forget_controller, refusal, time_limit_ms
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.arguments import listed, refused, whole_number
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.errors import ErrorCode
from lowwater.wire.messages import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from lowwater.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from lowwater.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from lowwater.wire.messages.delete_topics import DeleteTopicState
from lowwater.wire.schema import ZERO_UUID

DEFAULT = -1
"""As many partitions or replicas as the cluster gives to topics that ask for none."""

_STATES_SINCE = 6


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made. `replicas` places each partition on brokers by hand, instead of the two numbers."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """`id` is all zero, and the numbers are -1, where the broker does not tell; with `validate_only` it never does."""

    name: str
    id: bytes = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1


async def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> Outcomes[str, CreatedTopic]:
    """Make topics, or with `validate_only` find out whether that would work."""
    new = listed("topics", NewTopic, "NewTopic('orders', partitions=3)", topics)
    wanted = {topic.name: topic for topic in map(_checked, new)}
    doubt = Doubt("perhaps made by an earlier try of this call, whose answer was lost")

    async def attempt(left: list[str], left_ms: float) -> dict[str, CreatedTopic | ClientError]:
        request = CreateTopicsRequest(
            topics=[_creatable(wanted[name]) for name in left],
            timeout_ms=time_limit_ms(cluster, left_ms),
            validate_only=validate_only,
        )
        answer = await doubt.watch(ask_controller(cluster, request, left_ms))
        results = {each.name: _created(each) for each in answer.topics}
        forget_controller(cluster, results.values())
        cluster.outdate(results)
        return doubt.mention(results, ErrorCode.TOPIC_ALREADY_EXISTS)

    return await settle(cluster, wanted, attempt)


def _checked(topic: NewTopic) -> NewTopic:
    """ConfigError for what cannot even be asked; a broker judges the rest."""
    if not isinstance(topic.name, str):
        raise refused("the name of a topic", "text", topic.name)
    whole_number(f"partitions of {topic.name}", topic.partitions)
    whole_number(f"replication_factor of {topic.name}", topic.replication_factor)
    if not isinstance(topic.config, Mapping):
        raise refused(f"config of {topic.name}", "a mapping of settings", topic.config)
    return topic


def _creatable(topic: NewTopic) -> CreatableTopic:
    placed = [
        CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
        for partition, brokers in sorted(topic.replicas.items())
    ]
    return CreatableTopic(
        name=topic.name,
        num_partitions=DEFAULT if placed else topic.partitions,
        replication_factor=DEFAULT if placed else topic.replication_factor,
        assignments=placed,
        configs=[CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.config.items()],
    )


def _created(each: Any) -> CreatedTopic | ClientError:
    if each.error_code:
        return refusal(each.error_code, each.error_message, topic=each.name)
    return CreatedTopic(each.name, each.topic_id, each.num_partitions, each.replication_factor)


async def create_partitions(
    cluster: Cluster,
    counts: Mapping[str, int],
    *,
    replicas: Mapping[str, Iterable[tuple[int, ...]]] | None = None,
    validate_only: bool = False,
) -> Outcomes[str, int]:
    """Let topics grow to so many partitions in all; `replicas` places the new ones by hand."""
    placed = replicas or {}
    if not isinstance(counts, Mapping):
        raise refused("counts", 'a mapping such as {"orders": 6}', counts)
    for name, count in counts.items():
        whole_number(f"the number of partitions of {name}", count)

    async def attempt(left: list[str], left_ms: float) -> dict[str, int | ClientError]:
        request = CreatePartitionsRequest(
            topics=[_growing(name, counts[name], placed.get(name)) for name in left],
            timeout_ms=time_limit_ms(cluster, left_ms),
            validate_only=validate_only,
        )
        answer = await ask_controller(cluster, request, left_ms)
        results = {each.name: _grown(each, counts[each.name]) for each in answer.results}
        forget_controller(cluster, results.values())
        cluster.outdate(results)
        return results

    return await settle(cluster, counts, attempt)


def _growing(name: str, count: int, replicas: Iterable[tuple[int, ...]] | None) -> CreatePartitionsTopic:
    placed = None if replicas is None else [CreatePartitionsAssignment(broker_ids=list(each)) for each in replicas]
    return CreatePartitionsTopic(name=name, count=count, assignments=placed)


def _grown(each: Any, count: int) -> int | ClientError:
    return _missing_for_good(each) if each.error_code else count


async def delete_topics(cluster: Cluster, names: Iterable[str]) -> Outcomes[str, None]:
    """Delete topics and all their records. There is no way back."""
    doubt = Doubt("perhaps deleted by an earlier try of this call, whose answer was lost")

    async def attempt(left: list[str], left_ms: float) -> dict[str, ClientError | None]:
        def request(version: int) -> DeleteTopicsRequest:
            timeout_ms = time_limit_ms(cluster, left_ms)
            if version >= _STATES_SINCE:
                return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in left], timeout_ms=timeout_ms)
            return DeleteTopicsRequest(topic_names=left, timeout_ms=timeout_ms)

        answer = await doubt.watch(ask_controller(cluster, request, left_ms, api=DeleteTopicsRequest))
        results = {each.name or "": _missing_for_good(each) if each.error_code else None for each in answer.responses}
        forget_controller(cluster, results.values())
        cluster.outdate(results)
        return doubt.mention(results, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    return await settle(cluster, names, attempt)


def _missing_for_good(each: Any) -> ClientError:
    """The controller knows every topic: one that is not there now will not be there soon."""
    error = refusal(each.error_code, each.error_message, topic=each.name)
    if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        error.retriable = False
    return error
