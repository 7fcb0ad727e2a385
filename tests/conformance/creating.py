"""Topics for tests, ready for use when their creation returns."""

from __future__ import annotations

import time

from tests.conformance.raw import Wire

from lowwater.wire.messages import CreateTopicsRequest, ListOffsetsRequest, MetadataRequest
from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from lowwater.wire.messages.metadata import MetadataRequestTopic

READY_TIMEOUT_S = 10


def create_topic(address: tuple[str, int], name: str, *, partitions: int = 1, **config: str) -> None:
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings)
    with Wire(address) as connection:
        [answer] = connection.ask(CreateTopicsRequest(topics=[topic])).topics
        assert answer.error_code == 0, f"{name}: {answer.error_code} {answer.error_message}"
        wait_for_leaders(connection, name, partitions)


def wait_for_leaders(connection: Wire, name: str, partitions: int) -> None:
    """Apache Kafka answers a creation before the topic is in its metadata, and shows that before its logs exist."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        [topic] = connection.ask(request).topics
        led = [each for each in topic.partitions if each.error_code == 0 and each.leader_id >= 0]
        if topic.error_code == 0 and len(led) == partitions and _have_logs(connection, name, partitions):
            return
    raise TimeoutError(f"{name} did not become ready")


def _have_logs(connection: Wire, name: str, partitions: int) -> bool:
    wishes = [ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(partitions)]
    [answer] = connection.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=wishes)])).topics
    return all(each.error_code == 0 for each in answer.partitions)
