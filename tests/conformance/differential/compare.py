"""Two answers as plain values, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Words, names and numbers that are each broker's own; of these, docs/differences.md has the time told for a repeat.
OWN = frozenset(
    {
        "log_append_time_ms",
        "aborted_transactions",
        "batch_index_error_message",
        "cluster_id",
        "documentation",
        "error_message",
        "host",
        "last_caught_up_timestamp",
        "last_fetch_timestamp",
        "last_timestamp",
        "listeners",
        "log_dir",
        "log_end_offset",
        "port",
        "replica_directory_id",
        "session_id",
        "throttle_time_ms",
        "total_bytes",
        "usable_bytes",
    }
)


# Apache Kafka sets this one for the whole cluster when it formats its storage.
SET_BY_FORMATTING = "min.insync.replicas"


class Difference(NamedTuple):
    where: str
    kafka: Any
    lowwater: Any


def plain(value: Any, topic_names: Mapping[bytes, str]) -> Any:
    """Messages as dicts, lists in one order, topic ids by the names they stand for."""
    if isinstance(value, list | tuple):
        kept = (each for each in value if getattr(each, "name", None) != SET_BY_FORMATTING)
        return sorted((plain(each, topic_names) for each in kept), key=repr)
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return topic_names.get(data, data)
    if hasattr(value, "__slots__") and not isinstance(value, str | int | float):
        return {name: plain(getattr(value, name), topic_names) for name in value.__slots__ if name not in OWN}
    return value


def differences(kafka: Any, lowwater: Any, where: str = "") -> Iterator[Difference]:
    """The leaves in which two plain answers are not the same."""
    if isinstance(kafka, dict) and isinstance(lowwater, dict):
        for name in kafka:
            yield from differences(kafka[name], lowwater.get(name), f"{where}.{name}" if where else name)
        return
    if isinstance(kafka, list) and isinstance(lowwater, list) and len(kafka) == len(lowwater):
        for one, other in zip(kafka, lowwater, strict=True):
            yield from differences(one, other, where)
        return
    if kafka != lowwater:
        yield Difference(where, kafka, lowwater)
