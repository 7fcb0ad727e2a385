"""Canonical workloads; each prints its figures beside a peer measured in the same run. See docs/benchmarks.md."""
