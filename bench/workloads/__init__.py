"""The workloads by name: each module has TEXT and run(Run)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench.plan import Run
from bench.workloads import (
    assignors,
    codec,
    commit,
    committed,
    fetch,
    footprint,
    group_requests,
    held_groups,
    http_groups,
    latency,
    parked,
    partitions,
    produce,
    producers,
    reader_limits,
    readers,
    rebalances,
    requests,
    spark,
    spark_batches,
    spark_memory,
    spark_once,
    spark_order,
    transactions,
)

# They take their time, start brokers of their own or need none: with --quick they run in short when they are named.
NOT_QUICK = (
    "committed",
    "http",
    "assignors",
    "codec",
    "transactions",
    "readers",
    "reader-limits",
    "producers",
    "spark",
    "spark-many",
    "spark-batches",
    "spark-memory",
    "spark-once",
    "spark-order",
)
WORKLOADS: dict[str, tuple[str, Callable[[Run], None]]] = {
    "produce": (produce.TEXT, produce.run),
    "commit": (commit.TEXT, commit.run),
    "fetch": (fetch.TEXT, fetch.run),
    "latency": (latency.TEXT, latency.run),
    "requests": (requests.TEXT, requests.run),
    "parked": (parked.TEXT, parked.run),
    "footprint": (footprint.TEXT, footprint.run),
    "partitions": (partitions.TEXT, partitions.run),
    "groups": (group_requests.TEXT, group_requests.run),
    "http": (http_groups.TEXT, http_groups.run),
    "rebalances": (rebalances.TEXT, rebalances.run),
    "held": (held_groups.TEXT, held_groups.run),
    "committed": (committed.TEXT, committed.run),
    "transactions": (transactions.TEXT, transactions.run),
    "readers": (readers.TEXT, readers.run),
    "reader-limits": (reader_limits.TEXT, reader_limits.run),
    "producers": (producers.TEXT, producers.run),
    "spark": (f"{spark.FEW} partitions: {spark.TEXT}", spark.run),
    "spark-many": (f"{spark.MANY} partitions: {spark.TEXT}", partial(spark.run, partitions=spark.MANY)),
    "spark-batches": (spark_batches.TEXT, spark_batches.run),
    "spark-memory": (spark_memory.TEXT, spark_memory.run),
    "spark-once": (spark_once.TEXT, spark_once.run),
    "spark-order": (spark_order.TEXT, spark_order.run),
    "assignors": (assignors.TEXT, assignors.run),
    "codec": (codec.TEXT, codec.run),
}
