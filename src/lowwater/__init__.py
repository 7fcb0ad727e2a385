"""Lowwater: everything about offsets in a partitioned log.

for batch in lowwater.read("orders", start="-1h"):
    ...

What is imported from here is loaded when it is first used: a broker never loads what readers and producers need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowwater.client.admin.aio import AsyncAdmin
    from lowwater.client.admin.blocking import Admin
    from lowwater.client.admin.topic_changes import NewTopic
    from lowwater.client.async_producer import AsyncProducer, AsyncReport
    from lowwater.client.async_reader import AsyncReader
    from lowwater.client.consumer_manager import AsyncConsumerManager, ConsumerManager, SourceTopic
    from lowwater.client.errors import (
        AbortableError,
        ClientError,
        DeliveryError,
        FencedError,
        LogTruncatedError,
        OffsetOutOfRangeError,
        TopicRecreatedError,
    )
    from lowwater.client.producer import (
        BlockingReport,
        Failure,
        Placed,
        Prepared,
        Producer,
        Summary,
        end_transaction,
    )
    from lowwater.client.reader import Reader, read
    from lowwater.client.reader_state import ReaderStats
    from lowwater.client.releasing import Lost
    from lowwater.errors import ConfigError, LowwaterError
    from lowwater.positions.grammar import PositionError
    from lowwater.types import TopicPartition

__version__ = "0.1.0"

_HOMES = {
    "AbortableError": "lowwater.client.errors",
    "Admin": "lowwater.client.admin.blocking",
    "AsyncAdmin": "lowwater.client.admin.aio",
    "AsyncConsumerManager": "lowwater.client.consumer_manager",
    "AsyncProducer": "lowwater.client.async_producer",
    "AsyncReader": "lowwater.client.async_reader",
    "AsyncReport": "lowwater.client.async_producer",
    "BlockingReport": "lowwater.client.producer",
    "ClientError": "lowwater.client.errors",
    "ConfigError": "lowwater.errors",
    "ConsumerManager": "lowwater.client.consumer_manager",
    "DeliveryError": "lowwater.client.errors",
    "Failure": "lowwater.client.producer",
    "FencedError": "lowwater.client.errors",
    "LogTruncatedError": "lowwater.client.errors",
    "Lost": "lowwater.client.releasing",
    "LowwaterError": "lowwater.errors",
    "NewTopic": "lowwater.client.admin.topic_changes",
    "OffsetOutOfRangeError": "lowwater.client.errors",
    "Placed": "lowwater.client.producer",
    "PositionError": "lowwater.positions.grammar",
    "Prepared": "lowwater.client.producer",
    "Producer": "lowwater.client.producer",
    "Reader": "lowwater.client.reader",
    "ReaderStats": "lowwater.client.reader_state",
    "SourceTopic": "lowwater.client.consumer_manager",
    "Summary": "lowwater.client.producer",
    "TopicPartition": "lowwater.types",
    "TopicRecreatedError": "lowwater.client.errors",
    "end_transaction": "lowwater.client.producer",
    "read": "lowwater.client.reader",
}

__all__ = [
    "AbortableError",
    "Admin",
    "AsyncAdmin",
    "AsyncConsumerManager",
    "AsyncProducer",
    "AsyncReader",
    "AsyncReport",
    "BlockingReport",
    "ClientError",
    "ConfigError",
    "ConsumerManager",
    "DeliveryError",
    "Failure",
    "FencedError",
    "LogTruncatedError",
    "Lost",
    "LowwaterError",
    "NewTopic",
    "OffsetOutOfRangeError",
    "Placed",
    "PositionError",
    "Prepared",
    "Producer",
    "Reader",
    "ReaderStats",
    "SourceTopic",
    "Summary",
    "TopicPartition",
    "TopicRecreatedError",
    "__version__",
    "end_transaction",
    "read",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # not for those who only want to know the version

    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
