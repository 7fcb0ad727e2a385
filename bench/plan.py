"""How much each workload does: the full run stays below 25 minutes, the quick one below 3."""

from __future__ import annotations

from dataclasses import dataclass

from bench.report import Report
from bench.subjects import Fleet


@dataclass(frozen=True, slots=True)
class Size:
    """The volume of a run."""

    rounds: int
    record_sizes: tuple[int, ...]
    raw_megabytes: int
    client_megabytes: int
    commit_seconds: float
    latency_records: int
    request_seconds: float
    request_rounds: int
    parked_seconds: float
    partitions: int
    start_rounds: int
    rebalancing_groups: int
    rebalance_seconds: float
    large_group: int
    held_groups: int
    held_seconds: float
    committed_offsets: int
    transaction_seconds: float
    read_transactions: int
    assigned_partitions: int
    reader_records: int
    reader_partitions: tuple[int, ...]
    reader_rounds: int
    reader_seconds_max: float
    large_row_megabytes: int
    producer_records: int
    spark_records: int
    spark_rounds: int
    backlog_gigabytes: int
    kafka_warm_up_seconds: float


FULL = Size(
    rounds=5,
    record_sizes=(100, 1000),
    raw_megabytes=400,
    client_megabytes=200,
    commit_seconds=2.0,
    latency_records=1000,
    request_seconds=0.7,
    request_rounds=3,
    parked_seconds=5.0,
    partitions=10_000,
    start_rounds=3,
    rebalancing_groups=1000,
    rebalance_seconds=4.0,
    large_group=1000,
    held_groups=10_000,
    held_seconds=60.0,
    committed_offsets=1_000_000,
    transaction_seconds=1.5,
    read_transactions=5_000,
    assigned_partitions=100_000,
    reader_records=2_000_000,
    reader_partitions=(4, 64, 1024),
    reader_rounds=3,
    reader_seconds_max=8.0,
    large_row_megabytes=1_000,
    producer_records=1_000_000,
    spark_records=4_000_000,
    spark_rounds=3,
    backlog_gigabytes=10,
    kafka_warm_up_seconds=20.0,
)
QUICK = Size(
    rounds=2,
    record_sizes=(1000,),
    raw_megabytes=100,
    client_megabytes=50,
    commit_seconds=0.7,
    latency_records=200,
    request_seconds=0.3,
    request_rounds=1,
    parked_seconds=1.0,
    partitions=2_000,
    start_rounds=1,
    rebalancing_groups=100,
    rebalance_seconds=1.0,
    large_group=100,
    held_groups=200,
    held_seconds=2.0,
    committed_offsets=50_000,
    transaction_seconds=0.3,
    read_transactions=500,
    assigned_partitions=20_000,
    reader_records=500_000,
    reader_partitions=(4,),
    reader_rounds=2,
    reader_seconds_max=2.0,
    large_row_megabytes=300,
    producer_records=300_000,
    spark_records=400_000,
    spark_rounds=1,
    backlog_gigabytes=1,
    kafka_warm_up_seconds=5.0,
)


@dataclass(frozen=True, slots=True)
class Run:
    """What a workload gets. `only`: of `readers`, the tables whose titles hold this text."""

    fleet: Fleet
    report: Report
    size: Size
    quick: bool
    only: str = ""

    def wants(self, title: str) -> bool:
        return self.only in title
