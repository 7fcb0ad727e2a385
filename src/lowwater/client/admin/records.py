"""Records of partitions: deleting the oldest ones, and how much room they take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lowwater.client.admin.asking import ask_all, time_limit_ms
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.errors import BrokerError, ClientError, broker_error
from lowwater.types import TopicPartition
from lowwater.wire.messages import DeleteRecordsRequest, DescribeLogDirsRequest
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from lowwater.wire.messages.describe_log_dirs import DescribableLogDirTopic

ALL = -1
"""Instead of an offset: delete everything that is there now."""


@dataclass(frozen=True, slots=True)
class LogDir:
    """A directory of a broker. Sizes in bytes; -1 where the broker does not tell."""

    path: str
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    bytes_total: int = -1
    bytes_usable: int = -1
    error: ClientError | None = None


async def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
    """Delete what is before an offset, or ALL; gives the log start offset of each partition then."""

    async def attempt(left: list[TopicPartition], left_ms: float) -> dict[TopicPartition, int | ClientError]:
        by_leader = await cluster.leaders(left, left_ms)
        timeout_ms = time_limit_ms(cluster, left_ms)
        requests = {node: _deletion(chosen, before, timeout_ms) for node, chosen in by_leader.items()}
        answers = await ask_all(cluster, requests, left_ms)
        found: dict[TopicPartition, int | ClientError] = {}
        for node, answer in answers.items():
            chosen = by_leader[node]
            found |= dict.fromkeys(chosen, answer) if isinstance(answer, ClientError) else _log_starts(answer)
        cluster.outdate({one.topic for one, each in found.items() if _is_outdated(each)})
        return found

    return await settle(cluster, before, attempt)


def _deletion(
    partitions: Iterable[TopicPartition], before: Mapping[TopicPartition, int], timeout_ms: int
) -> DeleteRecordsRequest:
    topics: dict[str, list[DeleteRecordsPartition]] = {}
    for one in partitions:
        wanted = DeleteRecordsPartition(partition_index=one.partition, offset=before[one])
        topics.setdefault(one.topic, []).append(wanted)
    rows = [DeleteRecordsTopic(name=name, partitions=wanted) for name, wanted in topics.items()]
    return DeleteRecordsRequest(topics=rows, timeout_ms=timeout_ms)


def _log_starts(answer: Any) -> dict[TopicPartition, int | ClientError]:
    return {
        TopicPartition(topic.name, each.partition_index): (
            broker_error(each.error_code, topic=topic.name, partition=each.partition_index)
            if each.error_code
            else each.low_watermark
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def _is_outdated(result: int | ClientError) -> bool:
    """Also when the leader does not answer: perhaps there is another one by now."""
    if isinstance(result, BrokerError):
        return result.code in OUTDATED
    return isinstance(result, ClientError)


async def log_dirs(cluster: Cluster, topics: Iterable[str] | None = None) -> Outcomes[int, list[LogDir]]:
    """By broker its directories, with the sizes of all partitions or of those of some topics."""
    names = None if topics is None else sorted(set(topics))

    async def attempt(left: list[int], left_ms: float) -> dict[int, list[LogDir] | ClientError]:
        wanted = None if names is None else await _partitions_of(cluster, names, left_ms)
        request = DescribeLogDirsRequest(topics=wanted)
        answers = await ask_all(cluster, dict.fromkeys(left, request), left_ms)
        return {node: each if isinstance(each, ClientError) else _dirs(each) for node, each in answers.items()}

    return await settle(cluster, await cluster.brokers(), attempt)


async def _partitions_of(cluster: Cluster, names: list[str], left_ms: float) -> list[DescribableLogDirTopic]:
    known = await cluster.present(names, left_ms)
    return [DescribableLogDirTopic(topic=name, partitions=list(topic.partitions)) for name, topic in known.items()]


def _dirs(answer: Any) -> list[LogDir] | ClientError:
    if answer.error_code:
        return broker_error(answer.error_code, "sizes cannot be had")
    return [_dir(each) for each in answer.results]


def _dir(each: Any) -> LogDir:
    # A partition that is being moved to another directory counts where it is.
    sizes = {
        TopicPartition(topic.name, one.partition_index): one.partition_size
        for topic in each.topics
        for one in topic.partitions
        if not one.is_future_key
    }
    error = broker_error(each.error_code, f"log directory {each.log_dir!r}") if each.error_code else None
    return LogDir(each.log_dir, sizes, each.total_bytes, each.usable_bytes, error)


async def sizes(cluster: Cluster, topics: Iterable[str] | None = None) -> dict[TopicPartition, int]:
    """Bytes of each partition, of the largest of its replicas; those of brokers that do not answer are left out."""
    found: dict[TopicPartition, int] = {}
    for dirs in (await log_dirs(cluster, topics)).values():
        for each in dirs:
            for one, size in each.sizes.items():
                found[one] = max(size, found.get(one, 0))
    return found
