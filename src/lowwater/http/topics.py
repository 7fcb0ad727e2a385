"""Topics: which there are, how large, how fast they grow, and what stands in them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from lowwater.client.admin.browsing import Page, browse
from lowwater.client.admin.records import sizes
from lowwater.client.errors import ClientError
from lowwater.client.offsets import resolve
from lowwater.client.rows import Row
from lowwater.errors import ConfigError
from lowwater.http.operations import Call, operation, partition_of
from lowwater.http.paging import AFTER, LIMIT, page
from lowwater.http.problem import Problem, missing, of_client
from lowwater.http.schema import OFFSET_MAX, array, boolean, integer, nullable, record, string
from lowwater.positions.grammar import parse_starts
from lowwater.positions.names import check_names
from lowwater.positions.plan import UnresolvedError
from lowwater.types import TopicPartition

BYTES_DEFAULT, BYTES_MAX = 1 << 20, 8 << 20
BROWSED_MAX = 200
GLANCE_BYTES = 32 * 1024

_VALUE = {
    "description": "Text; bytes that are not UTF-8 as {base64: …}.",
    "type": ["string", "object", "null"],
}
_RECORD = {
    "offset": integer(),
    "timestamp": integer("In ms since the epoch; -1 when it has none."),
    "key": _VALUE,
    "value": _VALUE,
    "headers": array(array(_VALUE), "[name, value], in their order; names may occur twice."),
}
_PARTITION = record(
    partition=integer(),
    leader=integer("-1 while there is none."),
    replicas=array(integer()),
    in_sync=array(integer()),
    start=nullable(integer("The log start offset.")),
    end=nullable(integer("The offset of the next record.")),
    bytes=nullable(integer()),
    error=nullable(string()),
)
_ERRORS = array(record(what=string(), error=string()), "Partitions that could not be asked.")
_TOPIC = {
    "name": string(),
    "id": string(),
    "internal": boolean(),
    "partitions": integer(),
    "records": nullable(integer("Offsets between start and end, of all partitions.")),
    "bytes": nullable(integer()),
    "rate": nullable({"type": "number", "description": "Records a second that came in lately."}),
}


@operation(
    "GET",
    "/topics",
    "Topics with their size and rate",
    tag="topics",
    answer=record(topics=array(record(**_TOPIC)), next=nullable(string()), total=integer(), errors=_ERRORS),
    query={
        "prefix": string("Only names that begin so.", default=""),
        "internal": boolean("Those of the brokers' own too.", default=False),
        "limit": LIMIT,
        "after": AFTER,
    },
)
async def list_topics(call: Call) -> Any:
    found = await call.desk.admin.list_topics(internal=call.query["internal"])
    names = sorted(name for name in found if name.startswith(call.query["prefix"]))
    shown, following = page(names, call.query["limit"], call.query["after"])
    partitions = [TopicPartition(name, one.partition) for name in shown for one in found[name].partitions]
    bounds = await call.desk.admin.bounds(partitions)
    size = await _sizes(call, shown)
    rows = []
    for name in shown:
        topic = found[name]
        mine = [TopicPartition(name, one.partition) for one in topic.partitions]
        known = [bounds[one].count for one in mine if one in bounds]
        rows.append(
            {
                "name": name,
                "id": _id(topic.id),
                "internal": topic.is_internal,
                "partitions": len(mine),
                "records": sum(known) if len(known) == len(mine) else None,
                "bytes": sum(size[one] for one in mine) if all(one in size for one in mine) else None,
                "rate": call.desk.watch.topic_rate(name),
            }
        )
    return {"topics": rows, "next": following, "total": len(names), "errors": _errors(bounds.failed)}


@operation(
    "GET",
    "/topics/{topic}",
    "One topic with its partitions and settings",
    tag="topics",
    answer=record(
        name=string(),
        id=string(),
        internal=boolean(),
        partitions=array(_PARTITION),
        rate=nullable({"type": "number"}),
        groups=array(string(), "Groups that have committed offsets of it, as far as seen."),
        settings={"type": "object", "description": "Those that were set for this topic."},
    ),
    statuses=(404,),
)
async def describe_topic(call: Call) -> Any:
    name = call.path["topic"]
    outcome = await call.desk.admin.describe_topics([name])
    if name not in outcome:
        raise of_client(outcome.failed[name]) if name in outcome.failed else missing(f"no topic {name!r}")
    topic = outcome[name]
    mine = [TopicPartition(name, one.partition) for one in topic.partitions]
    bounds = await call.desk.admin.bounds(mine)
    size = await _sizes(call, [name])
    rows = []
    for one in topic.partitions:
        place = TopicPartition(name, one.partition)
        known = bounds.get(place)
        rows.append(
            {
                "partition": one.partition,
                "leader": one.leader,
                "replicas": list(one.replicas),
                "in_sync": list(one.in_sync),
                "start": None if known is None else known.start,
                "end": None if known is None else known.end,
                "bytes": size.get(place),
                "error": str(bounds.failed[place]) if place in bounds.failed else None,
            }
        )
    return {
        "name": name,
        "id": _id(topic.id),
        "internal": topic.is_internal,
        "partitions": rows,
        "rate": call.desk.watch.topic_rate(name),
        "groups": call.desk.watch.groups_of(name),
        "settings": await _settings(call, name),
    }


async def _sizes(call: Call, names: list[str]) -> dict[TopicPartition, int]:
    """Nothing where brokers do not tell: sizes are a courtesy."""
    try:
        return await call.desk.run(sizes(call.desk.cluster, names)) if names else {}
    except ClientError:
        return {}


async def _settings(call: Call, name: str) -> dict[str, str | None]:
    try:
        outcome = await call.desk.admin.describe_configs([name])
    except ClientError:
        return {}
    entries = next(iter(outcome.values()), {})
    return {key: one.value for key, one in sorted(entries.items()) if one.is_own}


def _errors(failed: Mapping[TopicPartition, ClientError]) -> list[dict[str, str]]:
    return [{"what": str(one), "error": str(error)} for one, error in sorted(failed.items())]


def _id(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


# ---- records


@operation(
    "GET",
    "/topics/{topic}/partitions/{partition}/records",
    "Records from an offset on; with a group from its committed offset, if that is further",
    tag="records",
    answer=record(records=array(record(**_RECORD)), next_offset=integer("Where to go on.")),
    query={
        "offset": integer("The first offset wanted; without it the log start.", minimum=0, maximum=OFFSET_MAX),
        "max_bytes": integer(
            "As stored; one batch comes in any case.", default=BYTES_DEFAULT, minimum=1, maximum=BYTES_MAX
        ),
        "group": string("Start at max(committed, offset).", minLength=1),
    },
    statuses=(404, 416),
)
async def records(call: Call) -> Any:
    one = TopicPartition(call.path["topic"], partition_of(call))
    offset = await _log_start(call, one) if call.query["offset"] is None else call.query["offset"]
    if call.query["group"] is not None:
        offset = max(offset, await call.desk.committed(call.query["group"], one) or 0)
    outcome = await call.desk.run(browse(call.desk.cluster, {one: offset}, bytes_max=call.query["max_bytes"]))
    if one in outcome.failed:
        raise await _with_bounds(call, one, offset, outcome.failed[one])
    found: Page = outcome[one]
    return {"records": [as_json(row) for row in found.rows], "next_offset": found.next_offset}


async def _log_start(call: Call, one: TopicPartition) -> int:
    outcome = await call.desk.admin.bounds([one])
    if one in outcome.failed:
        raise of_client(outcome.failed[one])
    return outcome[one].start


async def _with_bounds(call: Call, one: TopicPartition, offset: int, error: ClientError) -> Problem:
    problem = of_client(error)
    if problem.status != 416:
        return problem
    known = (await call.desk.admin.bounds([one])).get(one)
    where = "" if known is None else f"; the log has offsets from {known.start} to {known.end}"
    return Problem(416, problem.code, f"offset {offset} of {one.topic}-{one.partition} is not there{where}")


@operation(
    "GET",
    "/topics/{topic}/records",
    "Records of all partitions from a start position on, oldest first",
    tag="records",
    answer=record(
        records=array(record(partition=integer(), cut=boolean("Whether the value is longer than shown."), **_RECORD)),
        starts={"type": "object", "description": "By partition, the offset the position led to."},
        errors=_ERRORS,
    ),
    query={
        "start": string("A start position: earliest, latest, -1h, @2026-11-16T08:00 (UTC), 42 …", default="-100"),
        "limit": integer("How many at most.", default=50, minimum=1, maximum=BROWSED_MAX),
        "partition": integer("Only this one.", minimum=0, maximum=2**31 - 1),
    },
    statuses=(404, 422),
)
async def browse_topic(call: Call) -> Any:
    name, limit = call.path["topic"], call.query["limit"]
    described = (await call.desk.admin.describe_topics([name])).checked()[name]
    led = [TopicPartition(name, one.partition) for one in described.partitions if one.leader >= 0]
    without = [TopicPartition(name, one.partition) for one in described.partitions if one.leader < 0]
    starts = await _starts(call, led)
    if call.query["partition"] is not None:
        starts = {one: offset for one, offset in starts.items() if one.partition == call.query["partition"]}
        if not starts:
            raise missing(f"topic {name!r} has no partition {call.query['partition']}")
    share = max(16 * 1024, BYTES_MAX // max(len(starts), 1) // 4)
    outcome = await call.desk.run(browse(call.desk.cluster, starts, bytes_max=share, rows_max=limit))
    rows = sorted(
        (row for found in outcome.values() for row in found.rows),
        key=lambda row: (row.timestamp_ms, row.partition, row.offset),
    )
    return {
        "records": [_glanced_at(row) for row in rows[:limit]],
        "starts": {str(one.partition): offset for one, offset in starts.items()},
        "errors": [
            *_errors(outcome.failed),
            *({"what": str(one), "error": "it has no leader at the moment"} for one in without),
        ],
    }


async def _starts(call: Call, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the position leads in each of them."""
    try:
        wanted = parse_starts(call.query["start"], UTC)
        check_names(wanted, [call.path["topic"]], "start")
    except ConfigError as error:
        raise Problem(422, "BAD_VALUE", str(error)) from None
    wishes = {one: wish for one in partitions if (wish := wanted.of(one)) is not None}
    now_ms = call.desk.cluster.network.driver.now_ms()
    try:
        return (await call.desk.run(resolve(call.desk.cluster, wishes, now_ms=now_ms))).starts
    except UnresolvedError as error:
        raise Problem(422, "BAD_VALUE", str(error)) from None
    except ClientError as error:
        if type(error) is not ClientError:
            raise
        raise Problem(422, "BAD_VALUE", str(error)) from None  # a position that leads nowhere here


def _glanced_at(row: Row) -> dict[str, Any]:
    """Without the rest of a long value: somebody looks through many."""
    is_long = row.value is not None and len(row.value) > GLANCE_BYTES
    shown = row._replace(value=row.value[:GLANCE_BYTES]) if is_long and row.value is not None else row
    return {"partition": row.partition, "cut": is_long, **as_json(shown)}


def as_json(row: Row) -> dict[str, Any]:
    return {
        "offset": row.offset,
        "timestamp": row.timestamp_ms,
        "key": _text(row.key),
        "value": _text(row.value),
        "headers": [[name, _text(value)] for name, value in row.headers],
    }


def _text(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
