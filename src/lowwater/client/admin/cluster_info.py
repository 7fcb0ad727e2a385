"""The cluster as a whole: its brokers, and who controls it."""

from __future__ import annotations

from dataclasses import dataclass

from lowwater.client.admin.asking import refusal
from lowwater.client.cluster import Cluster
from lowwater.wire.messages import DescribeClusterRequest


@dataclass(frozen=True, slots=True)
class Node:
    """A broker, and where clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """`controller` is the id of a broker, -1 when there is none."""

    id: str
    controller: int
    brokers: tuple[Node, ...]


async def describe_cluster(cluster: Cluster) -> ClusterInfo:
    async def attempt(left_ms: float) -> ClusterInfo:
        network = cluster.network
        timeout_ms = min(left_ms, network.config.int("request.timeout.ms"))
        answer = await network.ask_any(DescribeClusterRequest(), versions=(0, 1), timeout_ms=timeout_ms)
        if answer.error_code:
            raise refusal(answer.error_code, answer.error_message, what="the cluster cannot be described")
        brokers = [Node(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers]
        return ClusterInfo(answer.cluster_id, answer.controller_id, tuple(sorted(brokers, key=lambda one: one.id)))

    return await cluster.retry.run(attempt)
