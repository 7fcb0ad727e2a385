"""Committed offsets of one partition, read and written: RustLog's OffsetFetch and OffsetCommit."""

from __future__ import annotations

from typing import Any

from lowwater.http.operations import Call, operation, partition_of
from lowwater.http.problem import of_client
from lowwater.http.schema import OFFSET_MAX, integer, nullable, record
from lowwater.types import TopicPartition

_OFFSET = record(offset=nullable(integer("The next offset to read; null when nothing was ever committed.")))


@operation(
    "GET",
    "/consumer-groups/{group}/offsets/{topic}/{partition}",
    "What a group has committed for a partition",
    tag="offsets",
    answer=_OFFSET,
)
async def committed(call: Call) -> Any:
    one = TopicPartition(call.path["topic"], partition_of(call))
    return {"offset": await call.desk.committed(call.path["group"], one)}


@operation(
    "PUT",
    "/consumer-groups/{group}/offsets/{topic}/{partition}",
    "Commit an offset for a group without members",
    tag="offsets",
    answer=_OFFSET,
    body=record(offset=integer("The next offset to read.", minimum=0, maximum=OFFSET_MAX)),
    statuses=(404, 409),
)
async def commit(call: Call) -> Any:
    one = TopicPartition(call.path["topic"], partition_of(call))
    offset = int(call.body["offset"])
    # As a consumer commits: often, and without a note in the journal of what people changed.
    outcome = await call.desk.admin.alter_group_offsets(call.path["group"], {one: offset})
    if one in outcome.failed:
        raise of_client(outcome.failed[one])
    return {"offset": offset}
