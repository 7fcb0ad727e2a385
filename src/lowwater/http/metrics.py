"""Everything as Prometheus reads it: groups and partitions under the names of kafka-lag-exporter, the broker's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from lowwater.http.watching import Look
from lowwater.lag.report import GroupLag, PartitionLag
from lowwater.lag.rules import Status

if TYPE_CHECKING:
    from lowwater.http.desk import Desk

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_GROUP = ("cluster_name", "group")
_READER = (*_GROUP, "topic", "partition", "member_host", "consumer_id", "client_id")
_PARTITION = ("cluster_name", "topic", "partition")


async def render(desk: Desk) -> bytes:
    """The whole text. Many groups are many lines: they are written in another thread."""
    look = await desk.watch.first()
    counters = await desk.counters()
    name = desk.cluster.cluster_id or ""
    return await asyncio.to_thread(text, look, counters, name)


def text(look: Look, counters: Mapping[str, Any] | None, cluster: str) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Everything(look, counters, cluster))
    return generate_latest(registry)


class _Everything(Collector):
    def __init__(self, look: Look, counters: Mapping[str, Any] | None, cluster: str) -> None:
        self._look = look
        self._counters = counters
        self._cluster = cluster

    def collect(self) -> Iterable[Metric]:
        if self._look.failure is None:  # what was true before the cluster went is not told for ever
            yield from _partitions(self._look, self._cluster)
            yield from _groups(self._look, self._cluster)
        yield from _watch(self._look)
        if self._counters is not None:
            yield from _broker(self._counters)
            yield from _coordinators(self._counters)


def _gauge(name: str, about: str, labels: Iterable[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=list(labels))


# ---- groups and partitions


def _partitions(look: Look, cluster: str) -> Iterator[Metric]:
    latest = _gauge("kafka_partition_latest_offset", "The offset of the next record.", _PARTITION)
    earliest = _gauge("kafka_partition_earliest_offset", "The log start offset.", _PARTITION)
    for one, each in sorted(look.ends.items()):
        place = [cluster, one.topic, str(one.partition)]
        latest.add_metric(place, each.end)
        earliest.add_metric(place, each.start)
    yield latest
    yield earliest


def _groups(look: Look, cluster: str) -> Iterator[Metric]:
    offset = _gauge("kafka_consumergroup_group_offset", "The committed offset.", _READER)
    lag = _gauge("kafka_consumergroup_group_lag", "Records that are still to be read.", _READER)
    seconds = _gauge("kafka_consumergroup_group_lag_seconds", "Age of the next record to be read.", _READER)
    most = _gauge("kafka_consumergroup_group_max_lag", "The largest lag of a partition.", _GROUP)
    longest = _gauge("kafka_consumergroup_group_max_lag_seconds", "The largest time lag of a partition.", _GROUP)
    total = _gauge("kafka_consumergroup_group_sum_lag", "Lag of all partitions.", _GROUP)
    by_topic = _gauge(
        "kafka_consumergroup_group_topic_sum_lag", "Lag of all partitions of a topic.", (*_GROUP, "topic")
    )
    status = _gauge("lowwater_group_status", "1 for the status that the group has.", (*_GROUP, "status"))
    members = _gauge("lowwater_group_members", "Members of the group.", _GROUP)
    for group in look.report.groups.values():
        mine = [cluster, group.group]
        for one in group.partitions:
            where = _reader(cluster, group, one)
            _add(offset, where, one.committed)
            _add(lag, where, one.lag)
            _add(seconds, where, None if one.time_lag_ms is None else one.time_lag_ms / 1000)
        _add(most, mine, max((one.lag for one in group.partitions if one.lag is not None), default=None))
        _add(longest, mine, None if group.time_lag_ms is None else group.time_lag_ms / 1000)
        _add(total, mine, group.lag)
        _add(members, mine, group.members)
        for topic, sum_lag in _by_topic(group).items():
            by_topic.add_metric([*mine, topic], sum_lag)
        for each in Status:
            status.add_metric([*mine, each.value or "UNKNOWN"], float(group.status is each))
    yield from (offset, lag, seconds, most, longest, total, by_topic, status, members)


def _add(family: GaugeMetricFamily, labels: list[str], value: float | None) -> None:
    """What is not known has no sample: 0 would be a lie."""
    if value is not None:
        family.add_metric(labels, value)


def _reader(cluster: str, group: GroupLag, one: PartitionLag) -> list[str]:
    who = [one.host or "", one.member_id or "", one.client_id or ""]
    return [cluster, group.group, one.topic, str(one.partition), *who]


def _by_topic(group: GroupLag) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in group.partitions:
        if one.lag is not None:
            found[one.topic] = found.get(one.topic, 0) + one.lag
    return found


def _watch(look: Look) -> Iterator[Metric]:
    took = _gauge("kafka_consumergroup_poll_time_ms", "How long the last look at all groups took.")
    took.add_metric([], look.took_ms)
    faults = _gauge("lowwater_watch_faults", "Parts of the cluster that did not answer at the last look.")
    faults.add_metric([], len(look.faults))
    at = _gauge("lowwater_watch_timestamp_seconds", "When the cluster was last looked at.")
    at.add_metric([], look.report.at_ms / 1000)
    yield from (took, faults, at)


# ---- the broker beside us


def _broker(counters: Mapping[str, Any]) -> Iterator[Metric]:
    requests = CounterMetricFamily("lowwater_broker_requests", "Requests that came.", labels=["api"])
    for api, served in sorted(counters["requests"].items()):
        requests.add_metric([api], served)
    yield requests
    took = HistogramMetricFamily(
        "lowwater_broker_request_duration_seconds", "Until the reply, waiting on purpose included.", labels=["api"]
    )
    for api, each in sorted(counters["took"].items()):
        took.add_metric([api], *_histogram(each))
    yield took
    traffic = counters["traffic"]
    for name, about in (
        ("bytes_in", "Bytes received."),
        ("bytes_out", "Bytes sent."),
        ("connections_total", "Connections that were opened."),
        ("connections_refused", "Connections beyond a limit."),
    ):
        counter = CounterMetricFamily(f"lowwater_broker_{name.removesuffix('_total')}", about)
        counter.add_metric([], traffic[name])
        yield counter
    open_now = _gauge("lowwater_broker_open_connections", "Connections that are open.")
    open_now.add_metric([], counters["connections"])
    fsyncs = HistogramMetricFamily("lowwater_broker_fsync_duration_seconds", "Syncs that requests waited for.")
    fsyncs.add_metric([], *_histogram(counters["fsyncs"]))
    yield from (open_now, fsyncs, *_logs(counters))


def _logs(counters: Mapping[str, Any]) -> Iterator[Metric]:
    size = _gauge("lowwater_broker_log_size_bytes", "Bytes of a partition's log.", ("topic", "partition"))
    offline = _gauge("lowwater_broker_offline_partitions", "Partitions that cannot be read or written.")
    for one in counters["logs"]:
        size.add_metric([one["topic"], str(one["partition"])], one["bytes"])
    offline.add_metric([], sum(one["offline"] is not None for one in counters["logs"]))
    yield from (size, offline)
    if counters["disk"] is not None:
        for name, about in (("free", "Bytes left where the logs are."), ("total", "Bytes of that disk.")):
            gauge = _gauge(f"lowwater_broker_disk_{name}_bytes", about)
            gauge.add_metric([], counters["disk"][f"{name}_bytes"])
            yield gauge


def _coordinators(counters: Mapping[str, Any]) -> Iterator[Metric]:
    groups, transactions = counters["groups"], counters["transactions"]
    for name, about, value in (
        ("lowwater_coordinator_active_groups", "Groups that are known.", groups["active"]),
        ("lowwater_coordinator_members", "Members of all groups.", groups["members"]),
        ("lowwater_coordinator_transactional_ids", "Transactional ids that are known.", transactions["active_ids"]),
        ("lowwater_coordinator_open_transactions", "Transactions that are open.", transactions["ongoing"]),
    ):
        gauge = _gauge(name, about)
        gauge.add_metric([], value)
        yield gauge
    for name, about, value in (
        ("lowwater_coordinator_offset_commits", "Offsets that were committed.", groups["offset_commits"]),
        ("lowwater_coordinator_heartbeats", "Heartbeats of members.", groups["heartbeats"]),
        ("lowwater_coordinator_member_timeouts", "Members that were silent for too long.", groups["member_timeouts"]),
        ("lowwater_coordinator_transactions_committed", "Transactions that took effect.", transactions["committed"]),
        ("lowwater_coordinator_transactions_aborted", "Transactions that did not.", transactions["aborted"]),
        ("lowwater_coordinator_transactions_timed_out", "Aborted for their silence.", transactions["timed_out"]),
    ):
        counter = CounterMetricFamily(name, about)
        counter.add_metric([], value)
        yield counter
    rebalances = HistogramMetricFamily(
        "lowwater_coordinator_rebalance_duration_seconds", "Rebalances, how long they took."
    )
    rebalances.add_metric([], *_histogram(groups["rebalances"]))
    yield rebalances


def _histogram(each: Mapping[str, Any]) -> tuple[list[tuple[str, float]], float]:
    """Buckets as Prometheus wants them, each with all below it, and the sum in seconds."""
    total, buckets = 0, []
    for bound, count in zip([*each["le_ms"], None], each["counts"], strict=True):
        total += count
        buckets.append(("+Inf" if bound is None else repr(bound / 1000), float(total)))
    return buckets, each["sum_ms"] / 1000
