"""The journal of changes to offsets: a topic in the cluster itself, so that `undo` works from any machine.

A change is written there, durably, before anything is changed, and what became of it afterwards.
"""

from __future__ import annotations

from collections.abc import Collection

from lowwater.client.admin.offsets import bounds
from lowwater.client.admin.topic_changes import NewTopic, create_topics
from lowwater.client.appending import append
from lowwater.client.cluster import Cluster
from lowwater.client.errors import BrokerError, ClientError
from lowwater.client.read_rows import read_rows
from lowwater.errors import ErrorCode
from lowwater.lag.changes import Change, from_records, outcome_record, to_records
from lowwater.types import TopicPartition

TOPIC = "__lowwater_offset_changes"
_PARTITION = TopicPartition(TOPIC, 0)
_YEAR_MS = 365 * 86_400_000
_CONFIG = {"cleanup.policy": "delete", "retention.ms": str(_YEAR_MS)}


async def keep(cluster: Cluster, change: Change) -> None:
    """Write it down before it is made. ClientError: it is not written, and must not be made."""
    try:
        await _make(cluster)
        for record in to_records(change):
            await append(cluster, _PARTITION, [record], change.at_ms)
    except ClientError as error:
        raise JournalError(error) from error


async def finish(cluster: Cluster, change: Change, outcome: str) -> None:
    """Write down what became of it."""
    now_ms = cluster.network.driver.now_ms()
    try:
        await append(cluster, _PARTITION, [outcome_record(change, outcome)], now_ms)
    except ClientError:
        return  # it is kept all the same, without its outcome


async def changes(cluster: Cluster, groups: Collection[str] | None = None) -> list[Change]:
    """All changes of the last year, or those of some groups, the newest first."""
    if TOPIC not in await cluster.present([TOPIC]):
        return []
    extent = (await bounds(cluster, [_PARTITION])).checked()[_PARTITION]
    rows = (await read_rows(cluster, {_PARTITION: (extent.start, extent.end)})).checked()[_PARTITION]
    keys = None if groups is None else {group.encode() for group in groups}
    found = from_records(row.value for row in rows if keys is None or row.key in keys)
    return list(reversed(found))


async def _make(cluster: Cluster) -> None:
    if TOPIC in await cluster.present([TOPIC]):
        return
    try:
        (await create_topics(cluster, [NewTopic(TOPIC, partitions=1, config=_CONFIG)])).checked()
    except BrokerError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


class JournalError(ClientError):
    """What was there before cannot be kept, so nothing was changed."""

    def __init__(self, cause: ClientError) -> None:
        super().__init__(f"the old offsets cannot be kept, so nothing was changed: {cause}")
