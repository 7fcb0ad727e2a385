"""Lowwater: everything about offsets in a partitioned log.

for batch in lowwater.read("orders", start="-1h"):
    ...

What is imported from here is loaded when it is first used: a broker never loads what readers and producers need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowwater.client.consumer_manager import AsyncConsumerManager, ConsumerManager, SourceTopic
    from lowwater.client.errors import ClientError
    from lowwater.client.reader import AsyncReader, Reader, ReaderStats, read
    from lowwater.client.releasing import Lost
    from lowwater.errors import ConfigError, LowwaterError
    from lowwater.types import TopicPartition

__version__ = "0.1.0"

_HOMES = {
    "AsyncConsumerManager": "lowwater.client.consumer_manager",
    "AsyncReader": "lowwater.client.reader",
    "ClientError": "lowwater.client.errors",
    "ConfigError": "lowwater.errors",
    "ConsumerManager": "lowwater.client.consumer_manager",
    "Lost": "lowwater.client.releasing",
    "LowwaterError": "lowwater.errors",
    "Reader": "lowwater.client.reader",
    "ReaderStats": "lowwater.client.reader",
    "SourceTopic": "lowwater.client.consumer_manager",
    "TopicPartition": "lowwater.types",
    "read": "lowwater.client.reader",
}

__all__ = [
    "AsyncConsumerManager",
    "AsyncReader",
    "ClientError",
    "ConfigError",
    "ConsumerManager",
    "Lost",
    "LowwaterError",
    "Reader",
    "ReaderStats",
    "SourceTopic",
    "TopicPartition",
    "__version__",
    "read",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # nothing is loaded for those who only want to know the version

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
