"""What Prometheus reads: parsed by its own library."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from lowwater.broker.metrics import BUCKETS_MS
from lowwater.client.admin.offsets import Bounds
from lowwater.groups.metrics import REBALANCE_BUCKETS_MS
from lowwater.http.metrics import text
from lowwater.http.watching import Look
from lowwater.lag.observation import Fault
from lowwater.lag.report import GroupLag, PartitionLag, Report
from lowwater.lag.rules import Status
from lowwater.transactions.metrics import TransactionMetrics
from lowwater.types import TopicPartition

NAME = re.compile(r"\b(?:kafka|lowwater)_[a-z_]+\b")


def durations(bounds: tuple[float, ...], *counts: int) -> dict[str, Any]:
    padded = [*counts, *[0] * (len(bounds) + 1 - len(counts))]
    return {"le_ms": list(bounds), "counts": padded, "sum_ms": 1500.0}


COUNTERS = {
    "requests": {"Fetch": 3},
    "took": {"Fetch": durations(BUCKETS_MS, 1, 2)},
    "connections": 2,
    "traffic": {"bytes_in": 10, "bytes_out": 20, "connections_total": 5, "connections_refused": 1},
    "logs": [
        {"topic": "t", "partition": 0, "bytes": 77, "start": 0, "end": 9, "offline": None},
        {"topic": "t", "partition": 1, "bytes": 1, "start": 0, "end": 1, "offline": "its disk is gone"},
    ],
    "disk": {"free_bytes": 5, "total_bytes": 10},
    "fsyncs": durations(BUCKETS_MS, 4),
    "groups": {
        "active": 1,
        "members": 2,
        "rebalances": durations(REBALANCE_BUCKETS_MS, 1),
        "offset_commits": 6,
        "heartbeats": 7,
        "member_timeouts": 0,
    },
    "transactions": dict.fromkeys(TransactionMetrics.__slots__, 1),
}
PARTITIONS = (
    PartitionLag("t", 0, committed=4, end=9, lag=5, time_lag_ms=2500, status=Status.WARN, host="/h", client_id="c"),
    PartitionLag("t", 1, committed=1, end=None, lag=None, time_lag_ms=None),
)
GROUP = GroupLag('odd "name"\n\\', "Stable", "classic", Status.WARN, 5, 2500, PARTITIONS, members=1)
LOOK = Look(
    Report(1_000, {GROUP.group: GROUP}, (Fault("broker 2", "is gone"),)),
    {},
    {TopicPartition("t", 0): Bounds(2, 9)},
    12.5,
)


def samples(counters: Any = COUNTERS) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text(LOOK, counters, "cluster").decode()):
        assert family.documentation, family.name
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_lag_and_time_lag_stand_under_the_names_of_kafka_lag_exporter() -> None:
    found = samples()
    [(labels, lag)] = found["kafka_consumergroup_group_lag"]
    assert lag == 5
    assert labels == {
        "cluster_name": "cluster",
        "group": 'odd "name"\n\\',
        "topic": "t",
        "partition": "0",
        "member_host": "/h",
        "consumer_id": "",
        "client_id": "c",
    }
    assert [value for _, value in found["kafka_consumergroup_group_lag_seconds"]] == [2.5]
    assert [value for _, value in found["kafka_consumergroup_group_max_lag"]] == [5]
    assert [value for _, value in found["kafka_partition_latest_offset"]] == [9]


def test_what_is_not_known_has_no_sample() -> None:
    found = samples()
    assert {labels["partition"] for labels, _ in found["kafka_consumergroup_group_offset"]} == {"0", "1"}
    assert {labels["partition"] for labels, _ in found["kafka_consumergroup_group_lag"]} == {"0"}


def test_when_the_cluster_is_gone_no_old_lag_is_told() -> None:
    gone = Look(LOOK.report, LOOK.seen, LOOK.ends, LOOK.took_ms, "nobody answers")
    names = [family.name for family in text_string_to_metric_families(text(gone, None, "cluster").decode())]
    assert not [name for name in names if name.startswith(("kafka_consumergroup_group", "kafka_partition"))]
    assert "lowwater_watch_faults" in names


def test_a_group_has_one_status() -> None:
    held = [labels["status"] for labels, value in samples()["lowwater_group_status"] if value == 1]
    assert held == ["WARN"]


def test_histograms_count_up_to_all() -> None:
    buckets = {labels["le"]: value for labels, value in samples()["lowwater_broker_request_duration_seconds_bucket"]}
    assert (buckets["0.0001"], buckets["0.00025"], buckets["+Inf"]) == (1, 3, 3)
    [(_, took)] = samples()["lowwater_broker_request_duration_seconds_sum"]
    assert took == 1.5


def test_without_a_broker_beside_us_there_are_none_of_its_figures() -> None:
    assert not [name for name in samples(None) if name.startswith(("lowwater_broker", "lowwater_coordinator"))]


def test_the_grafana_dashboard_asks_only_for_metrics_that_exist() -> None:
    dashboard = json.loads((resources.files("lowwater.http") / "grafana.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked += [one["query"]["query"] for one in dashboard["templating"]["list"] if isinstance(one["query"], dict)]
    names = {name for expression in asked for name in NAME.findall(expression)}
    assert len(names) > 15
    assert names <= samples().keys()
