"""The workloads by name: each module has TEXT and run(Run)."""

from __future__ import annotations

from collections.abc import Callable

from bench.plan import Run
from bench.workloads import codec, commit, fetch, footprint, latency, parked, partitions, produce, requests

# Takes its time whatever is asked, and needs no broker.
NOT_QUICK = ("codec",)
WORKLOADS: dict[str, tuple[str, Callable[[Run], None]]] = {
    "produce": (produce.TEXT, produce.run),
    "commit": (commit.TEXT, commit.run),
    "fetch": (fetch.TEXT, fetch.run),
    "latency": (latency.TEXT, latency.run),
    "requests": (requests.TEXT, requests.run),
    "parked": (parked.TEXT, parked.run),
    "footprint": (footprint.TEXT, footprint.run),
    "partitions": (partitions.TEXT, partitions.run),
    "codec": (codec.TEXT, codec.run),
}
